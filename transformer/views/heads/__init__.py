"""Figures of heads: where they look, which matter, which are similar, and what hiding tokens costs."""
