"""Exports: exact numbers in both formats, a file that needs no network, a link that holds everything."""

import base64
import io
import json
import zlib

import numpy as np
import pytest

from pages.shared.url.address import link_to
from pages.shared.url.packed_link import LONGEST, CannotOpen, as_file, from_file, pack, unpack
from transformer.figures import theme
from transformer.figures.export import html_document, matrix_figure, overview_figure
from transformer.figures.tables import as_csv, as_npz, column_table, matrix_table

WEIGHTS = np.random.default_rng(0).random((2, 3), dtype=np.float32)
TABLE = matrix_table("weight", WEIGHTS, ["a", 'b,"'], ["x", "</script>", "=1"])


def matrix(**options):
    return matrix_figure(
        WEIGHTS, list(TABLE.index), list(TABLE.columns), kind="cross", titles=("row", "column"), **options
    )


def test_csv_reads_back_exactly():
    import csv

    head, *rows = csv.reader(io.StringIO(as_csv([TABLE])))
    assert head == ["weight", "x", "</script>", "=1"] and [row[0] for row in rows] == list(TABLE.index)
    assert np.array_equal(np.array([row[1:] for row in rows], dtype=np.float32), WEIGHTS)


def test_npz_reads_back_without_pickles():
    with np.load(io.BytesIO(as_npz([TABLE]))) as found:
        assert np.array_equal(found["weight"], WEIGHTS) and found["weight"].dtype == np.float32
        assert found["weight columns"].tolist() == list(TABLE.columns)


def test_each_column_keeps_its_type_and_a_column_without_values_is_left_out():
    columns = {"id": np.array([7, 8]), "p": np.array([0.1, 1e-9], dtype=np.float32), "may": np.array([True, False])}
    table = column_table("step", ["a", "b"], {**columns, "before": None})
    assert as_csv([table, TABLE[["x"]]]).splitlines()[:4] == ["step,id,p,may", "a,7,0.1,True", "b,8,1e-09,False", ""]
    with np.load(io.BytesIO(as_npz([table]))) as found:
        assert np.array_equal(found["step"], np.stack(list(columns.values()), axis=-1))
    with pytest.raises(ValueError, match="Length of values"):
        column_table("step", ["a"], columns)


def test_texts_and_numbers_that_are_none_are_saved_as_they_are():
    odd = np.array([[np.nan, np.inf], [-0.0, 1e300]])
    half, words = matrix_table("odd", odd, ["\ud800", ""], ["x", "x"]), np.array([["=1", "a\nb"]])
    texts = matrix_table("words", words, ["r"], ["c", "d"])
    assert as_csv([half, texts]) == 'odd,x,x\n\ud800,nan,inf\n,-0.0,1e+300\n\nwords,c,d\nr,=1,"a\nb"\n'
    with np.load(io.BytesIO(as_npz([half, texts]))) as found:
        assert np.array_equal(found["words"], words) and np.array_equal(found["odd"], odd, equal_nan=True)
        assert found["odd rows"].tolist() == ["\ud800", ""]


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="1 row and 3 column labels do not fit weight"):
        matrix_table("weight", WEIGHTS, ["a"], ["x", "y", "z"])
    with pytest.raises(ValueError, match="2 row and 1 column labels"):
        matrix_figure(WEIGHTS, ["a", "b"], ["c"], kind="cross", titles=("", ""))


def test_the_html_file_asks_for_nothing_and_takes_no_token_for_markup():
    page = html_document(matrix(), title="</title><b>", heading="Head & matrix", said="<script>alert(1)</script>")
    assert 1_000_000 < len(page) < 5_500_000  # plotly.js is inside, which the page says
    assert "<script src=" not in page and 'src="http' not in page and "cdn.plot.ly" not in page.split("</script>")[-1]
    assert "<h1>Head &amp; matrix</h1>" in page and "&lt;script&gt;alert(1)" in page and "</title><b>" not in page
    drawing = page[page.index("Plotly.newPlot") :] if "Plotly.newPlot" in page else page
    assert drawing.count("</script>") == 1


def test_the_figure_shows_these_numbers_and_hides_masked_ones():
    mask = np.array([[True, False, True], [True, True, True]])
    (trace,) = matrix(mask=mask).data
    assert np.isnan(trace.z[0, 1]) and trace.z[1, 2] == WEIGHTS[1, 2]
    assert trace.customdata[0][1].endswith(", masked") and str(WEIGHTS[1, 2]) in trace.customdata[1][2]
    assert matrix(dark=True).layout.paper_bgcolor != matrix().layout.paper_bgcolor


def test_values_below_the_least_are_not_drawn_and_masked_ones_stay_masked():
    mask = np.array([[False, True, True], [True, True, True]])
    least = float(np.sort(WEIGHTS.ravel())[3])  # three of six lie below it
    trace, blank = matrix(mask=mask, least=least).data
    hidden = WEIGHTS < least
    assert np.array_equal(np.isnan(trace.z), hidden | ~mask)
    assert np.array_equal(blank.z == 1, hidden & mask) and {c for _, c in blank.colorscale} == {theme.LIGHT.background}
    texts = [text for row in trace.customdata for text in row]
    assert [text.endswith(", not drawn") for text in texts] == (hidden & mask).ravel().tolist()


