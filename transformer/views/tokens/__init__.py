"""Tokenizers and token embeddings as views."""
