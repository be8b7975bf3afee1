"""Writing a translation: greedy, beam search, sampling, and the decoder one cached step at a time."""
