"""Figures of a whole pass: its diagram and its arrays."""
