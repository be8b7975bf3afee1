"""What can be measured on a model: proofs and effects. Runs the model; returns plain values and arrays."""
