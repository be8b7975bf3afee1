"""The analysis of decoding steps: candidates, branches, samples, search trees, the logit lens, exposure bias."""
