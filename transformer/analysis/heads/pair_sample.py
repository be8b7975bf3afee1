"""The sentence pairs that heads are measured on, with what is said about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from transformer.checkpoints.store import Checkpoint
from transformer.data.corpus_snapshot import load_own
from transformer.data.tasks import AlignmentUnit
from transformer.text.pairs import Pair
from transformer.training.evaluation import fitting

VALIDATION = "validation pairs"


@dataclass(frozen=True)
class PairSample:
    """A sample of pairs."""

    pairs: tuple[Pair, ...]
    total: int
    """The number of pairs to choose from."""
    what: str = "pairs"
    """The kind of pairs, as in "validation pairs"."""
    unit: AlignmentUnit = "word"
    own_output: bool = False
    """True where the targets are the model's own translations."""

    @property
    def description(self) -> str:
        """The sample in words: "500 of 20,542 validation pairs"."""
        n = len(self.pairs)
        return (
            f"{n:,} of {self.total:,} {self.what}" if n < self.total else f"{'all ' if n > 1 else ''}{n:,} {self.what}"
        )

    @property
    def file_name(self) -> str:
        """The number of pairs, as a part of the name of a file."""
        n = len(self.pairs)
        return f"{n}-of-{self.total}-pairs" if n < self.total else f"{n}-pairs"

    @property
    def is_validation(self) -> bool:
        """True where `validation_sample` made it."""
        return self.what.startswith(VALIDATION)

    @cached_property
    def digest(self) -> bytes:
        """A hash of the pairs."""
        return blake2b(repr((self.unit, self.own_output, self.pairs)).encode()).digest()

    def first(self, count: int | None) -> "PairSample":
        """Returns the first `count` of them; None: all."""
        return self if count is None or count >= len(self.pairs) else replace(self, pairs=self.pairs[:count])


def validation_sample(checkpoint: Checkpoint, count: int | None = None) -> PairSample:
    """Returns the first validation pairs of a model's corpus that fit it; AbsentCorpus or ValueError without any."""
    corpus = load_own(checkpoint.settings.corpus, checkpoint.folder)
    pairs: Sequence[Pair] = corpus.validation
    found = fitting(pairs, checkpoint.tokenizer, checkpoint.model.config.max_length, len(pairs))
    what = f"{VALIDATION} that fit into the model" if len(found) < len(pairs) else VALIDATION
    return PairSample(tuple(found), len(found), what, corpus.alignment_unit).first(count)
