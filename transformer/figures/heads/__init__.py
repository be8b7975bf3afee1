"""Figures of heads: bars and tables."""
