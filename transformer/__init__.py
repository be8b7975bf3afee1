"""A Transformer to train and to look inside: "Attention Is All You Need" (Vaswani et al., 2017), complete.

Shapes are written with these axes: batch source target query key head d_head d_model vocab.
Masks are boolean and True means "may attend", everywhere.
"""
