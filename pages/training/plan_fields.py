"""The fields of a plan: the setting behind each, and its choices. Labels, help and limits stand in config.py."""

from typing import Literal, get_args

from transformer.config import (
    FAMILIES,
    PRESETS,
    About,
    CellKind,
    ConvolutionalConfig,
    CorpusConfig,
    ModelConfig,
    NormPlacement,
    OptimizerKind,
    PositionKind,
    Precision,
    RecurrentAttentionKind,
    RecurrentConfig,
    ScheduleKind,
    ScoreKind,
    TokenizerKind,
    TrainConfig,
    about,
)

RECIPE, OWN = "recipe", "own"
Part = Literal["causal_mask", "positions", "scale_scores", "residual", "norm", "label_smoothing", "warmup_steps"]
PARTS = get_args(Part)
"""The parts that a run can leave out; each is the name of a field of the plan."""
NO_STEP_LIMIT = 1_000_000
"""The step limit of a run that the clock is to end."""
MOST_SENTENCES = 5
RECURRENT_FIELDS = ("cell", "attention", "bidirectional", "input_feeding")
"""Settings of recurrent models alone."""
CONVOLUTIONAL_FIELDS = ("kernel", "dilated", "separable")
"""Settings of convolutional models alone."""
SIZES = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff")
MODEL_FIELDS = (*SIZES, "max_length", "positions", "norm", "score", "window", "causal_mask", "scale_scores", "residual")
_SIZES_OF_OTHERS = ("n_encoder_layers", "n_decoder_layers", "d_model", "max_length")
FIELDS_OF = {
    "transformer": MODEL_FIELDS,
    "rnn": (*_SIZES_OF_OTHERS, *RECURRENT_FIELDS),
    "conv": (*_SIZES_OF_OTHERS, *CONVOLUTIONAL_FIELDS),
}
"""The fields that are settings of the model, by family."""
TRAIN_FIELDS = (
    *("learning_rate", "optimizer", "schedule", "warmup_steps", "label_smoothing", "batch_tokens", "evaluate_every"),
    *("patience", "seed", "precision", "device", "threads"),
)
CORPUS_FIELDS = ("columns", "longest", "tokenizer", "vocab_size")

_OF_CONFIG: dict[str, tuple[type, str]] = {
    **{name: (ModelConfig, name) for name in (*MODEL_FIELDS, "dropout")},
    "family": (ModelConfig, "family"),
    **{name: (RecurrentConfig, name) for name in RECURRENT_FIELDS},
    **{name: (ConvolutionalConfig, name) for name in CONVOLUTIONAL_FIELDS},
    **{name: (TrainConfig, name) for name in TRAIN_FIELDS},
    **{name: (CorpusConfig, name) for name in CORPUS_FIELDS},
    "corpus": (CorpusConfig, "name"),
    "steps": (TrainConfig, "max_steps"),
    "seconds": (TrainConfig, "max_seconds"),
}
"""The setting behind each field, which says its label, its help and its limits (config.py)."""
_OWN: dict[str, About] = {
    "preset": About(label="Preset", help=""),
    "target_percent": About(
        label="End early at exact match, %",
        help="Share of validation pairs translated exactly right. Empty: train to the end.",
    ),
    "sentences": About(
        label="Sentences to follow", help="One per line, at most five. They are translated at each evaluation."
    ),
    "start_from": About(label="Initial weights", help=""),
    "others": About(label="Further settings", help=""),
}
"""Fields with no setting of their own behind them."""
_ORDER = (
    *("corpus", "columns", "longest", "tokenizer", "vocab_size", "family", *RECURRENT_FIELDS, *CONVOLUTIONAL_FIELDS),
    *("preset", *SIZES, "max_length"),
    *("positions", "learning_rate", "steps", "seconds", "target_percent", "patience", "seed", "norm", "score"),
    "window",
    *("causal_mask", "scale_scores", "residual", "dropout", "label_smoothing", "optimizer", "schedule"),
    *("warmup_steps", "batch_tokens", "evaluate_every", "precision", "device", "threads", "sentences", "start_from"),
    "others",
)
"""The order in which faults are listed."""
FIELDS: dict[str, About] = {name: _OWN.get(name) or about(*_OF_CONFIG[name]) for name in _ORDER}
LABELS = {name: field.label for name, field in FIELDS.items()}
NOUNS = {
    "steps": "The number of steps",
    "seconds": "The number of seconds",
    "target_percent": "Exact match",
    "patience": "The number of evaluations",
}
"""The names of fields in a sentence where these are not their labels."""
CHOICES: dict[str, tuple[str, ...]] = {
    "preset": (RECIPE, *PRESETS, OWN),
    "family": tuple(FAMILIES),
    "cell": get_args(CellKind),
    "attention": get_args(RecurrentAttentionKind),
    "tokenizer": get_args(TokenizerKind),
    "positions": get_args(PositionKind),
    "norm": get_args(NormPlacement),
    "score": get_args(ScoreKind),
    "optimizer": get_args(OptimizerKind),
    "schedule": get_args(ScheduleKind),
    "precision": get_args(Precision),
}
SWITCHES = frozenset(
    {"causal_mask", "scale_scores", "residual", "bidirectional", "input_feeding", "dilated", "separable"}
)
_TYPES = {name: config.__dataclass_fields__[setting].type for name, (config, setting) in _OF_CONFIG.items()}
WHOLE = frozenset(name for name, kind in _TYPES.items() if int in (kind, *get_args(kind)))
"""The fields of whole numbers."""
MAY_BE_EMPTY = frozenset({"longest", "vocab_size", "steps", "seconds", "target_percent", "patience", "threads"})
FIELD_OF = {
    "max_steps": "steps",
    "max_seconds": "seconds",
    "target_exact_match": "target_percent",
    "embedding_dropout": "dropout",
}
"""The field behind a setting of another name."""
