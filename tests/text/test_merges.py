"""BPE's merges by hand: applied all, they are the tokenizer's own segmentation; applied in part, an earlier one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.merges import Merge, marked, merge_ranks, merges, spelled
from transformer.text.tokenizer import train_tokenizer

TEXTS = ["low lower lowest", "new newer newest", "wide wider widest", "aaa aaaa aaaaa"] * 9
BPE = train_tokenizer("bpe", TEXTS, 300)
RANKS = merge_ranks(BPE)


def last(text: str) -> list[str]:
    """The pieces of a text after all merges, in bytes where there is none."""
    found = merges(RANKS, text)
    pieces = found[-1].pieces if found else tuple(marked(text))
    known = set(BPE.vocabulary())
    return [part for piece in pieces for part in ((piece,) if piece in known else spelled(piece))]


@given(st.text(alphabet="lowernstida \u2581é🦔", max_size=30))
def test_all_merges_give_the_tokenizers_own_pieces(text):
    assert last(text) == [BPE.piece(token) for token in BPE.encode(text)]


def test_a_merge_joins_the_pair_that_was_learned_first_wherever_it_stands():
    first, *_ = found = merges({"ab": 0, "abc": 1, "bc": 2}, "abc ab")
    assert found == (
        Merge(0, "a", "b", (1, 5), ("▁", "ab", "c", "▁", "ab")),
        Merge(1, "ab", "c", (1,), ("▁", "abc", "▁", "ab")),
    )
    assert first.piece == "ab"


def test_equal_neighbours_are_joined_from_the_left():
    assert merges({"aa": 0}, "aaa")[-1].pieces == ("▁", "aa", "a")


def test_each_merge_was_learned_before_those_that_need_it():
    assert all(any(RANKS[piece] > RANKS.get(part, -1) for part in (piece[:-1], piece[1:])) for piece in RANKS)
    assert sorted(RANKS.values()) == list(range(len(RANKS)))


def test_a_tokenizer_that_learned_no_merges_says_so():
    with pytest.raises(ValueError, match="a char tokenizer learns no merges"):
        merge_ranks(train_tokenizer("char", TEXTS))
