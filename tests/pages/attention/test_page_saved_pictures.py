"""The picture that the Attention page saves is the one that it draws: colours, marks, masks, hidden cells, labels."""

import base64
import json

import numpy as np
import pytest
from page_exports import drawn, figures, opened, run_lines
from page_models import CLASSIC, PRONOUNS, REVERSE, component, matrix, texts

from transformer.figures import theme
from transformer.figures.heatmap import strokes

pytestmark = pytest.mark.usefixtures("untrained_models")
OTHER = "The cat slept."
BLIND = [f"forbid:encoder.1.self:1,{key}" for key in range(14)]


def view_key(parameters):
    """The key of the view that a link asks for."""
    if parameters.get("picture") == "lines":
        return "token-lines"
    if str(parameters.get("picture")).startswith("bertviz"):
        return "bertviz"
    named = {"rollout": "attention-rollout", "entropy": "attention-entropy"}
    return named.get(parameters.get("show"), "head-matrix")


def opened_and_saved(**parameters):
    """The page, the figure that it saves, and what its lines of Python make: the very same figure."""
    at = opened("attention", f"{view_key(parameters)}-export", **parameters)
    shown = next(f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    made = run_lines(at)
    own = json.loads(made["figure"].to_json())
    assert own["data"] == shown["data"] and own["layout"] == shown["layout"]
    return at, shown, made


@pytest.mark.parametrize(
    "parameters",
    [
        {
            "kind": "decoder_self",
            "switch": ["forbid:decoder.1.self:3,1", "forbid:decoder.1.self:4,4"],
            "threshold": "0.05",
        },
        {"kind": "cross", "show": "norms", "specials": "renormalised", "threshold": "0.3"},
        {"kind": "encoder_self", "switch": ["block:encoder.1.self", *BLIND]},
        {
            "kind": "decoder_self",
            "show": "rollout",
            "switch": ["residual:off:decoder.0.self", "forbid:decoder.0.self:2,2"],
        },
        {"kind": "cross", "show": "rollout", "switch": f"copy:decoder.0.self.heads.1:0>1:{OTHER}", "threshold": "0.01"},
        {"kind": "cross", "combine": "max", "switch": ["mean:decoder.1.cross:0,1,2,3", "row:decoder.1.cross.0:2:1"]},
        {"kind": "encoder_self", "show": "entropy", "unit": "bits", "specials": "renormalised", "switch": BLIND},
        {"kind": "encoder_self", "text": "The xylophone slept.", "words": "merged"},
        {"kind": "cross", "text": "The xylophone slept.", "show": "norms"},
        {"kind": "decoder_self", "model": REVERSE, "text": "a b c", "switch": "mask:causal", "combine": "mean"},
    ],
    ids=str,
)
def test_the_matrix_that_is_saved_is_the_one_on_the_page(parameters):
    at, shown, made = opened_and_saved(**{"text": CLASSIC, **parameters})
    page, trace, layout = matrix(at), shown["data"][0], shown["layout"]
    values = np.frombuffer(base64.b64decode(page["values"]), np.float32).reshape(page["shape"])
    assert np.array_equal(made["data"].values, values, equal_nan=True)
    state = np.zeros(page["shape"], np.uint8)
    if page["state"]:
        state = np.frombuffer(base64.b64decode(page["state"]), np.uint8).reshape(page["shape"])
    (numbers,) = drawn(shown)
    assert np.array_equal(np.isnan(numbers), (state > 0) | np.isnan(values))
    paths = {shape.get("path") for shape in layout.get("shapes", [])}
    wanted = {strokes(state == 1)} if (state == 1).any() else set()
    assert paths == wanted | ({strokes(state == 3, crossed=True)} if (state == 3).any() else set())
    said = "".join(note["text"] for note in layout.get("annotations", []))
    words = ((1, "masked"), (2, page["weak_label"]), (3, "forbidden by a switch"))
    assert [bool(word) and word in said for _, word in words] == [bool((state == code).any()) for code, _ in words]
    assert trace["zmax"] == page["top"] and trace["colorscale"] == [list(s) for s in scale(page["off"])]
    assert trace["colorbar"]["title"]["text"].startswith(page["quantity"])
    assert page["unit"] in trace["colorbar"]["title"]["text"]
    assert [token["full"] for token in page["rows"]] == list(made["data"].rows.typed)
    assert [token["full"] for token in page["columns"]] == list(made["data"].columns.typed)
    assert page["titles"] == [layout[axis]["title"]["text"] for axis in ("yaxis", "xaxis")]


def scale(off):
    return theme.greys() if off else theme.sequential()


@pytest.mark.parametrize(
    "parameters",
    [
        {"kind": "decoder_self", "show": "norms", "switch": "forbid:decoder.1.self:3,1", "threshold": "0.125"},
        {"kind": "decoder_self", "show": "rollout", "specials": "renormalised"},
        {"kind": "cross", "combine": "mean", "switch": "mean:decoder.1.cross:0,1,2,3"},
        {"kind": "encoder_self", "text": "The xylophone slept.", "specials": "hidden"},
    ],
    ids=str,
)
def test_the_lines_that_are_saved_are_those_on_the_page(parameters):
    at, shown, made = opened_and_saved(**{"text": CLASSIC, "picture": "lines", **parameters})
    page = component(at, "source")
    weights = np.frombuffer(base64.b64decode(page["weights"]), np.float32)
    numbers, hidden = made["data"].values.ravel(), weights == 0
    assert np.array_equal(weights[~hidden], numbers[~hidden])
    assert numbers[hidden].max(initial=0) < numbers[~hidden].min()
    assert [token["text"] for token in page["source"]] == [
        token.removeprefix("▁") for token in made["data"].columns.typed
    ]
    assert [token["text"] for token in page["target"]] == [token.removeprefix("▁") for token in made["data"].rows.typed]
    grey = any(shape.get("line", {}).get("color") == theme.LIGHT.quiet for shape in shown["layout"]["shapes"])
    assert grey == page["off"]


@pytest.mark.parametrize("picture", ["matrix", "bertviz"])
def test_the_file_says_what_the_page_says_of_the_picture(monkeypatch, picture):
    taken = []
    monkeypatch.setattr("pages.shared.exports.offer_files", lambda saved, caption, *_: taken.append(caption))
    cut = {"combine": "mean", "specials": "hidden", "threshold": "0.2", "switch": "mask:causal"}
    opened("attention", f"{view_key({'picture': picture})}-export", picture=picture, **cut)
    what = "layer 1 · mean of all heads" if picture == "matrix" else "all heads"
    assert f"mask:causal · Cross-attention · {what} · Start and end marks" in taken[-1]
    assert "Entries below 0.2 are not drawn" in taken[-1]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("entry-products-export", "Cross-attention · layer 1 · head 0 · query 1 "),
        ("attention-difference-export", "Cross-attention · layer 1 · head 0 · after minus before, on the same words"),
    ],
)
def test_the_file_of_a_cell_and_of_a_difference_says_whose_it_is(monkeypatch, key, said):
    taken = []
    monkeypatch.setattr("pages.shared.exports.offer_files", lambda saved, caption, *_: taken.append(caption))
    opened("attention", key, cell="1,2", switch="off:decoder.0.self:0,1")
    assert f"{CLASSIC} · off:decoder.0.self:0,1 · {said}" in taken[-1]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"head": "2"}, "weights-layer1-head2"),
        ({"combine": "max", "over": "0,3", "picture": "lines"}, "weights-layer1-max-0-3-lines"),
        ({"combine": "mean", "show": "norms"}, "norms-layer1-mean-0-1-2-3"),
        ({"combine": "mean", "show": "rollout", "layer": "0"}, "rollout-through-layer0"),
        ({"show": "entropy"}, "entropy"),
    ],
)
def test_the_name_of_the_file_says_what_is_in_it(monkeypatch, parameters, name):
    taken = []
    monkeypatch.setattr("pages.shared.exports.offer_files", lambda saved, *_: taken.append(saved.name))
    opened("attention", f"{view_key(parameters)}-export", **parameters)
    assert taken[-1] == f"{PRONOUNS}-cross-{name}"


