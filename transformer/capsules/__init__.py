"""Capsules: an analysis in one file, with its model, its sentence, its numbers, and the way to check them again."""

from transformer.capsules.capsule import save_capsule
from transformer.capsules.notebook import load_capsule

__all__ = ["load_capsule", "save_capsule"]
