"""The exported figure is what the page draws: numbers, scales, marks and labels; and its files
hold every number that is drawn."""

import json

import numpy as np
import pytest
from page_exports import array, figures, opened, run_lines
from page_models import REVERSE, checked

from pages.shared.exports import Saved

pytestmark = pytest.mark.usefixtures("untrained_models", "work_awaited")
SWITCH = "off:decoder.0.cross:1"
HEADS = {"model": REVERSE, "text": "a b c d", "pairs": "50"}


def looks(figure):
    """All that is seen of a figure but its width."""
    layout = figure["layout"]
    seen = ("type", "x", "y", "z", "text", "zmin", "zmax", "colorscale", "error_x", "name")
    axes = {name: axis for name, axis in layout.items() if name[1:5] == "axis"}
    return {
        "traces": [{name: trace.get(name) for name in seen} for trace in figure["data"]],
        "shapes": layout.get("shapes"),
        "labels": {name: (axis.get("ticktext"), axis.get("range"), axis.get("title")) for name, axis in axes.items()},
        "notes": [note["text"] for note in layout.get("annotations", ())],
    }


def plain(value):
    """Packed arrays as lists, and what is no number as None."""
    match value:
        case {"bdata": _}:
            return plain(array(value).tolist())
        case dict():
            return {name: plain(part) for name, part in value.items() if part is not None}
        case list() | tuple():
            return [plain(part) for part in value]
        case float() if np.isnan(value):
            return None
    return value


def of(figure):
    """A figure as a page sends it."""
    return plain(json.loads(figure.to_json()))


def offers(monkeypatch):
    """Collects the files offered for saving from now on, the newest last."""
    taken: list[Saved] = []
    monkeypatch.setattr("pages.shared.exports.offer_files", lambda offered, *_: taken.append(offered))
    return taken


def away(monkeypatch, page, key, which, **parameters):
    """The page with the popover open at one of its figures, and what is offered."""
    taken = offers(monkeypatch)
    at = opened(page, key, **parameters)
    if which:
        at = checked(at.segmented_control(key=f"{key}-which").set_value(which).run())
    return at, taken[-1]


DRAWN = [
    ("heads", "pattern-map-export", "", {**HEADS, "kind": "decoder_self", "head": "2"}),
    (
        "heads",
        "output-importance-export",
        "",
        {**HEADS, "section": "worth", "switch": SWITCH, "kind": "cross", "head": "3"},
    ),
    ("heads", "validation-ranking-export", "", {**HEADS, "section": "worth", "worth": "loss"}),
    ("heads", "leave-one-out-export", "", {**HEADS, "section": "evidence", "switch": SWITCH}),
    ("masks", "sentence-masks-export", "", {"kind": "decoder_self", "switch": ["mask:padding", "mask:causal"]}),
    ("masks", "batch-tokens-export", "", {"switch": "mask:cross"}),
    ("steps", "step-candidates-export", "", {"step": "2", "switch": SWITCH, "scale": "log"}),
    ("steps", "step-attention-cross-export", "", {"step": "2", "switch": SWITCH}),
    ("steps", "logit-contributions-export", "", {"look": "inside", "step": "1", "switch": SWITCH}),
]


@pytest.mark.parametrize(("page", "key", "which", "parameters"), DRAWN, ids=str)
def test_the_saved_figure_is_the_one_on_the_page(page, key, which, parameters, monkeypatch):
    at, offered = away(monkeypatch, page, key, which, **parameters)
    saved = looks(of(offered.figure))
    assert saved in [looks(plain(figure)) for figure in figures(at)]


@pytest.mark.parametrize("which", ["This figure", "Matrix"])
def test_a_word_that_was_never_seen_is_saved_as_it_was_typed(which, monkeypatch):
    at, offered = away(monkeypatch, "home", "token-lines-export", which, model=REVERSE, text="a zebra b")
    figure, made = json.dumps(of(offered.figure)), json.dumps(of(run_lines(at)["figure"]))
    assert "zebra" in figure and "unk" not in figure and "zebra" in made
    assert "1 zebra" in offered.tables[0].columns