@pytest.mark.parametrize(
    ("parameters", "at"),
    [
        ({"kind": "cross", "layer": "0", "head": "2", "cell": "3,5"}, (3, 5)),
        ({"kind": "cross", "layer": "0", "head": "2", "cell": "3,5", "show": "entropy"}, (3, 2)),
        ({"kind": "cross", "cell": "3,13", "specials": "hidden"}, None),  # the end mark, which is left out
        ({"kind": "cross"}, None),
    ],
    ids=str,
)
def test_the_chosen_cell_is_framed_in_the_saved_picture_too(parameters, at):
    page, shown, _ = opened_and_saved(**{"text": CLASSIC, **parameters})
    frames = [shape for shape in shown["layout"].get("shapes", ()) if shape["type"] == "rect"]
    assert [(f["y0"] + 0.5, f["x0"] + 0.5, f["y1"] - 0.5, f["x1"] - 0.5) for f in frames] == ([at * 2] if at else [])
    assert matrix(page)["chosen"] == (list(at) if at else None)


@pytest.mark.parametrize(
    ("parameters", "is_off"),
    [
        ({"head": "1", "switch": "off:decoder.1.cross:1"}, True),
        ({"head": "1", "switch": "off:decoder.1.cross:0"}, False),
        ({"switch": "block:decoder.1.cross"}, True),
        ({"switch": "off:decoder.1.cross:0,1,2"}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("which", ["This figure", "Matrix"])
def test_home_draws_grey_what_goes_no_further_on_the_page_and_in_what_is_saved(parameters, is_off, which):
    page = opened("home", "token-lines-export", layer="1", **parameters)
    page.segmented_control(key="token-lines-export-which").set_value(which).run()
    shown = next(f for f in figures(page) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    own = json.loads(run_lines(page)["figure"].to_json())
    assert own["data"] == shown["data"] and own["layout"] == shown["layout"]
    assert component(page, "off")["off"] == is_off == ("has no further effect" in texts(page))
    coloured = theme.CROSS if which == "This figure" else theme.sequential()[5][1]
    assert (coloured in json.dumps(shown)) != is_off
