"""What happens at decoding steps: candidates, branches, samples, search trees, the logit lens, exposure bias."""
