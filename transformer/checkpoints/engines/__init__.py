"""Models as other libraries' folders (CTranslate2, transformers' Marian), and Marian's as ours."""

from collections.abc import Mapping

from transformer.checkpoints.settings import CheckpointError
from transformer.checkpoints.store import Checkpoint
from transformer.config import ModelConfig


def refuse(engine: str, faults: Mapping[str, bool]) -> None:
    """CheckpointError naming every phrase whose fault holds."""
    found = [phrase for phrase, holds in faults.items() if holds]
    if found:
        raise CheckpointError(f"{engine} cannot express this model: {'; '.join(found)}")


def transformer_settings(checkpoint: Checkpoint, engine: str) -> ModelConfig:
    """The settings of a model that an engine may take; CheckpointError where it is no Transformer."""
    config = checkpoint.settings.model
    if not isinstance(config, ModelConfig):
        raise CheckpointError(
            f"{engine} cannot take {checkpoint.name}: it is a {config.kind_in_words}, not a Transformer"
        )
    return config
