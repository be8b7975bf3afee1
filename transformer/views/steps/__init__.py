"""The figures of decoding steps: candidates, branches, beam search, samples, logit lens, teacher forcing."""
