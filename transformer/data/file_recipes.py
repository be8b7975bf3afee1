"""Recipes for files of pairs: the sizes, dropout and length of training that suit what a file holds.

Measured on samples of Tatoeba's sentences (BENCHMARKS.md, "Recipes for files"); the largest size is the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from transformer.config import PRESETS, CorpusConfig, ScheduleKind, TrainConfig
from transformer.data.corpora import Corpus, CorpusError, suited_vocabulary
from transformer.data.corpus_cache import loaded, stamp
from transformer.data.recipes import MUON, RECIPES, Recipe
from transformer.text.pairs import Pair, words

SAMPLE = 2_000
"""Training pairs, evenly spaced, whose lengths are looked at."""
PIECES_PER_WORD = 1.4
BYTES_PER_PIECE = 5
"""The bytes of a piece in text without spaces between words: a character of Chinese has three."""
PADDING = 1.1
"""Tokens of a batch for each real one."""
_OF_FILES = replace(MUON, learning_rate=6e-3, warmup_steps=50, evaluate_pairs=500)
_PAPER = TrainConfig(
    max_steps=100_000,
    learning_rate=7e-4,  # eq. 3 at d_model 512
    warmup_steps=4_000,
    batch_tokens=4_096,
    accumulate=6,  # about 25,000 tokens a side (section 5.1)
    evaluate_every=1_000,
    evaluate_pairs=1_000,
    average_last=5,
)

_SCHEDULES: dict[ScheduleKind, str] = {
    "cosine": "then along a cosine to 0",
    "wsd": "then straight to 0 over the last 60 % of the steps",
}


@dataclass(frozen=True)
class Size:
    """The settings that suit a file of up to `pairs` training pairs."""

    pairs: int
    preset: str
    dropout: float
    batch_tokens: int
    epochs: int
    schedule: ScheduleKind = "cosine"
    learning_rate: float = 6e-3


SIZES = (
    Size(1_000, "tiny", 0.3, 1_024, 40),
    Size(10_000, "small", 0.3, 1_024, 40),
    Size(60_000, "small", 0.2, 2_048, 15),
    Size(1_000_000, "medium", 0.15, 3_072, 16, "wsd", 3e-3),
)
"""The sizes below the paper's, ascending."""


def recipe_for(name: str, columns: str | None = None) -> Recipe:
    """Returns the recipe of a corpus that comes with the lab, or of a file by its path and columns; where the file
    cannot be read, the one for few pairs."""
    if name in RECIPES:
        return RECIPES[name]
    config = CorpusConfig(name=name, columns=columns)
    try:
        return _of_file(config, stamp(config))
    except CorpusError:
        return replace(_recipe(SIZES[0], [Pair("", "")]), why=())


@lru_cache(maxsize=8)
def _of_file(config: CorpusConfig, stamp: tuple[int, int]) -> Recipe:
    return file_recipe(loaded(config))


def file_recipe(corpus: Corpus) -> Recipe:
    """Returns the recipe that suits the training pairs of a file, with its reasons."""
    size = next((size for size in SIZES if len(corpus.train) <= size.pairs), None)
    if size is None:
        return _paper_recipe(len(corpus.train))
    return _recipe(size, corpus.train)


def _recipe(size: Size, pairs: Sequence[Pair]) -> Recipe:
    n_pairs = len(pairs)
    lengths = _lengths(pairs)
    mean, long = sum(lengths) / len(lengths), lengths[int(0.999 * (len(lengths) - 1))]
    steps = max(300, 100 * round(size.epochs * n_pairs * mean * PADDING / size.batch_tokens / 100))
    preset = PRESETS[size.preset]
    max_length = next((fits for fits in (64, 128, 256) if 1.5 * long < fits), 512)
    return Recipe(
        preset=size.preset,
        model=replace(preset, dropout=size.dropout, embedding_dropout=size.dropout, max_length=max_length),
        train=replace(
            _OF_FILES,
            schedule=size.schedule,
            learning_rate=size.learning_rate,
            batch_tokens=size.batch_tokens,
            max_steps=steps,
            evaluate_every=max(50, 10 * round(steps / 200)),
        ),
        why=(
            f"{n_pairs:,} pairs: d_model {preset.d_model}, {preset.n_encoder_layers} + {preset.n_decoder_layers} "
            "layers. A larger model would learn so few by heart, a smaller one could not hold what is in them.",
            f"Dropout {size.dropout:g}: each pair is seen about {size.epochs} times, and the fewer pairs there are the "
            "sooner they are known by heart.",
            f"A vocabulary of {suited_vocabulary(n_pairs):,} pieces, so that each is seen often enough; more where the "
            "text has more different characters, fewer where it has too few words.",
            f"{steps:,} steps of {size.batch_tokens:,} tokens come to {size.epochs} times all pairs, at about "
            f"{mean:.0f} tokens per sentence.",
            f"Up to {max_length} tokens per sentence: of 1,000 pairs at most one is longer than about {long}.",
            f"Muon, peak rate {size.learning_rate:g}, {_SCHEDULES[size.schedule]}: lower in the end than Adam.",
        ),
    )


def _paper_recipe(n_pairs: int) -> Recipe:
    return Recipe(
        preset="paper-base",
        model=PRESETS["paper-base"],
        train=_PAPER,
        why=(
            f"{n_pairs:,} pairs: the paper's base model, optimiser and schedule, which were made for 4.5 million pairs "
            "(section 5).",
            "100,000 steps of about 25,000 tokens take half a day on 8 GPUs (section 5.2); on processors, months: "
            "there, train on a part of the file.",
        ),
    )


def _lengths(pairs: Sequence[Pair]) -> list[int]:
    """The estimated tokens of the longer side of some pairs, ascending."""
    step = max(1, len(pairs) // SAMPLE)
    return sorted(max(_n_pieces(pair.source), _n_pieces(pair.target)) for pair in pairs[::step])


def _n_pieces(text: str) -> int:
    return 1 + round(max(PIECES_PER_WORD * len(words(text)), len(text.encode()) / BYTES_PER_PIECE))
