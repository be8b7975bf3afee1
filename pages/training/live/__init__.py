"""Small runs that are watched while they learn: their knobs, their start, the parts that follow them, their results."""
