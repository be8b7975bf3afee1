"""The Transformer as the paper describes it: attention, layers, masks, positions, and the taps that read a pass."""
