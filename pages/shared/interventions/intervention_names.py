"""Sentences about interventions, for the places of a page where they are told."""

from transformer.interventions import Intervention


def left_out(spec: Intervention, error: Exception, where: str = "") -> str:
    """Says that a switch cannot be used, and why, as plain text."""
    return f"The switch “{spec.label()}” is left out{where}: {str(error).rstrip('.')}."
