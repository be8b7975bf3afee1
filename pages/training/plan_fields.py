"""The fields of a plan: what they are called, what they may hold. Plain values and no more."""

from typing import Literal, get_args

from transformer.config import PRESETS, NormPlacement, PositionKind, Precision, ScheduleKind, TokenizerKind

RECIPE, OWN = "recipe", "own"
Part = Literal["causal_mask", "positions", "scale_scores", "residual", "norm", "label_smoothing", "warmup_steps"]
PARTS = get_args(Part)
"""What a run can leave out; each is the name of a field of the plan."""
NO_STEP_LIMIT = 1_000_000
"""Steps allowed where the clock is to end the run."""
MOST_SENTENCES = 5
SIZES = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff")
MODEL_FIELDS = (*SIZES, "max_length", "positions", "norm", "causal_mask", "scale_scores", "residual")
TRAIN_FIELDS = (
    *("learning_rate", "schedule", "warmup_steps", "label_smoothing", "batch_tokens", "evaluate_every", "patience"),
    *("seed", "precision", "device", "threads"),
)
CORPUS_FIELDS = ("longest", "tokenizer", "vocab_size")

LABELS: dict[str, str] = {
    "corpus": "Corpus",
    "longest": "Longest string, symbols",
    "tokenizer": "Tokenizer",
    "vocab_size": "Vocabulary",
    "preset": "Preset",
    "n_encoder_layers": "Encoder layers",
    "n_decoder_layers": "Decoder layers",
    "d_model": "d_model",
    "n_heads": "Heads",
    "d_ff": "d_ff",
    "max_length": "Longest sentence, tokens",
    "positions": "Positions",
    "learning_rate": "Learning rate",
    "steps": "End after, steps",
    "seconds": "End after, seconds",
    "target_percent": "End early at exact match, %",
    "patience": "End early without gain, evaluations",
    "seed": "Seed",
    "norm": "Layer norm",
    "causal_mask": "Causal mask",
    "scale_scores": "Scores divided by √d_k",
    "residual": "Residual connections",
    "dropout": "Dropout",
    "label_smoothing": "Label smoothing",
    "schedule": "Schedule",
    "warmup_steps": "Warm-up, steps",
    "batch_tokens": "Tokens a batch",
    "evaluate_every": "Steps between evaluations",
    "precision": "Precision",
    "device": "Device",
    "threads": "CPU threads",
    "sentences": "Sentences to follow",
    "start_from": "Weights to begin with",
    "others": "Further settings",
}
NOUNS = {
    "steps": "The number of steps",
    "seconds": "The number of seconds",
    "target_percent": "Exact match",
    "patience": "The number of evaluations",
}
"""What a sentence calls a field where that is not its label."""
CHOICES: dict[str, tuple[str, ...]] = {
    "preset": (RECIPE, *PRESETS, OWN),
    "tokenizer": get_args(TokenizerKind),
    "positions": get_args(PositionKind),
    "norm": get_args(NormPlacement),
    "schedule": get_args(ScheduleKind),
    "precision": get_args(Precision),
}
SWITCHES = frozenset({"causal_mask", "scale_scores", "residual"})
WHOLE = frozenset(
    {*SIZES, "max_length", "longest", "vocab_size", "steps", "patience", "seed", "warmup_steps", "batch_tokens"}
    | {"evaluate_every", "threads"}
)
MOST = {
    **{"n_encoder_layers": 24, "n_decoder_layers": 24, "d_model": 4096, "n_heads": 64, "d_ff": 16384},
    **{"steps": NO_STEP_LIMIT, "warmup_steps": NO_STEP_LIMIT, "evaluate_every": NO_STEP_LIMIT, "patience": 10_000},
    **{"batch_tokens": 100_000, "learning_rate": 10, "seed": 2**31 - 1, "threads": 256, "seconds": 1e6},
    **{"max_length": 4096, "vocab_size": 100_000},
}
"""The largest number that each field takes."""
MAY_BE_EMPTY = frozenset({"longest", "vocab_size", "steps", "seconds", "target_percent", "patience", "threads"})
FIELD_OF = {
    "max_steps": "steps",
    "max_seconds": "seconds",
    "target_exact_match": "target_percent",
    "embedding_dropout": "dropout",
}
"""The field behind a setting of another name."""
