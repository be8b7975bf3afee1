"""What models had before attention: the fixed vector and what it forgets, and how far gradients reach."""
