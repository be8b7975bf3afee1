"""Parts that all tokenizers share: the special tokens, checks of ids and texts, the error."""

from collections.abc import Iterable, Sequence

from transformer.setting import Fault

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
UNKNOWN_MARK = "\u2047"
"""The mark of an unknown token in decoded text."""


class TokenizerError(Exception):
    """A tokenizer could not be trained or loaded, for a reason in words or for the fault of a setting.

    `ceiling` is the largest vocabulary that the text allows, where too large a one was the reason; `floor` is the
    smallest, where too small a one was.
    """

    def __init__(self, reason: str | Fault, ceiling: int | None = None, floor: int | None = None) -> None:
        super().__init__(str(reason))
        self.fault = reason if isinstance(reason, Fault) else None
        self.ceiling = ceiling
        self.floor = floor


def checked_ids(ids: Iterable[int], vocab_size: int) -> list[int]:
    """These ids as a list; ValueError for one outside the vocabulary."""
    checked = [int(token) for token in ids]
    for token in checked:
        if not 0 <= token < vocab_size:
            raise ValueError(f"token id ({token}) must lie in 0..{vocab_size - 1}, the vocabulary of {vocab_size}")
    return checked


def check_ids(ids: Iterable[int], vocab_size: int | None) -> None:
    """Raises ValueError for the first id outside 0..vocab_size - 1; None checks nothing."""
    if vocab_size is None:
        return
    for token in ids:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"token id ({token}) is outside the model's vocabulary of {vocab_size}: "
                "the tokenizer and the model do not belong together"
            )


def check_source(
    ids: Sequence[int], *, max_length: int, vocab_size: int | None = None, name: str = "the sentence"
) -> None:
    """Raises ValueError for ids, their end mark not among them, that a model of this size cannot read."""
    if not ids:
        raise ValueError(f"{name} is empty: write at least one word")
    if len(ids) >= max_length:
        raise ValueError(
            f"{name} has {len(ids) + 1:,} tokens, its end mark included, where the model takes at most {max_length:,}: "
            "shorten it"
        )
    check_ids(ids, vocab_size)


def valid_text(text: str) -> str:
    """The text with lone surrogates, which no UTF-8 library takes, replaced by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def refuse_above(ceiling: int, vocab_size: int | None, unit: str) -> None:
    """Raises TokenizerError for a vocabulary larger than what a text allows."""
    if vocab_size is not None and vocab_size > ceiling:
        raise too_large(vocab_size, ceiling, unit)


def too_large(vocab_size: int, ceiling: int, unit: str) -> TokenizerError:
    """The error for such a vocabulary."""
    rule = f"is too large, as this text has different {unit} for at most {ceiling}"
    fault = Fault("vocab_size", rule, f"take {ceiling} or fewer, or leave it empty", {"vocab_size": vocab_size})
    return TokenizerError(fault, ceiling=ceiling)
