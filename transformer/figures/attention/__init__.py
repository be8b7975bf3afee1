"""Figures of attention: matrices, entries, masks, lines, two sides compared."""
