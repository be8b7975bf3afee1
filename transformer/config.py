"""What a model, a training run, a corpus and a decoding are made of: frozen settings, and the presets.

Only plain values live here. Contradictions are refused when a config is built, so that nothing downstream has to check.
"""

import math
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args

Activation = Literal["relu", "gelu", "swish"]
NormPlacement = Literal["post", "pre", "none"]
PositionKind = Literal["sinusoidal", "learned", "none", "rotary", "alibi"]
ScheduleKind = Literal["paper", "constant", "cosine"]
TokenizerKind = Literal["auto", "words", "bpe", "unigram", "char"]
Precision = Literal["auto", "float32", "bfloat16"]
DecodeMethod = Literal["greedy", "beam", "sample"]
LengthNorm = Literal["paper", "length"]

FEWEST_SYMBOLS, MOST_SYMBOLS = 4, 64
"""Bounds of the longest strings that copy, reverse and sort can be asked for: of shorter ones there are too few to hold
a thousand out."""
WIDEST_BEAM = 256
"""Hypotheses a sentence: time and memory grow with it, translations stop getting better long before."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture of one encoder-decoder Transformer (section 3); the defaults are the paper's base model."""

    vocab_size: int = 37_000
    """Entries of the joint source and target vocabulary."""
    d_model: int = 512
    """Width of every sublayer's input and output."""
    n_heads: int = 8
    """Attention heads; each has d_k = d_v = d_model / n_heads."""
    d_ff: int = 2048
    """Inner width of the feed-forward sublayer."""
    n_encoder_layers: int = 6
    """Encoder layers."""
    n_decoder_layers: int = 6
    """Decoder layers."""
    activation: Activation = "relu"
    """Non-linearity of the feed-forward sublayer; the paper's is relu."""
    norm: NormPlacement = "post"
    """Layer norm after the residual sum (post, the paper), before each sublayer with one final norm a stack (pre), or
    none at all."""
    positions: PositionKind = "sinusoidal"
    """How token order enters: the paper's fixed sinusoids, a learned table, not at all, or inside self-attention alone:
    queries and keys turned by their position (rotary), or scores lowered with distance (alibi)."""
    max_length: int = 256
    """Longest source or target in tokens; a learned table has this many rows."""
    dropout: float = 0.1
    """Dropout on each sublayer's output before the residual sum."""
    embedding_dropout: float = 0.1
    """Dropout on the sum of embedding and position."""
    attention_dropout: float = 0.0
    """Dropout on the attention weights."""
    activation_dropout: float = 0.0
    """Dropout after the feed-forward non-linearity."""
    causal_mask: bool = True
    """The decoder's self-attention hides later tokens (section 3.2.3). Without it a decoder trained with the right
    answer as its input reads the token that it is to predict; it then decodes without a key/value cache."""
    scale_scores: bool = True
    """Attention scores are divided by sqrt(d_k) (section 3.2.1)."""
    residual: bool = True
    """Each sublayer's input is added to its output (section 3.1)."""
    tie_embeddings: bool = True
    """Source and target share one embedding."""
    tie_output: bool = True
    """The output projection is the target embedding (section 3.4)."""
    output_bias: bool = False
    """The output projection adds a bias to each logit; the paper's has none, imported models may."""
    norm_epsilon: float = 1e-5
    """Added to the variance inside layer norm."""
    pad_id: int = 0
    """Token id that fills short rows of a batch."""
    bos_id: int = 1
    """Token id that starts every decoder input."""
    eos_id: int = 2
    """Token id that ends every source and target."""

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "max_length"):
            _require(getattr(self, name) >= 1, f"{name} ({getattr(self, name)}) must be at least 1")
        _require(
            self.d_model % self.n_heads == 0,
            f"d_model ({self.d_model}) must be divisible by n_heads ({self.n_heads})",
        )
        _require(
            self.positions != "sinusoidal" or self.d_model % 2 == 0,
            f"d_model ({self.d_model}) must be even for sinusoidal positions: each frequency needs a sine and a cosine",
        )
        _require(
            self.positions != "rotary" or self.d_head % 2 == 0,
            f"d_model / n_heads ({self.d_head}) must be even for rotary positions: dimensions are turned in pairs",
        )
        for name in ("dropout", "embedding_dropout", "attention_dropout", "activation_dropout"):
            rate = getattr(self, name)
            _require(0 <= rate < 1, f"{name} ({rate}) must lie in [0, 1)")
        _one_of("activation", self.activation, Activation)
        _one_of("norm", self.norm, NormPlacement)
        _one_of("positions", self.positions, PositionKind)
        _require(self.norm_epsilon > 0, f"norm_epsilon ({self.norm_epsilon}) must be above 0")
        specials = (self.pad_id, self.bos_id, self.eos_id)
        _require(
            len(set(specials)) == 3 and all(0 <= i < self.vocab_size for i in specials),
            f"pad, bos and eos ids {specials} must be three different ids below vocab_size ({self.vocab_size})",
        )

    @property
    def d_head(self) -> int:
        """Width of one head's queries, keys and values."""
        return self.d_model // self.n_heads


