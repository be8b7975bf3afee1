"""The components as Streamlit mounts them: what reaches the browser is the array and the text that were passed."""

import base64
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import ndarray
from streamlit.testing.v1 import AppTest

from pages.shared.components.frontend import describe_tokens
from pages.shared.components.head_matrix import head_matrix
from pages.shared.components.tokens import token_chips, token_lines
from transformer.figures import theme
from transformer.views.attention.matrices import HeadMatrix
from transformer.views.attention.matrix_data import MatrixData, Side


def mounted(script: Callable[[], None]) -> list[dict[str, Any]]:
    """The data of every component that the script draws."""
    app = AppTest.from_function(script, default_timeout=30).run()
    assert not app.exception
    return [json.loads(element.proto.json) for element in app.get("bidi_component")]


def unpacked(text: str, dtype: type, shape: tuple[int, ...]) -> ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype).reshape(shape)


def draw_lines() -> None:
    import numpy as np

    from pages.shared.components.tokens import token_lines

    weights = np.random.default_rng(0).random((2, 3), dtype=np.float32)
    token_lines(
        ["▁it", "</script>", "</s>"],
        ["▁il", "\n"],
        weights,
        kind="cross",
        source_unseen={1: "</script>"},
        target_changed=[0],
        key="lines",
    )


def test_an_unseen_word_stands_as_it_was_typed_and_says_what_is_read() -> None:
    zebra, animal = describe_tokens(["<unk>", "animal"], unseen={0: "zebra"})
    assert (zebra["text"], zebra["unseen"], zebra["read_as"], zebra["special"]) == ("zebra", True, "<unk>", False)
    assert (animal["text"], animal["unseen"], animal["read_as"]) == ("animal", False, "")


def test_lines_carry_exactly_the_weights() -> None:
    (data,) = mounted(draw_lines)
    expected = np.random.default_rng(0).random((2, 3), dtype=np.float32)
    assert np.array_equal(unpacked(data["weights"], np.float32, (2, 3)), expected)
    assert data["colours"] == {"light": theme.CROSS, "dark": theme.DARK.cross}


def test_tokens_say_what_is_special_about_them() -> None:
    (data,) = mounted(draw_lines)
    it, markup, end = data["source"]
    assert (it["text"], it["starts_word"], it["unseen"]) == ("it", True, False)
    assert (markup["text"], markup["unseen"], markup["special"]) == ("</script>", True, False)
    assert end["special"]
    il, newline = data["target"]
    assert il["changed"] and not newline["changed"]
    assert newline["text"] == "␊"


