"""Measures attention weights, their parts and effects: entries, norms, rollout, entropy, leakage through masks."""
