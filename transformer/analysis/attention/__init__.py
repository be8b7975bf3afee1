"""What attention weights are made of and what they carry: entries, norms, rollout, entropy, leakage through masks."""
