"""Combined, merged, cut and thresholded attention: each against a loop over cells."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy import ndarray

from transformer.analysis.attention.aggregation import (
    below,
    combine_heads,
    group_tokens,
    leave_out,
    merge_masks,
    merge_words,
    renormalise,
    row_entropy,
    strongest_head,
)


def attention(heads: int = 3, queries: int = 5, keys: int = 6, seed: int = 0) -> ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(keys), (heads, queries)).astype(np.float32)


@pytest.mark.parametrize("how", ["mean", "max"])
@pytest.mark.parametrize("heads", [(0, 1, 2), (2, 0), (1,)])
def test_heads_are_combined_cell_by_cell(how, heads):
    values = attention()
    found = combine_heads(values, heads, how)
    for row in range(5):
        for column in range(6):
            cells = [float(values[head, row, column]) for head in heads]
            expected = max(cells) if how == "max" else sum(cells) / len(cells)
            assert found[row, column] == pytest.approx(expected, abs=1e-7)
            strongest = strongest_head(values, heads)[row, column]
            assert values[strongest, row, column] == max(np.float32(cell) for cell in cells) and strongest in heads
    assert found.dtype == np.float32


def test_one_head_alone_is_itself_bit_for_bit():
    values = attention()
    for how in ("mean", "max"):
        np.testing.assert_array_equal(combine_heads(values, (1,), how), values[1])


def test_a_mean_of_rows_is_a_row_again():
    np.testing.assert_allclose(combine_heads(attention(), (0, 2), "mean").sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize(("heads", "said"), [((), "no head to combine"), ((0, 3), "head 3 does not exist")])
def test_heads_that_cannot_be_combined_are_refused(heads, said):
    with pytest.raises(ValueError, match=f"{said}.*heads 0 to 2"):
        combine_heads(attention(), heads, "mean")


def test_pieces_of_a_word_are_one_group_and_marks_stand_alone():
    assert group_tokens([-1, 0, 0, 1, 2, 2, 2, -1]) == (0, 1, 1, 2, 3, 3, 3, 4)
    assert group_tokens([-1, -1]) == (0, 1)
    assert group_tokens([]) == ()


def slow_merge(values: ndarray, query_groups: tuple[int, ...], key_groups: tuple[int, ...]) -> list[list[float]]:
    """Merges pieces into words: sums over the pieces of a key word, then averages over the pieces of a query word."""
    merged = []
    for query_word in range(max(query_groups) + 1):
        rows = [row for row, group in enumerate(query_groups) if group == query_word]
        merged.append(
            [
                sum(
                    sum(float(values[row, column]) for column, group in enumerate(key_groups) if group == key_word)
                    for row in rows
                )
                / len(rows)
                for key_word in range(max(key_groups) + 1)
            ]
        )
    return merged


def test_words_are_merged_as_a_loop_over_pieces_says():
    values = attention(1)[0]
    query_groups, key_groups = group_tokens([-1, 0, 0, 1, 1]), group_tokens([0, 0, 0, 1, 2, -1])
    merged = merge_words(values, query_groups, key_groups)
    np.testing.assert_allclose(merged, slow_merge(values, query_groups, key_groups), atol=1e-7)
    np.testing.assert_allclose(merged.sum(axis=-1), 1, atol=1e-6)
    assert merged.shape == (3, 4) and merged.dtype == np.float32


def test_a_merged_cell_may_be_seen_where_any_of_its_pieces_may():
    mask = np.tril(np.ones((4, 4), dtype=bool))
    expected = [[True, False, False], [True, True, False], [True, True, True]]
    np.testing.assert_array_equal(merge_masks(mask, (0, 1, 1, 2), (0, 1, 1, 2)), expected)


def test_what_is_left_out_is_counted_and_nothing_is_renormalised():
    values = attention(1)[0]
    rows, columns = [False, True, False, False, True], [True, False, False, True, False, True]
    kept, hidden = leave_out(values, rows, columns)
    expected, gone, total = [], 0.0, 0.0
    for row in range(5):
        if rows[row]:
            continue
        expected.append([values[row, column] for column in range(6) if not columns[column]])
        gone += sum(float(values[row, column]) for column in range(6) if columns[column])
        total += sum(float(cell) for cell in values[row])
    np.testing.assert_array_equal(kept, expected)
    assert hidden == pytest.approx(gone / total, abs=1e-12)


def test_nothing_is_hidden_where_there_is_nothing():
    assert leave_out(np.zeros((2, 2), np.float32), [False, False], [True, False])[1] == 0
    assert below(np.zeros((2, 2), np.float32), 0.5)[1] == 0


def test_renormalised_rows_sum_to_one_but_for_empty_ones():
    values = attention(1)[0][:, :3].copy()
    values[2] = 0
    found = renormalise(values)
    for row in range(5):
        total = sum(float(cell) for cell in values[row])
        for column in range(3):
            expected = float(values[row, column]) / total if total else 0.0
            assert found[row, column] == pytest.approx(expected, abs=1e-7)


@given(st.floats(0, 1, width=32))
def test_the_threshold_hides_exactly_what_lies_below_it(threshold):
    values = attention(1)[0]
    weak, share = below(values, threshold)
    cells = [(row, column) for row in range(5) for column in range(6)]
    for cell in cells:
        assert weak[cell] == (values[cell] < threshold)
    hidden = sum(float(values[cell]) for cell in cells if values[cell] < threshold)
    assert share == pytest.approx(hidden / sum(float(values[cell]) for cell in cells), abs=1e-12)


@pytest.mark.parametrize("unit", ["nats", "bits"])
def test_entropy_is_the_sum_over_keys_and_at_most_the_log_of_those_allowed(unit):
    log = math.log if unit == "nats" else math.log2
    weights, mask = np.zeros((1, 2, 4, 4), np.float32), np.tril(np.ones((4, 4), dtype=bool))[None]
    generator = np.random.default_rng(1)
    for head in range(2):
        for row in range(4):
            weights[0, head, row, : row + 1] = generator.dirichlet(np.ones(row + 1))
    mask[0, 3] = weights[0, :, 3] = 0
    entropies, largest = row_entropy(weights, mask, unit)
    for head in range(2):
        for row in range(3):
            cells = [float(w) for w in weights[0, head, row] if w > 0]
            total = sum(cells)
            assert entropies[0, head, row] == pytest.approx(-sum(w / total * log(w / total) for w in cells))
            assert entropies[0, head, row] <= largest[0, row] + 1e-9
    assert largest[0, :3].tolist() == pytest.approx([0, log(2), log(3)])
    assert np.isnan(entropies[0, :, 3]).all() and largest[0, 3] == 0
