"""Relates a corpus to the vocabulary and the length of a model, from a sample of its training pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.data.corpora import suited_vocabulary
from transformer.text.pairs import Pair
from transformer.text.scripts import unspaced_characters
from transformer.text.tokenizer import Tokenizer

SAMPLE = 1_000
"""Pairs that are cut into tokens to estimate the rest."""


@dataclass(frozen=True)
class Proportions:
    """A training split as one model's tokenizer cuts it."""

    n_pairs: int
    vocab_size: int
    max_length: int
    tokens_a_pair: float
    """Source and target together, special tokens not counted; the mean of the sample."""
    longest: int
    """Tokens of the longest side of the sample, its end mark included."""
    too_long: float
    """Share of the sample that is longer than the model takes, and is so left out of training."""
    suited: int
    """The largest vocabulary that is proposed for so many pairs, characters of scripts without spaces among them."""

    @property
    def tokens_an_entry(self) -> float:
        """The mean number of times that an entry of the vocabulary occurs in the split."""
        return self.n_pairs * self.tokens_a_pair / self.vocab_size


def proportions(pairs: Sequence[Pair], tokenizer: Tokenizer, max_length: int) -> Proportions | None:
    """Measures a sample of the pairs, spread evenly over all of them; None where there are none."""
    if not pairs:
        return None
    chosen = [pairs[i * len(pairs) // SAMPLE] for i in range(SAMPLE)] if len(pairs) > SAMPLE else list(pairs)
    sides = [(len(tokenizer.encode(pair.source)), len(tokenizer.encode(pair.target))) for pair in chosen]
    return Proportions(
        n_pairs=len(pairs),
        vocab_size=tokenizer.vocab_size,
        max_length=max_length,
        tokens_a_pair=sum(map(sum, sides)) / len(sides),
        longest=1 + max(map(max, sides)),
        too_long=sum(max(pair) + 1 > max_length for pair in sides) / len(sides),
        suited=suited_vocabulary(len(pairs)) + len(unspaced_characters(tokenizer.vocabulary(), least=1)),
    )
