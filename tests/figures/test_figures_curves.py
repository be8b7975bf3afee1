"""Curves: what is drawn is what was given, under its full name, and nothing that was asked for is lost by thinning."""

import numpy as np
import pytest

from transformer.figures import theme
from transformer.figures.theme import RUN_COLOURS, RUN_COLOURS_DARK, run_colour
from transformer.figures.training.curves import Curve, Panel, overlay_figure, panels_figure, thinned
from transformer.model.kinds import AttentionKind


def curve(name="training loss", y=(4.0, 2.0, 1.0, 0.25), x=None):
    return Curve(name, np.arange(1.0, len(y) + 1) if x is None else np.array(x, float), np.array(y, float))


def one_run(**options):
    exact = curve("validation exact match", (0.0, 0.995), (2, 4))
    training, validation = curve("training loss, label-smoothed"), curve("validation loss", (3.0, 0.5), (2, 4))
    loss = Panel(title="loss, nats per token", thin=[training], main=[validation], height=190)
    return panels_figure([loss, Panel(title="exact match, %", main=[exact], percent=True, height=90)], **options)


def test_a_runs_lines_hold_the_values_and_their_full_names():
    fig = one_run()
    assert [trace.name for trace in fig.data] == [
        "training loss, label-smoothed",
        "validation loss",
        "validation exact match",
    ]
    np.testing.assert_array_equal(fig.data[0].y, [4.0, 2.0, 1.0, 0.25])
    np.testing.assert_array_equal(fig.data[2].y, [0.0, 99.5])


def test_axes_have_titles_with_units():
    fig = one_run(against="elapsed_s")
    assert fig.layout.xaxis.title.text == "seconds of training"
    assert fig.layout.yaxis.title.text == "loss, nats per token"
    assert fig.layout.yaxis2.title.text == "exact match, %"


def test_loss_is_on_a_logarithmic_axis_that_shows_every_value_and_says_plain_numbers():
    axis = one_run().layout.yaxis
    assert axis.type == "log"
    low, high = (10**end for end in axis.range)
    assert low < 0.25 and high > 4
    assert list(axis.ticktext) == ["0.5", "1", "2"]
    np.testing.assert_allclose(axis.tickvals, [0.5, 1, 2])


@pytest.mark.parametrize("y", [(3.85, 3.9), (1e-6, 1e4), (2.0, 2.0), (1.9, 2.4), (1.8, 600.0)])
def test_a_logarithmic_axis_always_has_a_few_ticks(y):
    axis = overlay_figure([curve(y=y)], title="loss", log=True).layout.yaxis
    assert 3 <= len(set(axis.ticktext)) == len(axis.tickvals) <= 11
    assert all(axis.range[0] <= np.log10(tick) <= axis.range[1] for tick in axis.tickvals)


def test_a_run_without_an_evaluation_can_be_drawn():
    empty = curve("validation loss", ())
    exact = Panel(title="exact match, %", main=[curve("validation exact match", ())], percent=True)
    fig = panels_figure([Panel(title="loss", thin=[curve()], main=[empty]), exact])
    assert len(fig.data[1].x) == 0 and fig.layout.yaxis.type == "log"


def test_an_overlay_has_one_legend_entry_a_run_each_in_its_own_colour():
    fig = overlay_figure([curve("reverse-1"), curve("reverse-2")], title="loss, nats per token")
    assert [(trace.name, trace.line.color) for trace in fig.data] == [
        ("reverse-1", run_colour(0)),
        ("reverse-2", run_colour(1)),
    ]
    assert fig.layout.showlegend


def test_an_overlay_of_more_runs_than_colours_tells_them_apart_by_their_dashes():
    fig = overlay_figure([curve(str(i)) for i in range(8)], title="loss")
    assert len({(trace.line.color, trace.line.dash) for trace in fig.data}) == 8


@pytest.mark.parametrize(("log", "kind"), [(True, "log"), (False, None)])
def test_an_overlay_is_logarithmic_where_asked(log, kind):
    assert overlay_figure([curve()], title="loss", log=log).layout.yaxis.type == kind


def test_per_cent_is_shown_from_0_to_100():
    fig = overlay_figure([curve(y=(0.0, 1.0))], title="exact match, %", percent=True)
    np.testing.assert_array_equal(fig.data[0].y, [0, 100])
    assert fig.layout.yaxis.range[0] < 0 and fig.layout.yaxis.range[1] > 100


def test_an_overlay_of_nothing_can_be_drawn():
    assert not overlay_figure([], title="loss", log=True).data


def test_thinning_keeps_both_ends_and_every_spike():
    y = np.ones(10_000)
    y[4_321], y[7_000] = 9.0, 0.1
    kept = thinned(Curve("loss", np.arange(10_000.0), y), most=200)
    assert len(kept.x) <= 202
    assert kept.x[0] == 0 and kept.x[-1] == 9_999
    assert {9.0, 0.1} <= set(kept.y) and np.all(np.diff(kept.x) > 0)
    np.testing.assert_array_equal(y[kept.x.astype(int)], kept.y)


def test_a_short_curve_is_not_thinned():
    short = curve()
    assert thinned(short) is short


@pytest.mark.parametrize("dark", [False, True])
def test_colours_of_runs_are_none_of_attentions(dark):
    attention = {theme.kind_colour(kind, dark) for kind in AttentionKind}
    assert not attention & set(RUN_COLOURS_DARK if dark else RUN_COLOURS)


def test_dark_figures_take_the_dark_colours():
    assert one_run(dark=True).data[1].line.color == theme.DARK.accent
    assert overlay_figure([curve()], title="loss", dark=True).data[0].line.color == run_colour(0, dark=True)
