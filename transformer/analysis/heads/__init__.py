"""What heads do and what they are worth: patterns, ablations, minimal sets, similarity, health."""
