"""Paired studies: the same model with one thing varied, over several seeds."""
