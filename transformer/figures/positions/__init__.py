"""Figures of position tables and of the study of positions."""
