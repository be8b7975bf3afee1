"""Pictures of positions carry the very numbers they were given, around 0."""

import numpy as np
import pytest

from transformer.figures.positions.tables import (
    dimensions_figure,
    errors_figure,
    matrices_figure,
    offsets_figure,
    parts_figure,
    tables_figure,
)

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("dark", [False, True])
def test_two_tables_share_one_scale_around_0(dark):
    wide, narrow = array(9, 8) * 3, array(5, 4)
    fig = tables_figure([wide, narrow], ["sinusoidal", "<learned>"], untrained_from=[None, 3], dark=dark)
    assert (fig.data[0].z == wide).all() and (fig.data[1].z == narrow).all()
    assert {trace.coloraxis for trace in fig.data} == {"coloraxis"}
    assert fig.layout.coloraxis.cmax == -fig.layout.coloraxis.cmin == np.abs(wide).max()
    assert [note.text for note in fig.layout.annotations] == ["sinusoidal", "&lt;learned&gt;"]
    assert [(shape.xref, shape.y0, shape.y1) for shape in fig.layout.shapes] == [("x2", 2.5, 2.5)]
    assert fig.layout.yaxis.title.text == "position" and fig.layout.xaxis2.title.text == "dimension"
    assert fig.layout.yaxis.autorange == fig.layout.yaxis2.autorange == "reversed"


def test_a_large_table_is_drawn_as_one_picture_of_the_same_numbers():
    large, small = array(200, 200), array(5, 4)
    fig = tables_figure([large, small], ["sinusoidal", "learned"])
    assert [trace.zsmooth for trace in fig.data] == ["fast", False]
    assert (fig.data[0].z == large).all() and fig.data[0].z.dtype == np.float32


def test_cells_without_a_value_leave_the_scale_around_0():
    part = array(3, 3)
    part[0, 1:] = np.nan
    scale = parts_figure([part], ["sum"], list("abc"), list("abc")).layout.coloraxis
    assert scale.cmax == -scale.cmin == np.nanmax(np.abs(part))


def test_a_table_of_zeros_can_be_drawn():
    fig = tables_figure([np.zeros((3, 2), np.float32)], ["nothing"])
    assert fig.layout.coloraxis.cmax == 1


def test_dimensions_are_lines_over_positions():
    curves = [array(6), array(4)]
    fig = dimensions_figure(curves, ["one", "two"])
    for trace, curve in zip(fig.data, curves, strict=True):
        assert (trace.y == curve).all() and trace.x.tolist() == list(range(len(curve)))
    assert fig.layout.xaxis.title.text == "position"


def test_offsets_have_a_mean_and_a_band():
    mean = array(5)
    fig = offsets_figure([mean], [mean - 1], [mean + 1], ["t"], quantity="cosine")
    assert (fig.data[0].y == mean).all()
    assert (fig.data[1].y[:5] == mean + 1).all() and (fig.data[1].y[5:] == (mean - 1)[::-1]).all()
    assert fig.layout.yaxis.title.text == "cosine"


def test_an_error_of_0_is_left_out_of_the_logarithmic_axis():
    fig = errors_figure([np.array([3, 5])], [np.array([0.0, 1e-8])], ["t"])
    assert np.isnan(fig.data[0].y[0]) and fig.data[0].y[1] == 1e-8 and fig.data[0].x.tolist() == [3, 5]
    assert fig.layout.yaxis.type == "log"


def test_matrices_name_their_axes():
    fig = matrices_figure([array(3, 3)], ["map"], axes=("dimension of PE(pos)", "dimension of PE(pos + k)"))
    assert fig.layout.xaxis.title.text == "dimension of PE(pos)"
    assert fig.data[0].hovertemplate.startswith("dimension of PE(pos + k) %{y}")


def test_parts_stand_side_by_side_with_queries_as_rows():
    parts = [array(2, 3) for _ in range(5)]
    fig = parts_figure(parts, list("abcde"), ["q", "<q>"], ["k", "k", "<k>"])
    assert all((trace.z == part).all() for trace, part in zip(fig.data, parts, strict=True))
    assert fig.data[0].customdata[1][2] == "query <b>&lt;q&gt;</b><br>key <b>&lt;k&gt;</b>"
    assert list(fig.layout.xaxis5.ticktext) == ["k", "k", "&lt;k&gt;"]
    assert list(fig.layout.yaxis.ticktext) == ["q", "&lt;q&gt;"] and fig.layout.yaxis2.showticklabels is False