def draw_grid() -> None:
    import numpy as np
    import streamlit as st

    from pages.shared.components.head_grid import head_grid

    weights = np.linspace(0, 1, 2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
    mask = np.array([[[True, False, True, True]] * 2] * 2)
    picked = head_grid(weights, kind="cross", selected=(1, 2), off={(0, 1)}, mask=mask, key="grid")
    head_grid(weights, kind="cross", selected=(0, 0), relative=True, key="relative")
    st.text(picked)


def test_the_grid_shades_each_cell_by_its_weight() -> None:
    absolute, relative = mounted(draw_grid)
    weights = np.linspace(0, 1, 2 * 3 * 2 * 4, dtype=np.float32).reshape(2, 3, 2, 4)
    levels = unpacked(absolute["weights"], np.uint8, weights.shape)
    weights[..., 1] = 0  # masked
    assert np.abs(levels / 255 - weights).max() <= 0.5 / 255 + 1e-6
    assert (unpacked(relative["weights"], np.uint8, weights.shape).max(axis=(2, 3)) == 255).all()
    assert unpacked(absolute["mask"], np.uint8, (2, 2, 4)).tolist() == [[[1, 0, 1, 1]] * 2] * 2
    assert relative["mask"] is None


def draw_large_grid() -> None:
    import numpy as np

    from pages.shared.components.head_grid import head_grid

    weights, mask = np.zeros((1, 1, 150, 40), np.float32), np.ones((1, 150, 40), dtype=bool)
    weights[0, 0, np.arange(150), np.arange(150) % 40] = 1
    weights[0, 0, 0], mask[0, 0, 1:], mask[0, 50:60] = 0.5, False, False
    head_grid(weights, kind="cross", selected=(0, 0), mask=mask, key="large")


def test_a_pixel_of_a_long_sentences_grid_is_the_largest_allowed_weight_of_its_patch() -> None:
    """Two or three rows to a pixel: what is one token wide is not lost, and what no row may see stays masked."""
    (data,) = mounted(draw_large_grid)
    assert data["shape"] == [1, 1, 64, 40] and data["aspect"] == 40 / 150
    levels, mask = unpacked(data["weights"], np.uint8, (64, 40)), unpacked(data["mask"], np.uint8, (64, 40))
    for pixel in range(64):
        rows = range(pixel * 150 // 64, (pixel + 1) * 150 // 64)
        seen = [row for row in rows if not 50 <= row < 60]
        for column in range(40):
            allowed = [row for row in seen if row or not column]
            weights = [0.5 if row == 0 else float(row % 40 == column) for row in allowed]
            assert mask[pixel, column] == bool(allowed)
            assert levels[pixel, column] == round(255 * max(weights, default=0))


def test_the_grid_marks_the_chosen_head_and_those_that_are_off() -> None:
    absolute, _ = mounted(draw_grid)
    assert absolute["selected"] == [1, 2]
    assert absolute["off"] == [[0, 1]]
    app = AppTest.from_function(draw_grid, default_timeout=30).run()
    assert app.text[0].value == "None"


def draw_chips() -> None:
    from pages.shared.components.tokens import token_chips

    token_chips(["▁il", "</s>"], label="after", changed=[0], probabilities=[0.25, 1.0], key="chips")


def test_chips_carry_label_and_probabilities() -> None:
    (data,) = mounted(draw_chips)
    assert data["label"] == "after"
    assert data["probabilities"] == [0.25, 1.0]
    assert [token["changed"] for token in data["tokens"]] == [True, False]


def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"weights of shape \(2, 2\) do not fit 1 target and 2 source tokens"):
        token_lines(["a", "b"], ["c"], np.zeros((2, 2), np.float32), key="lines")
    with pytest.raises(ValueError, match="2 tokens need as many probabilities, not 1"):
        token_chips(["a", "b"], label="x", probabilities=[1.0], key="chips")


def draw_matrix() -> None:
    import numpy as np

    from pages.shared.components.head_matrix import head_matrix
    from transformer.views.attention.entropy import AttentionEntropy
    from transformer.views.attention.matrices import HeadMatrix
    from transformer.views.attention.matrix_data import MatrixData, Side

    values = np.array([[0.1, 0.2, 0.05], [1 / 3, 0.25, 0.3]], dtype=np.float32)
    two, three = ((0,), (1,)), ((0,), (1,), (2,))
    head_matrix(
        HeadMatrix(kind="cross", layer=0, heads=(0,), threshold=0.15, framed=(0, 1)),
        MatrixData(
            values,
            rows=Side(("▁it", "</script>"), two, (False, False)),
            columns=Side(("<unk>", "\u202eb", "</s>"), three, (False, False, True), {0: "<b>zebra</b>"}),
            mask=np.array([[True, True, False], [True, True, True]]),
        ),
        label="a head",
        key="matrix",
    )
    head_matrix(
        AttentionEntropy(kind="cross"),
        MatrixData(
            np.array([[0.1, 0.2], [1 / 3, np.nan]], dtype=np.float32),
            rows=Side(("a", "b"), two, (False, False)),
            columns=Side(("c", "d"), two, (False, False)),
            entries=np.arange(16).reshape(2, 2, 4),
            largest=np.ones((2, 2), np.float32),
            off=True,
        ),
        label="heads",
        key="targets",
    )


def test_the_matrix_carries_the_very_float32_and_says_what_is_not_drawn() -> None:
    plain, targets = mounted(draw_matrix)
    values = np.array([[0.1, 0.2, 0.05], [1 / 3, 0.25, 0.3]], dtype=np.float32)
    np.testing.assert_array_equal(unpacked(plain["values"], np.float32, (2, 3)), values)
    assert unpacked(plain["state"], np.uint8, (2, 3)).tolist() == [[2, 0, 1], [0, 0, 0]]
    assert (plain["unclickable"], plain["chosen"], plain["targets"]) == (True, [0, 1], None)
    assert (plain["weak_label"], targets["weak_label"]) == ("below 0.15", "")
    assert targets["state"] is None and targets["off"] and not targets["unclickable"]
    of_entropy = np.array([[0.1, 0.2], [1 / 3, np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(unpacked(targets["values"], np.float32, (2, 2)), of_entropy)
    assert plain["column_notes"] == ["column 0", "column 1", "column 2"] and targets["column_notes"] == ["", ""]
    assert unpacked(targets["targets"], np.int16, (2, 2, 4)).tolist() == np.arange(16).reshape(2, 2, 4).tolist()
    assert plain["scales"]["light"] != targets["scales"]["light"] == [colour for _, colour in theme.greys()]


def test_tokens_of_the_matrix_are_text_and_whole_on_hover() -> None:
    plain, _ = mounted(draw_matrix)
    assert [token["full"] for token in plain["rows"]] == ["▁it", "</script>"]
    assert [token["full"] for token in plain["columns"]] == ["<b>zebra</b>", "⟨U+202E⟩b", "</s>"]
    assert plain["columns"][0]["unseen"] and plain["columns"][2]["special"]
    assert plain["row_notes"] == ["row 0", "row 1"]


def test_values_that_do_not_fit_their_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 2\) do not fit 1 rows and 2 columns"):
        head_matrix(
            HeadMatrix(kind="cross", layer=0, heads=(0,)),
            MatrixData(
                np.zeros((2, 2), np.float32),
                rows=Side(("a",), ((0,),), (False,)),
                columns=Side(("b", "c"), ((0,), (1,)), (False, False)),
            ),
            label="a head",
            key="matrix",
        )
