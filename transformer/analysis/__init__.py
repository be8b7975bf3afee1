"""Measures a model: effects, and checks of what is shown. Runs the model; returns plain values and arrays."""
