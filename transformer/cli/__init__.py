"""What `python -m transformer` does."""
