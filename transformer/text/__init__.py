"""Sentence pairs and the tokenizers that turn them into token ids."""
