"""The figures of the paired study of positions, and of one model beyond the lengths that it was trained on."""
