"""Corpora: generated tasks, sentences around pronouns, names of emoji, files of your own; and the batches made of them."""
