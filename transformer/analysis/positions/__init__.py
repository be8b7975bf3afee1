"""Position tables, scores taken apart by position, and accuracy by length."""
