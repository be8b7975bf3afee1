"""Measures what heads do and which matter: patterns, ablations, minimal sets, similarity, health."""
