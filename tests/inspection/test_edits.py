"""The alignment of two sequences against every alignment there is."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from transformer.inspection.token_alignment import align, edit_marks

short = st.text(alphabet="abc", max_size=6)


@cache
def fewest_edits(a: str, b: str) -> tuple[int, int]:
    """Levenshtein's distance by its recursive definition, and the elements changed by the best of as few edits."""
    if not a or not b:
        return len(a) + len(b), len(a) + len(b)
    both, gone, new = fewest_edits(a[1:], b[1:]), fewest_edits(a[1:], b), fewest_edits(a, b[1:])
    differ = a[0] != b[0]
    return min((both[0] + differ, both[1] + 2 * differ), (gone[0] + 1, gone[1] + 1), (new[0] + 1, new[1] + 1))


@given(short, short)
def test_an_alignment_holds_every_element_once_in_order_with_the_fewest_edits_and_changes(a, b):
    pairs = align(a, b)
    assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
    assert [j for _, j in pairs if j is not None] == list(range(len(b)))
    assert (None, None) not in pairs
    edits = sum(i is None or j is None or a[i] != b[j] for i, j in pairs)
    assert (edits, sum(map(len, edit_marks(a, b)))) == fewest_edits(a, b)


def test_one_word_for_another_is_one_substitution():
    assert align(["il", "est", "las"], ["elle", "est", "las"]) == ((0, 0), (1, 1), (2, 2))
    assert align(["a", "b", "c"], ["a", "c"]) == ((0, 0), (1, None), (2, 1))
