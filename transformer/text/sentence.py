"""A source sentence as a model reads it: cut into tokens once, with the words that they belong to."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transformer.text.pairs import word_spans, words
from transformer.text.token_ids import EOS, SPECIALS


@dataclass(frozen=True)
class Sentence:
    """A source sentence and its tokens, the end mark included."""

    text: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    """The vocabulary entry of each id."""
    words: tuple[int, ...]
    """The index in `words(text)` of the word of each token; -1 for the end mark and where there is no
    word. White space belongs to the word after it, and at the end to the word before."""
    unseen: tuple[str, ...]
    """The words with a part that was never seen in training, each once, in order."""
    typed: tuple[str, ...]
    """The characters that each token stands for, white space around them left out; none for the end mark."""

    @classmethod
    def cut(
        cls, text: str, ids: Sequence[int], tokens: Sequence[str], spans: Sequence[tuple[int, int]], new: Sequence[bool]
    ) -> "Sentence":
        """Returns the sentence of tokens at these characters; `new` marks those never seen in training."""
        owners = words_at(text, [start for start, _ in spans])
        strange = _words_touched(text, [span for span, is_new in zip(spans, new, strict=True) if is_new])
        typed = [text[start:end].strip() for start, end in spans]
        return cls(text, (*ids, EOS), (*tokens, SPECIALS[EOS]), (*owners, -1), tuple(strange), (*typed, ""))

    @cached_property
    def unseen_tokens(self) -> Mapping[int, str]:
        """The text that each token of an unseen word stands for, by the token's index."""
        if not self.unseen:
            return {}
        found, strange = words(self.text), set(self.unseen)
        places = ((i, found[word]) for i, word in enumerate(self.words) if word >= 0)
        return {i: self.typed[i] or word for i, word in places if word in strange}


def words_at(text: str, starts: Sequence[int]) -> list[int]:
    """Returns the index of the word at each character position, of the next one, or at the end of the last one."""
    ends = [end for _, end in word_spans(text)]
    return [min(bisect_right(ends, start), len(ends) - 1) for start in starts]


def _words_touched(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Returns the words that overlap one of these character spans, each once, in order.

    A span may cover several words, as a run of unseen characters does. Each word is looked at once, however many spans
    there are: pasted text may have a million of either.
    """
    places = word_spans(text)
    ends = [end for _, end in places]
    touched: dict[str, None] = {}
    reached = 0  # all words before this one are settled
    for start, end in sorted(set(spans)):
        reached = max(reached, bisect_right(ends, start))
        while reached < len(places) and places[reached][0] < end:
            touched[text[slice(*places[reached])]] = None
            reached += 1
    return list(touched)
