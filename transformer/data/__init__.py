"""Corpora: generated tasks, sentences around pronouns, emoji names, files of your own; and the batches made of them."""