def test_each_state_of_a_cell_is_marked_and_named():
    mask = np.array([[False, True, True], [True, False, True]])
    forbidden = np.array([[False, False, False], [False, True, False]])
    fig = matrix(mask=mask, forbidden=forbidden, least=2.0)
    slants, crosses = (shape.path for shape in fig.layout.shapes)
    assert slants == "M-0.25,0.25L0.25,-0.25" and crosses == "M0.75,1.25L1.25,0.75 M0.75,0.75L1.25,1.25"
    assert fig.layout.shapes[1].line.color == theme.LIGHT.cross
    (said,) = fig.layout.annotations
    assert said.text == "╱ masked<br>✕ forbidden by a switch<br>blank: below 2"
    assert fig.layout.height == matrix().layout.height + 45 and not matrix().layout.annotations
    assert fig.data[0].customdata[1][1].endswith(", forbidden by a switch")
    assert [s.path for s in matrix(forbidden=forbidden).layout.shapes] == [crosses]
    assert np.isnan(matrix(forbidden=forbidden).data[0].z[1, 1])


@pytest.mark.parametrize(("size", "numbered"), [(2, True), (22, True), (23, False)])
def test_cells_with_room_hold_their_number_at_a_size_of_its_own(size, numbered):
    """Without a size Plotly fits the text's markup into the cell, and the number shrinks to a dot."""
    names = [f"t{i}" for i in range(size)]
    weights = np.full((size, size), 0.456, dtype=np.float32)
    (trace,) = matrix_figure(weights, names, names, kind="cross", titles=("row", "column")).data
    assert (trace.text is not None) == numbered and trace.textfont.size == 11
    if numbered:
        assert ">0.46<" in trace.text[0][0]


def test_the_overview_has_every_head_in_its_place():
    weights = np.random.default_rng(1).random((2, 3, 4, 5), dtype=np.float32)
    fig = overview_figure(weights, kind="encoder_self")
    assert len(fig.data) == 6
    assert np.array_equal(fig.data[4].z, weights[1, 1])
    assert fig.layout.yaxis5.domain[1] < fig.layout.yaxis.domain[0] + 1e-9
    assert {"head 2", "layer 1"} <= {note.text for note in fig.layout.annotations}


PARAMETERS = {"model": "m", "text": "a & b → <c>", "switch": ["off:decoder.0.cross:1", "mask:causal"]}


def test_a_packed_link_holds_everything():
    assert unpack(pack(PARAMETERS)) == PARAMETERS
    long = {**PARAMETERS, "text": "the cat and the dog " * 90}
    link = link_to("http://localhost:8501/masks?x=1", "attention", long)
    assert link is not None and link.startswith("http://localhost:8501/attention?view=") and len(link) <= LONGEST
    assert link_to("http://h/base/attention", "masks", {"model": "m"}) == "http://h/base/masks?model=m"
    assert link_to("http://h/attention", "home", {"model": "m"}) == "http://h/?model=m"
    noise = "".join(chr(int(c)) for c in np.random.default_rng(0).integers(0x4E00, 0x9FFF, 2_000))
    assert link_to("http://localhost/x", "attention", {"text": noise}) is None


@pytest.mark.parametrize("text", ["", "%%%", "abc", pack(PARAMETERS)[:-9], "é"])
def test_a_broken_link_is_refused_in_a_sentence(text):
    with pytest.raises(CannotOpen, match="The view in the link"):
        unpack(text)


def test_a_bomb_is_refused():
    with pytest.raises(CannotOpen, match="longer than"):
        unpack(pack({"text": "a" * 10_000_000}))


def test_a_file_reopens_its_view():
    assert from_file(as_file("masks", PARAMETERS).encode(), {"masks": ""}) == ("masks", PARAMETERS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "not JSON"),
        (b"[1]", "its format is not"),
        (as_file("nowhere", {}).encode(), "of a page that is not here"),
        (as_file("masks", {"layer": "99"}).encode(), "names no model"),
        (as_file("masks", {"a": [1]}).encode(), "that is not text"),  # type: ignore[dict-item]
        (b" " * 200_000, "at most"),
    ],
)
def test_a_file_that_is_no_view_is_refused_in_a_sentence(content, message):
    with pytest.raises(CannotOpen, match=message):
        from_file(content, {"masks": ""})


LONE_SURROGATE = "eJyrVsrNT0nNUbJSKkotSy0qTlXSUSpJrSgBCsSUplgYGCgkKtUCAOtTC8k"


def test_half_a_character_in_a_packed_link_is_refused():
    with pytest.raises(CannotOpen, match="a parameter “text” that is not text"):
        unpack(LONE_SURROGATE)
    for name in ("\ud800", "text\udfff"):
        with pytest.raises(CannotOpen, match="that is not text") as refused:
            unpack(base64.urlsafe_b64encode(zlib.compress(json.dumps({name: "a"}).encode())).decode())
        str(refused.value).encode()  # can be shown


@pytest.mark.parametrize("page", [[], {}, 3, None])
def test_a_saved_view_whose_page_is_no_string_is_refused(page):
    content = {"format": "attention-lab-view", "page": page, "parameters": PARAMETERS}
    with pytest.raises(CannotOpen, match="a page that is not here"):
        from_file(json.dumps(content).encode(), {"masks": ""})
