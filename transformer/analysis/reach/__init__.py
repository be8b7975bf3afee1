"""How much of a source token reaches the decoder: read back from the fixed vector, and by gradients."""
