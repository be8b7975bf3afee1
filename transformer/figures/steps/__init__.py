"""Figures of decoding steps: candidates, branches, search trees, the logit lens."""