@dataclass(frozen=True, kw_only=True)
class CorpusConfig:
    """Which parallel text a run learns from, and how it is cut into tokens."""

    name: str = "reverse"
    """A generated corpus (see `transformer.data.corpora.CORPORA`) or the path of a TSV, CSV or JSONL file."""
    seed: int = 0
    """Seed of generated text."""
    longest: int | None = None
    """Most symbols in a string of copy, reverse or sort; None for the 10 that they have by themselves."""
    tokenizer: TokenizerKind = "auto"
    """Kind of token; auto takes what suits the corpus (whole words for generated sentences, bpe for files)."""
    vocab_size: int | None = None
    """Vocabulary of a bpe or unigram tokenizer; None takes 4,000 or the most that the text allows."""

    def __post_init__(self) -> None:
        _check_types(self)
        _one_of("tokenizer", self.tokenizer, TokenizerKind)
        longest = self.longest
        _require(
            longest is None or FEWEST_SYMBOLS <= longest <= MOST_SYMBOLS,
            f"longest ({longest}) must lie between {FEWEST_SYMBOLS} and {MOST_SYMBOLS}, or be left empty",
        )
        _require(self.vocab_size is None or self.vocab_size >= 8, f"vocab_size ({self.vocab_size}) must be at least 8")


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How a model is trained; section 5 of the paper, with sizes for two cores."""

    max_steps: int = 1_000
    """Optimiser steps after which training ends."""
    max_seconds: float | None = None
    """Seconds of training after which it ends; None for no limit."""
    target_exact_match: float | None = None
    """End as soon as validation exact match (0..1) reaches this; None for no such stop."""
    patience: int | None = None
    """End after this many evaluations without a lower validation loss; None for no such stop."""
    batch_tokens: int = 1_536
    """Tokens in a micro-batch, padding included, on the longer side."""
    accumulate: int = 1
    """Micro-batches summed into one optimiser step, normalised by their real tokens."""
    schedule: ScheduleKind = "paper"
    """Course of the learning rate: the paper's warm-up and inverse square root, constant, or cosine to zero."""
    learning_rate: float = 2e-3
    """Peak learning rate, reached at the end of the warm-up."""
    warmup_steps: int = 100
    """Steps of linear warm-up (every schedule)."""
    label_smoothing: float = 0.1
    """Probability mass spread over all classes (section 5.4)."""
    beta1: float = 0.9
    """Adam's decay of the mean gradient."""
    beta2: float = 0.98
    """Adam's decay of the mean squared gradient."""
    epsilon: float = 1e-9
    """Adam's epsilon."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW) on matrices; the paper uses none."""
    clip_norm: float = 1.0
    """Gradient norm above which gradients are scaled down; 0 switches clipping off."""
    evaluate_every: int = 50
    """Steps between evaluations."""
    evaluate_pairs: int = 200
    """Validation pairs translated and scored at each evaluation."""
    test_pairs: int = 1_000
    """Pairs of each held-out split translated and scored at the end, for the card."""
    average_last: int = 1
    """Weights of this many last evaluations are averaged into the final weights (section 6.1); 1 keeps the last."""
    seed: int = 0
    """Seed of initial weights, data order and dropout."""
    device: str = "auto"
    """cpu, cuda, cuda:N, mps, or auto for the best one present."""
    precision: Precision = "auto"
    """float32, bfloat16 autocast, or auto for what measures faster on the device."""
    threads: int | None = None
    """CPU threads; None leaves the choice to the trainer."""
    compile: bool = False
    """Compile the forward pass with torch.compile; pays on a GPU, not on two cores."""

    def __post_init__(self) -> None:
        _check_types(self)
        for name in (
            "max_steps",
            "batch_tokens",
            "accumulate",
            "evaluate_every",
            "evaluate_pairs",
            "test_pairs",
            "average_last",
        ):
            _require(getattr(self, name) >= 1, f"{name} ({getattr(self, name)}) must be at least 1")
        for name in ("warmup_steps", "weight_decay", "clip_norm"):
            _require(getattr(self, name) >= 0, f"{name} ({getattr(self, name)}) must not be negative")
        for name in ("max_seconds", "patience", "threads"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name} ({value}) must be above 0, or left empty")
        for name in ("learning_rate", "epsilon"):
            _require(getattr(self, name) > 0, f"{name} ({getattr(self, name)}) must be above 0")
        for name in ("beta1", "beta2", "label_smoothing"):
            _require(0 <= getattr(self, name) < 1, f"{name} ({getattr(self, name)}) must lie in [0, 1)")
        target = self.target_exact_match
        _require(target is None or 0 < target <= 1, f"target_exact_match ({target}) must lie in (0, 1]")
        _one_of("schedule", self.schedule, ScheduleKind)
        _one_of("precision", self.precision, Precision)

    @property
    def final_weights(self) -> Literal["latest", "averaged", "best"]:
        """Which weights a run ends with: averaged if `average_last` asks, else the best if `patience` may pass them."""
        if self.average_last > 1:
            return "averaged"
        return "latest" if self.patience is None else "best"


