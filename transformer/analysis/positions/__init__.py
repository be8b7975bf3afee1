"""Analyses of position tables, of scores by position, and of accuracy by length."""
