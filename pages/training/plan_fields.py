"""The fields of a plan, made of the settings in config.py: whoever adds a setting there has added its field.

A setting's label, help, limits and choices are those of its declaration; what the form itself adds stands here.
"""

from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from transformer.config import FAMILIES, PRESETS, CorpusConfig, TrainConfig
from transformer.setting import About, about

Section = Literal["corpus", "model", "train"]
RECIPE, OWN = "recipe", "own"
Part = Literal["causal_mask", "positions", "scale_scores", "residual", "norm", "label_smoothing", "warmup_steps"]
PARTS = get_args(Part)
"""The parts that a run can leave out; each is the name of a field of the plan."""
NO_STEP_LIMIT = 1_000_000
"""The step limit of a run that the clock is to end."""
MOST_SENTENCES = 5
SIZES = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff")


@dataclass(frozen=True)
class Setting:
    """The setting behind a field."""

    section: Section
    name: str
    about: About
    kind: Any
    """The type of its values, as declared."""


_RENAMED = {
    **{"corpus.name": "corpus", "corpus.seed": "corpus_seed"},
    **{"train.max_steps": "steps", "train.max_seconds": "seconds", "train.target_exact_match": "target_percent"},
}
"""Fields that are not called like their settings."""
_FOUND_OUT = frozenset({"family", "vocab_size", "pad_id", "bos_id", "eos_id"})
"""Settings of a model that follow from its family and its tokenizer."""


def _settings() -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    sections: tuple[tuple[Section, tuple[type, ...]], ...] = (
        ("corpus", (CorpusConfig,)),
        ("model", tuple(FAMILIES.values())),
        ("train", (TrainConfig,)),
    )
    for section, configs in sections:
        for config in configs:
            for item in fields(config):
                name = _RENAMED.get(f"{section}.{item.name}", item.name)
                if section != "model" or item.name not in _FOUND_OUT:
                    found.setdefault(name, Setting(section, item.name, about(config, item.name), item.type))
    return found


SETTINGS: dict[str, Setting] = _settings()
"""The setting behind each field; one that several families have is the Transformer's."""
FIELD_OF = {f"{setting.section}.{setting.name}": name for name, setting in SETTINGS.items()}
"""The field of each setting, by the setting's name on the command line."""
FIELDS_OF: dict[str, tuple[str, ...]] = {
    family: tuple(item.name for item in fields(config) if item.name not in _FOUND_OUT)
    for family, config in FAMILIES.items()
}
"""The fields that are settings of the model, by family."""
OF_MODELS = frozenset(name for names in FIELDS_OF.values() for name in names)
"""The fields that are settings of a model of any family."""

_OWN: dict[str, About] = {
    "family": about(FAMILIES["transformer"], "family"),
    "preset": About(label="Preset", help=""),
    "target_percent": About(
        label="End early at exact match, %",
        help="Share of validation pairs translated exactly right. Empty: train to the end.",
        empty="never",
    ),
    "sentences": About(
        label="Sentences to follow", help="One per line, at most five. They are translated at each evaluation."
    ),
    "start_from": About(label="Initial weights", help=""),
}
"""Fields that are not settings, or show one in another unit."""
FIELDS: dict[str, About] = {
    **{name: setting.about for name, setting in SETTINGS.items() if setting.section == "corpus"},
    **{name: _OWN[name] for name in ("family", "preset")},
    **{name: setting.about for name, setting in SETTINGS.items() if setting.section != "corpus"},
    **{name: _OWN[name] for name in ("target_percent", "sentences", "start_from")},
}
"""The label, help and limits of each field, in the order in which faults are listed."""
LABELS = {name: field.label for name, field in FIELDS.items()}
NOUNS = {name: field.noun or field.label for name, field in FIELDS.items()}
"""The names of fields within a sentence."""
CHOICES: dict[str, tuple[str, ...]] = {
    "preset": (RECIPE, *PRESETS, OWN),
    "family": tuple(FAMILIES),
    **{name: get_args(setting.kind) for name, setting in SETTINGS.items() if get_origin(setting.kind) is Literal},
}
SWITCHES = frozenset(name for name, setting in SETTINGS.items() if setting.kind is bool)


def _of(*kinds: type) -> frozenset[str]:
    """Returns the fields whose values are, or may be, of one of these types."""
    return frozenset(n for n, setting in SETTINGS.items() if set(kinds) & {setting.kind, *get_args(setting.kind)})


WHOLE = _of(int)
"""The fields of whole numbers."""
NUMBERS = _of(int, float)
"""The fields of numbers."""
EMPTY = {
    **{name: FIELDS[name].empty for name in sorted(NUMBERS & _of(NoneType))},
    **{"steps": "no limit", "embedding_dropout": "as dropout"},
}
"""The fields of numbers that may be left empty, and what that means in a word."""
