"""Lines between tokens: each weight has its line, hovering is exact, and the export is what the page draws."""

import json
import re

import numpy as np
import pytest

from transformer.figures import theme
from transformer.figures.attention.token_lines import lines_figure

pytestmark = pytest.mark.usefixtures("untrained_models")
SOURCE, TARGET = ("▁the", "<b>", "</s>"), ("le", "</s>")
WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.001, 0.0, 0.999]], dtype=np.float32)


def paths(figure) -> dict[float, int]:
    """Counts the lines of each opacity."""
    found = [shape for shape in json.loads(figure.to_json())["layout"]["shapes"] if shape["type"] == "path"]
    return {shape["opacity"]: shape["path"].count("M") for shape in found}


def test_a_line_is_as_opaque_as_its_weight():
    found = paths(lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross"))
    assert sum(found.values()) == 4  # 0 and 0.001 could not be seen
    assert all(min(abs(share - weight) for weight in WEIGHTS.flat) <= 1 / 128 for share in found)
    assert sum(paths(lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross", least=0.15)).values()) == 3
    assert max(paths(lines_figure(SOURCE, TARGET, WEIGHTS / 2, kind="cross", top=0.5))) == 1


def test_as_many_lines_as_there_are_need_few_paths():
    weights = np.random.default_rng(0).dirichlet(np.ones(128) * 0.1, 128).astype(np.float32)
    figure = lines_figure([f"s{i}" for i in range(128)], [f"t{i}" for i in range(128)], weights, kind="encoder_self")
    assert len(paths(figure)) <= 64 and sum(paths(figure).values()) == (weights >= 1 / 128).sum()


def test_a_line_runs_from_its_source_token_to_its_target_token():
    figure = lines_figure(SOURCE, TARGET, np.float32([[0, 1, 0], [0, 0, 0]]), kind="cross")
    (path,) = (shape.path for shape in figure.layout.shapes if shape.type == "path")
    x0, y0, *_, x1, y1 = map(float, re.findall(r"[\d.]+", path))
    assert figure.data[0].x[1] == pytest.approx(x0, abs=0.06) and figure.data[1].x[0] == pytest.approx(x1, abs=0.06)
    assert y0 < y1 and figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # source above


def test_hovering_is_exact_and_tokens_are_no_markup():
    first, second = lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross").data
    assert second.customdata[0] == "<b>le</b> looks at<br>▁the 0.7<br>&lt;b&gt; 0.2<br>&lt;/s&gt; 0.1"
    assert first.customdata[1].startswith("<b>&lt;b&gt;</b> is looked at by<br>le 0.2")
    assert "&lt;b&gt;" in first.text[1]


def test_each_row_has_its_own_name_whatever_its_tokens():
    figure = lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross", labels=("keys", "queries"))
    assert [name.text for name in figure.layout.annotations] == ["keys", "queries"]


def test_nothing_is_drawn_over_the_tokens():
    assert {shape.layer for shape in lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross").layout.shapes} == {"below"}


@pytest.mark.parametrize("dark", [False, True])
def test_heads_that_are_off_are_grey(dark):
    def colours(off: bool) -> set[str]:
        figure = lines_figure(SOURCE, TARGET, WEIGHTS, kind="cross", off=off, dark=dark)
        return {shape.line.color for shape in figure.layout.shapes if shape.type == "path"}

    assert colours(off=True) == {theme.palette(dark).quiet} and colours(off=False) == {theme.kind_colour("cross", dark)}


def test_weights_must_fit_the_tokens():
    with pytest.raises(ValueError, match=r"3 row and 2 column labels do not fit a matrix of shape \(2, 3\)"):
        lines_figure(TARGET, SOURCE, WEIGHTS, kind="cross")
