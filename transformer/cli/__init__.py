"""The commands of `python -m transformer`."""
