"""The views of one decoding's attention: matrices, lines, all heads, single entries."""