def value_text(value: object) -> str:
    """The value of a setting in a word: "yes", "0.001", "–" for none."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
    return str(value)


def missing_parts(model: ModelConfig, train: TrainConfig) -> tuple[str, ...]:
    """The parts of the paper's model and training that these settings leave out, each as a phrase."""
    left_out = {
        "no causal mask": not model.causal_mask,
        "no positions": model.positions == "none",
        "no scaling of scores by 1/√d_k": not model.scale_scores,
        "no residual connections": not model.residual,
        "no layer norm": model.norm == "none",
        "no label smoothing": train.label_smoothing == 0,
        "no warm-up": train.warmup_steps == 0,
    }
    return tuple(phrase for phrase, missing in left_out.items() if missing)


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """How a translation is chosen."""

    method: DecodeMethod = "greedy"
    """The most probable token each time, a beam of hypotheses, or tokens drawn by lot."""
    max_length: int | None = None
    """Most tokens written, the end token included; None: as many as the model can."""
    min_length: int = 0
    """At least this many tokens, the end token included."""
    no_repeat_ngram: int = 0
    """No n tokens in a row are written twice; 0 allows it."""
    n_best: int = 1
    """Outputs for each text: the best of the beam, or as many samples."""
    beam: int = 4
    """Hypotheses kept for each sentence (method beam)."""
    alpha: float = 0.6
    """Strength of the length norm by which a hypothesis's log-probability is divided (method beam)."""
    length_norm: LengthNorm = "paper"
    """paper: ((5 + length) / 6) ** alpha. length: length ** alpha, as in fairseq and transformers (method beam)."""
    early_stopping: bool = True
    """Stop when as many hypotheses as the beam is wide have ended, or only when none can be overtaken (method beam)."""
    temperature: float = 1.0
    """Log-probabilities are divided by it: below 1 sharpens, above 1 flattens (method sample)."""
    top_k: int = 0
    """Draw from the k most probable tokens; 0 from all (method sample)."""
    top_p: float = 1.0
    """Draw from the fewest tokens that together have this probability (method sample)."""
    min_p: float = 0.0
    """Draw from tokens at least this fraction as probable as the most probable one (method sample)."""
    seed: int = 0
    """Of the draws (method sample)."""
    cache: bool = True
    """Keep keys and values between steps; switched off where an intervention would make them wrong."""

    def __post_init__(self) -> None:
        _check_types(self)
        _one_of("method", self.method, DecodeMethod)
        longest = self.max_length
        _require(longest is None or longest >= 1, f"max_length ({longest}) must be at least 1")
        for name in ("min_length", "no_repeat_ngram"):
            _require(getattr(self, name) >= 0, f"{name} ({getattr(self, name)}) must not be negative")
        _require(
            longest is None or self.min_length <= longest,
            f"min_length ({self.min_length}) must not be above max_length ({longest})",
        )
        check_beam(self.beam, self.alpha, self.length_norm)
        check_sampling(self.temperature, self.top_k, self.top_p, self.min_p)
        _require(0 <= self.seed < 2**63, f"seed ({self.seed}) must lie between 0 and 2 ** 63 - 1")
        self._check_n_best()
        for field in fields(self):
            meant = _METHOD_OF.get(field.name, self.method)
            value = getattr(self, field.name)
            _require(
                meant == self.method or value == field.default,
                f"{field.name} ({value}) is for the method {meant} and would do nothing: the method is {self.method}",
            )

    def _check_n_best(self) -> None:
        most = {"greedy": 1, "beam": self.beam, "sample": 1_000}[self.method]
        why = {"greedy": "greedy has one output", "beam": f"the beam holds {most}", "sample": f"at most {most:,}"}
        _require(1 <= self.n_best <= most, f"n_best ({self.n_best}) must lie between 1 and {most}: {why[self.method]}")


