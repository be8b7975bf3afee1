"""Figures of training: curves, plans, sweeps."""
