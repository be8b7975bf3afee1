"""Experiments with paired seeds: the claims of the paper measured and judged, and the study of positions."""
