"""What tokenizers make of text, and where models put their tokens."""
