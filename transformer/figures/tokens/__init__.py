"""Figures of tokens: vocabulary sizes, merges, the map of embeddings."""
