"""The settings in which several runs differ, and their values in words."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from transformer.checkpoints.settings import Settings
from transformer.config import CONFIGS, label_of, value_text

_LEFT_OUT = {
    *("model.pad_id", "model.bos_id", "model.eos_id"),
    *("corpus.name", "corpus.vocab_size"),  # a column of its own; model.vocab_size is what it came to
}
_FOLLOWS = {"model.embedding_dropout": "model.dropout"}
"""Settings that are left out where they have the same values as another one."""
PARENT = "started from"


def differing(several: Sequence[Settings]) -> tuple[str, ...]:
    """The full names of the settings that are not the same in all of these, in the order of config.py."""
    flat = [_flat(settings) for settings in several]
    names = dict.fromkeys(name for values in flat for name in values)
    found = [name for name in names if len({repr(values.get(name)) for values in flat}) > 1]
    return tuple(
        name
        for name in found
        if name not in _LEFT_OUT
        and not (name in _FOLLOWS and all(values.get(name) == values.get(_FOLLOWS[name]) for values in flat))
    )


def column_title(name: str) -> str:
    """The label of a setting at the head of a column: "heads", "d_model", "CPU threads"."""
    if "." not in name:
        return name
    label = label_of(name)
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def cell(settings: Settings, name: str) -> str:
    """The value of a setting, as a cell says it."""
    return value_text(_flat(settings).get(name))


def is_number(several: Sequence[Settings], name: str) -> bool:
    """Whether all of these have a number there, or nothing."""
    values = [_flat(settings).get(name) for settings in several]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values)


def _flat(settings: Settings) -> dict[str, Any]:
    flat = {f"{kind}.{name}": v for kind in CONFIGS for name, v in asdict(getattr(settings, kind)).items()}
    parent = settings.parent
    return flat | {PARENT: None if parent is None else f"{parent.run}, step {parent.step:,}"}
