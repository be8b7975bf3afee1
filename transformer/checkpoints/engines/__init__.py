"""Models as other libraries' folders (CTranslate2, transformers' Marian), and Marian's as ours."""

from collections.abc import Mapping

from transformer.checkpoints.settings import CheckpointError


def refuse(engine: str, faults: Mapping[str, bool]) -> None:
    """CheckpointError naming every phrase whose fault holds."""
    found = [phrase for phrase, holds in faults.items() if holds]
    if found:
        raise CheckpointError(f"{engine} cannot express this model: {'; '.join(found)}")
