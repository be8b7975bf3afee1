"""Take it away on Decoder steps: the lines of Python make every figure of the page again, with the same numbers."""

import json
from base64 import b64decode

import numpy as np
import pytest
from page_models import REVERSE, checked, open_page

from transformer.analysis.steps.branches import road_twigs

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("untrained_models")]

SWITCH = {"switch": "off:decoder.0.cross:1"}
ROAD = {"roads": "1:5", "road": "1", "step": "2"}


def plain(value):
    """A figure's numbers and words as nested lists, however they are sent."""
    if isinstance(value, dict) and "bdata" in value:
        flat = np.frombuffer(b64decode(value["bdata"]), dtype=value["dtype"])
        shaped = flat.reshape([int(n) for n in value["shape"].split(",")]) if "shape" in value else flat
        return [[f"{x:.6g}" for x in row] for row in np.atleast_2d(shaped)]
    if isinstance(value, list) and value and not isinstance(value[0], str):
        rows = value if isinstance(value[0], list) else [value]
        return [[x if isinstance(x, str | None) else f"{x:.6g}" for x in row] for row in rows]
    return value


def drawn(figure):
    """What each trace draws."""
    return [{name: plain(trace.get(name)) for name in ("type", "x", "y", "z", "text")} for trace in figure["data"]]


def check(key: str, which: str, parameters: dict) -> dict:
    """Opens the popover and runs its lines; their figure must draw what the page's does."""
    at = open_page("steps", **{"model": REVERSE, "text": "a b c d", **parameters})
    at.session_state[key] = True
    at = checked(at.run())
    if which:
        at.session_state[f"{key}-which"] = which
        at = checked(at.run())
    charts = [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]
    (shown,) = (chart for chart in charts if chart["layout"].get("paper_bgcolor", "").startswith("#"))
    (code,) = (sublayer.value for sublayer in at.code if "from transformer" in sublayer.value)
    names: dict = {}
    exec(compile(code, "lines", "exec"), names)
    assert drawn(json.loads(names["figure"].to_json())) == drawn(shown)
    assert len(names["numbers"]) > 0
    return names


@pytest.mark.parametrize("parameters", [{"step": "1"}, SWITCH, ROAD, {"scale": "log", "reference": "d c b a"}], ids=str)
def test_candidates(parameters):
    names = check("take-step", "candidates", parameters)
    assert list(names["numbers"]) == sorted(names["numbers"], reverse=True)


@pytest.mark.parametrize("which", ["cross-attention", "self-attention"])
@pytest.mark.parametrize("parameters", [{"step": "2"}, {"head": "1", **SWITCH}, ROAD], ids=str)
def test_rows_of_attention(which, parameters):
    names = check("take-step", which, parameters)
    assert float(np.sum(names["numbers"])) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("key", ["tree", "pair"])
@pytest.mark.parametrize("parameters", [{}, {"roads": "1:5;2:7", "road": "2", "beside": "1"}, SWITCH], ids=str)
def test_roads_as_a_tree_and_two_of_them_side_by_side(key, parameters):
    names = check(f"take-{key}", "", {**ROAD, **parameters, "roads_as": key})
    shown = names["pair"] if key == "pair" else names["roads"]
    assert [len(numbers) for numbers in names["numbers"]] == [len(road.target_ids) for road in shown]


@pytest.mark.parametrize("parameters", [{}, ROAD, SWITCH, {**ROAD, **SWITCH, "roads": "1:5;2:7"}], ids=str)
def test_roads_as_lines(parameters):
    names = check("take-roads", "", parameters)
    shown, changed, n_roads = names["shown"], names["changed"], len(names["roads"])
    assert [len(numbers) for numbers in names["numbers"]] == [len(road.target_ids) for road in shown]
    assert n_roads == 1 + len([road for road in parameters.get("roads", "").split(";") if road])
    assert len(shown) == n_roads + ("switch" in parameters) and not changed[0].any()
    own = len(shown) - n_roads
    for index, (road, marks) in enumerate(zip(shown, changed, strict=True)):
        before = iter(shown[own if index > own else 0].target_ids)  # holds what is not marked, in this order
        kept = [token for token, new in zip(road.target_ids, marks, strict=False) if not new]
        assert all(token in before for token in kept)


def test_each_road_of_a_tree_needs_a_name():
    with pytest.raises(ValueError, match="0 roads need as many names, not 1"):
        road_twigs([], ["Output"])


@pytest.mark.parametrize("parameters", [{}, SWITCH, ROAD], ids=str)
def test_the_logit_lens(parameters):
    names = check("take-lens", "", {"look": "inside", **parameters})
    np.testing.assert_allclose(np.exp(names["numbers"]).sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("parameters", [{}, SWITCH, {"against": "7", **ROAD}], ids=str)
def test_contributions(parameters):
    names = check("take-contributions", "", {"look": "inside", **parameters})
    difference = names["inside"].difference(names["written"], names["other"])
    assert sum(names["numbers"]) == pytest.approx(difference, abs=1e-4)


@pytest.mark.parametrize("which", ["tree", "attention"])
@pytest.mark.parametrize(
    "parameters", [{}, {"beam": "2", "alpha": "1", "norm": "length", "node": "3"}, SWITCH], ids=str
)
def test_the_search(which, parameters):
    check("take-search", which, {"look": "beam", **parameters})


@pytest.mark.parametrize("parameters", [{}, {"temperature": "2", "top_k": "5", "seed": "3"}, SWITCH], ids=str)
def test_samples_and_what_they_are_drawn_from(parameters):
    assert sum(check("take-samples", "", {"look": "samples", **parameters})["numbers"]) == 100
    check("take-draw", "", {"look": "samples", **parameters})


@pytest.mark.parametrize("parameters", [{}, SWITCH], ids=str)
def test_losses_of_a_reference(parameters):
    assert (
        check("take-losses", "", {"look": "reference", "reference": "d c b a", **parameters})["numbers"].shape[0] == 2
    )


def test_exposure_bias():
    at = open_page("steps", model=REVERSE, text="a b c d", look="reference")
    checked(at.button(key="measure-exposure").click().run())
    names = check("take-exposure", "", {"look": "reference"})
    assert len(names["numbers"]) == len(names["found"])