_METHOD_OF: dict[str, DecodeMethod] = {
    **dict.fromkeys(("beam", "alpha", "length_norm", "early_stopping"), "beam"),
    **dict.fromkeys(("temperature", "top_k", "top_p", "min_p", "seed"), "sample"),
}


def check_beam(size: int, alpha: float, norm: str) -> None:
    """Refuses a beam that cannot be searched, in a sentence."""
    _require(1 <= size <= WIDEST_BEAM, f"beam ({size}) must lie between 1 and {WIDEST_BEAM}")
    _require(0 <= alpha <= 10, f"alpha ({alpha}) must lie between 0 (no length norm) and 10")
    _one_of("length_norm", norm, LengthNorm)


def check_sampling(temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    """Refuses what no distribution can be made of, in a sentence."""
    _require(
        0.01 <= temperature <= 100,
        f"temperature ({temperature}) must lie between 0.01 and 100; for the most probable token each time: greedy",
    )
    _require(top_k >= 0, f"top_k ({top_k}) must not be negative; 0 draws from all tokens")
    _require(0 < top_p <= 1, f"top_p ({top_p}) must lie above 0 and up to 1; 1 draws from all tokens")
    _require(0 <= min_p <= 1, f"min_p ({min_p}) must lie between 0 and 1; 0 draws from all tokens")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _check_types(config: Any) -> None:
    """Refuses text, fractions and not-a-number where a number is due, as a hand-edited file may hold them."""
    for field in fields(config):
        value, kinds = getattr(config, field.name), get_args(field.type) or (field.type,)
        said = f"{field.name} ({value!r}) must be"
        if value is None and NoneType in kinds:
            continue
        if int in kinds:
            _require(isinstance(value, int) and not isinstance(value, bool), f"{said} a whole number")
        elif float in kinds:
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            _require(number, f"{said} a number")
        elif bool in kinds:
            _require(isinstance(value, bool), f"{said} true or false")
        elif str in kinds:
            _require(isinstance(value, str), f"{said} a text")


def _one_of(name: str, value: str, choices: object) -> None:
    allowed = choices.__args__  # type: ignore[attr-defined]
    _require(value in allowed, f"{name} ({value!r}) must be one of: {', '.join(allowed)}")


PRESETS: dict[str, ModelConfig] = {
    "tiny": ModelConfig(d_model=64, n_heads=4, d_ff=256, n_encoder_layers=2, n_decoder_layers=2, max_length=64),
    "small": ModelConfig(d_model=128, n_heads=4, d_ff=512, n_encoder_layers=2, n_decoder_layers=2, max_length=128),
    "medium": ModelConfig(d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=3, n_decoder_layers=3, max_length=128),
    "paper-base": ModelConfig(),
    "paper-big": ModelConfig(d_model=1024, n_heads=16, d_ff=4096, dropout=0.3, embedding_dropout=0.3),
}
"""Named sizes. The vocabulary of a preset is replaced by that of the tokenizer when a run is made."""
