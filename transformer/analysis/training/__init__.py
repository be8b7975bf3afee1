"""The Doctor of training runs, curves and timelines."""
