"""What is taken away of the timeline's film: the attention of the step on show, read from the weights kept of it."""

from collections.abc import Sequence
from functools import partial

from pages.shared.context import is_dark
from pages.shared.exports import Export
from pages.training.export_run import take_figures_away
from pages.training.timeline.checks import nearest
from pages.training.timeline.drawing import take_of
from pages.training.timeline.frames import Frame, Snapshot, Timeline
from pages.training.timeline.state import timeline
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.figures.export import matrix_figure
from transformer.figures.tables import Table, numbered
from transformer.runs.run_folder import Run


def take_film_away(run: Run, reel: Timeline, frames: Sequence[Frame], found: Sequence[Snapshot]) -> None:
    """The head on show at the step on show."""
    frame = nearest(frames, timeline().view.step)
    take_figures_away(
        {"attention": partial(_attention, run, reel, frame, found)},
        page="train",
        said=f"{run.id} · step {frame.step:,} · {reel.text}",
        key="take-film",
    )


def _attention(run: Run, reel: Timeline, frame: Frame, found: Sequence[Snapshot]) -> Export:
    view = timeline().view
    layer, head = view.place(run.settings.model)
    take = take_of(frame, view.rows)
    attention, titles = take.attention[view.kind], AXIS_TITLES[view.kind]
    weights, mask = attention.weights[layer, head], attention.mask[layer]
    figure = matrix_figure(
        weights, attention.queries, attention.keys, kind=view.kind, titles=titles, mask=mask, dark=is_dark()
    )
    path = next(snapshot.path for snapshot in found if snapshot.step == frame.step)
    forced = f", forced=dict(enumerate({reel.goal!r}))" if take is not frame.own else ""
    rows, columns = weights.shape
    lines = [
        "from transformer.checkpoints.store import find_checkpoint, load_checkpoint",
        "from transformer.figures.export import matrix_figure",
        "from transformer.lab import Lab",
        "",
        f"run = find_checkpoint({run.id!r})",
        f"lab = Lab(load_checkpoint(run, weights=run / {path.relative_to(run.folder).as_posix()!r}))",
        f"attention = lab.inspect({reel.text!r}{forced}).{view.kind}",
        f"numbers = attention.weights[{layer}, {head}, :{rows}, :{columns}]",
        "figure = matrix_figure(",
        f"    numbers, attention.queries[:{rows}], attention.keys[:{columns}], kind={view.kind!r},",
        f"    titles={titles!r}, mask=attention.mask[{layer}, :{rows}, :{columns}],",
        ")",
    ]
    table = Table("weight", weights, numbered(attention.queries), numbered(attention.keys))
    name = f"{run.id}-step{frame.step}-{view.kind}-layer{layer}-head{head}"
    return Export(name, figure, (table,), "\n".join(lines))
