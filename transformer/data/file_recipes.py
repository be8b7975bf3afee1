"""Recipes for files of pairs: the sizes, dropout and length of training that suit what a file holds.

Measured on samples of Tatoeba's sentences (BENCHMARKS.md, "Recipes for files"); the largest size is the paper's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from transformer.config import PRESETS, CorpusConfig, ScheduleKind, TrainConfig
from transformer.data.corpora import Corpus, CorpusError
from transformer.data.corpus_cache import prepared, stamp
from transformer.data.recipes import MUON, RECIPES, Recipe
from transformer.data.statistics import longer_sides, spaced
from transformer.text.scripts import Unspaced, unspaced_characters, unspaced_script
from transformer.text.tokenizer import Tokenizer, TokenizerError, TokenizerKind

SAMPLE = 2_000
"""Training pairs, evenly spaced, whose lengths are looked at."""
PADDING = 1.1
"""Tokens of a batch for each real one."""
_OF_FILES = replace(MUON, learning_rate=6e-3, warmup_steps=50, evaluate_pairs=500)
_ROOM = (64, 128, 256, 512)
"""The lengths to choose from, below the most."""
_MOST_ROOM = 1_024
_UNITS: dict[TokenizerKind, str] = {"words": "words", "char": "characters", "bpe": "pieces", "unigram": "pieces"}
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
FEWEST_STEPS, FEWEST_OF_CHARACTERS = 300, 500
"""The least steps for a file, and for one where each character is a token, of which 300 left a twentieth unlearned."""


def recipe_for(config: CorpusConfig) -> Recipe:
    """Returns the recipe of a corpus that comes with the lab, or of a file as its tokenizer cuts it; where the file
    cannot be read, the one for few pairs, without reasons."""
    if config.name in RECIPES:
        return RECIPES[config.name]
    try:
        return _of_file(config, stamp(config))
    except (CorpusError, TokenizerError):
        return replace(_recipe(SIZES[0], 1, [1], "", ""), why=())


@lru_cache(maxsize=64)
def _of_file(config: CorpusConfig, stamp: tuple[int, int]) -> Recipe:
    try:
        return file_recipe(*prepared(config))
    except TokenizerError:  # of a tokenizer that cannot be made it is told where that is chosen
        return file_recipe(*prepared(replace(config, tokenizer="auto", vocab_size=None)))


def file_recipe(corpus: Corpus, tokenizer: Tokenizer) -> Recipe:
    """Returns the recipe that suits the training pairs of a file, with its reasons."""
    n_pairs = len(corpus.train)
    size = next((size for size in SIZES if n_pairs <= size.pairs), None)
    if size is None:
        return _paper_recipe(n_pairs)
    lengths = sorted(longer_sides(spaced(corpus.train, SAMPLE), tokenizer).tolist())
    script = _script_of_single_characters(tokenizer)
    least = FEWEST_STEPS if script is None else FEWEST_OF_CHARACTERS
    return _recipe(size, n_pairs, lengths, _UNITS[tokenizer.kind], _vocabulary(tokenizer, script), least)


def _recipe(
    size: Size, n_pairs: int, lengths: Sequence[int], unit: str, vocabulary: str, least: int = FEWEST_STEPS
) -> Recipe:
    """Returns the recipe for so many pairs, with the ascending lengths of some in a unit of text."""
    mean, long = sum(lengths) / len(lengths), lengths[int(0.999 * (len(lengths) - 1))]
    steps_an_epoch = n_pairs * mean * PADDING / size.batch_tokens
    steps = max(least, 100 * round(size.epochs * steps_an_epoch / 100))
    epochs = steps / steps_an_epoch
    preset = PRESETS[size.preset]
    max_length = next((room for room in _ROOM if 1.5 * long < room), _MOST_ROOM)
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
            "layers. A larger model would memorise so few pairs; a smaller one couldn't capture them.",
            f"Dropout {size.dropout:g}: each pair is seen about {epochs:,.0f} times, and the fewer pairs there are, "
            "the sooner they are memorised.",
            vocabulary,
            f"{steps:,} steps of {size.batch_tokens:,} tokens come to {epochs:,.0f} times all pairs, at about "
            f"{mean:.0f} {unit} per sentence.",
            f"Up to {max_length:,} {unit} per sentence: of 1,000 pairs at most one is longer than about {long:,}.",
            f"Muon, peak rate {size.learning_rate:g}, {_SCHEDULES[size.schedule]}: lower in the end than Adam.",
        ),
    )


def _script_of_single_characters(tokenizer: Tokenizer) -> Unspaced | None:
    """Returns the script without spaces each of whose characters is a token; None where there is none."""
    pieces = [piece for piece in tokenizer.vocabulary() if unspaced_characters([piece], least=1)]
    return unspaced_script(pieces) if all(piece in unspaced_characters([piece], least=1) for piece in pieces) else None


def _vocabulary(tokenizer: Tokenizer, script: Unspaced | None) -> str:
    """Returns the sentence about the vocabulary."""
    number, unit = f"A vocabulary of {tokenizer.vocab_size:,}", _UNITS[tokenizer.kind]
    if unit != "pieces":
        return f"{number} {unit}, special tokens counted."
    if script is None:
        return f"{number} pieces, so that each is seen often enough; in text with few different words they are fewer."
    return (
        f"{number} pieces; of {script} text, which has no spaces between words, each character is one: longer pieces "
        "would be whole clauses, too rare to be learned."
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
