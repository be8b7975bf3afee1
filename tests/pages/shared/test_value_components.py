"""Tables and curves on canvases: what reaches the browser is the arrays that were passed, as float32."""

import numpy as np
from streamlit.testing.v1 import AppTest

from pages.shared.components.frontend import packed_arrays, unpacked_arrays
from transformer.figures import theme


def mounted(script):
    """(header, arrays) of every component that the script draws."""
    app = AppTest.from_function(script, default_timeout=30).run()
    assert not app.exception
    return [unpacked_arrays(element.proto.bytes) for element in app.get("bidi_component")]


def test_arrays_come_back_as_they_were_whatever_the_headers_length():
    arrays = [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 4)), np.array([np.nan, 1e-8])]
    for name in ("", "é", "ab", "abc"):
        header, found = unpacked_arrays(packed_arrays({"name": name}, arrays))
        assert header["name"] == name
        for mine, theirs in zip(found, arrays, strict=True):
            assert mine.shape == theirs.shape and np.array_equal(mine, theirs.astype(np.float32), equal_nan=True)


def draw_tables() -> None:
    import numpy as np

    from pages.shared.components.values import Panel, value_tables

    table = np.array([[0.5, -3.0], [np.nan, 1.0]])
    panels = [Panel(table, "</script>", untrained_from=1), Panel(table[:1] / 2, "small", untrained_from=7)]
    value_tables(panels, key="tables")
    value_tables([Panel(np.zeros((1, 2)), "nothing")], key="nothing")


def test_tables_share_one_scale_around_0_and_a_line_only_where_there_is_a_row():
    (header, arrays), (empty, _) = mounted(draw_tables)
    assert header["reach"] == 3.0 and empty["reach"] == 1.0
    assert np.array_equal(arrays[0], np.array([[0.5, -3.0], [np.nan, 1.0]], np.float32), equal_nan=True)
    assert arrays[1].tolist() == [[0.25, -1.5]]
    assert [panel["untrained_from"] for panel in header["panels"]] == [1, None]
    assert header["panels"][0]["title"] == "</script>"
    assert header["scales"]["dark"] == [colour for _, colour in theme.diverging(True)]


def draw_curves() -> None:
    import numpy as np

    from pages.shared.components.values import ValueCurve, value_curves

    x = np.arange(3)
    value_curves([ValueCurve("a", x, x / 2), ValueCurve("b", x, x, x - 1.0, x + 1.0)], axes=("x", "y"), key="curves")


def test_curves_carry_their_bands():
    ((header, arrays),) = mounted(draw_curves)
    assert [(s["name"], s["banded"]) for s in header["series"]] == [("a", False), ("b", True)]
    assert [array.tolist() for array in arrays] == [
        [0, 1, 2], [0, 0.5, 1], [0, 1, 2], [0, 1, 2], [-1, 0, 1], [1, 2, 3],
    ]  # fmt: skip
