"""What is taken away of the figures of runs: their curves, and the chart of a sweep."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from pages.shared.context import is_dark
from pages.shared.exports import WIDTH, Export, choose_figure, offer_files, papered
from transformer.figures.tables import Table
from transformer.figures.training.curves import Against, Curve, overlay_figure, run_figure
from transformer.figures.training.sweeps import Mark, sweep_figure

_READ = (
    "import numpy as np",
    "",
    "from transformer.checkpoints.store import find_checkpoint, history",
)


@dataclass(frozen=True)
class Source:
    """A curve, and the journal that it was read from."""

    curve: Curve
    model: str
    """A run's id or a shipped model's name."""
    split: str
    column: str


def take_figures_away(figures: Mapping[str, Callable[[], Export]], *, page: str, said: str, key: str) -> None:
    """A quiet button under a figure; nothing is made before it is opened. With several figures, one is chosen.

    `said` stands under the figure in the HTML file; `page` is the end of this page's address.
    """
    with st.popover("Export", icon=":material/download:", type="tertiary", key=key, on_change="rerun") as box:
        if not box.open:
            return
        with st.container(width=WIDTH, key=f"{key}-away"):
            away = choose_figure(figures, key)
            offer_files(away, said, key)
            st.caption("The same in Python" + f" · {away.note}" * bool(away.note))
            st.code(away.python, language="python", wrap_lines=True)
            st.caption("A link with everything in it")
            query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
            address = (st.context.url or f"http://localhost:8501/{page}").partition("?")[0]
            st.code(f"{address}?{query}", language=None, wrap_lines=True)


def take_curves_away(
    curves: Sequence[Curve],
    split: str,
    column: str,
    *,
    title: str,
    against: Against,
    log: bool,
    percent: bool,
    key: str,
) -> None:
    """Of curves of some runs laid over each other, each named as its run."""
    sources = [Source(curve, curve.name, split, column) for curve in curves]
    what = column.replace("_", " ")

    def make() -> Export:
        name = f"runs-{column.replace('_', '-')}"
        return curves_away(sources, name, title=title, against=against, log=log, percent=percent)

    said = f"{what} of {', '.join(curve.name for curve in curves)}"
    take_figures_away({what: make}, page="runs", said=said, key=key)


def curves_away(
    sources: Sequence[Source], name: str, *, title: str, against: Against, log: bool, percent: bool
) -> Export:
    """Curves over each other in one picture."""
    options = {"title": title, "against": against, "log": log, "percent": percent}
    curves = [source.curve for source in sources]
    figure = papered(overlay_figure(curves, **options, dark=is_dark()), dark=is_dark(), width=WIDTH)  # type: ignore[arg-type]
    lines = [
        *_reading(sources, against, "overlay_figure"),
        f"figure = overlay_figure(curves, {', '.join(f'{name}={value!r}' for name, value in options.items())})",
    ]
    return Export(name, figure, tuple(_table(source, against) for source in sources), "\n".join(lines))


def training_away(sources: Sequence[Source], name: str) -> Export:
    """Training loss, validation loss and exact match of one model, the last below the others."""
    training, validation, exact = (source.curve for source in sources)
    figure = papered(run_figure(training, validation, exact, dark=is_dark()), dark=is_dark(), width=WIDTH)
    lines = [*_reading(sources, "step", "run_figure"), "figure = run_figure(*curves)"]
    return Export(name, figure, tuple(_table(source, "step") for source in sources), "\n".join(lines))


def sweep_away(
    marks: Sequence[Mark], name: str, split: str, column: str, *, setting: str, title: str, percent: bool
) -> Export:
    """The chart of a sweep."""
    options = {"setting": setting, "title": title, "unit": " %" if percent else "", "percent": percent}
    figure = papered(sweep_figure(marks, **options, dark=is_dark()), dark=is_dark(), width=WIDTH)  # type: ignore[arg-type]
    parts = [(mark.run, mark.value, mark.done) for mark in marks]
    lines = [
        *_READ[2:],
        "from transformer.figures.training.sweeps import Mark, sweep_figure",
        "",
        "marks = []",
        f"for place, (name, value, done) in enumerate({parts!r}):",
        f"    rows = [row for row in history(find_checkpoint(name)) if row['split'] == {split!r}]",
        f"    y = rows[-1].get({column!r}) if rows else None",
        *(["    y = None if y is None else 100 * y"] if percent else []),
        "    marks.append(Mark(value, y, name, done, place))",
        "numbers = [mark.y for mark in marks]",
        f"figure = sweep_figure(marks, {', '.join(f'{name}={value!r}' for name, value in options.items())})",
    ]
    values = np.array([[np.nan if mark.y is None else mark.y] for mark in marks], dtype=float).reshape(-1, 1)
    table = Table(title, values, [f"{mark.run}, {setting} {mark.value}" for mark in marks], [title])
    return Export(name, figure, (table,), "\n".join(lines))


def _reading(sources: Sequence[Source], against: Against, figure: str) -> list[str]:
    """The lines that read the curves from the journals."""
    places = [(source.curve.name, source.model, source.split, source.column) for source in sources]
    return [
        *_READ,
        f"from transformer.figures.training.curves import Curve, {figure}",
        "",
        "curves = []",
        "for name, model, split, column in [",
        *(f"    {place!r}," for place in places),
        "]:",
        "    rows = [row for row in history(find_checkpoint(model)) if row['split'] == split]",
        "    rows.sort(key=lambda row: row['step'])",
        f"    x, y = ([row.get(key) for row in rows] for key in ({against!r}, column))",
        "    curves.append(Curve(name, np.array(x, dtype=float), np.array(y, dtype=float)))",
        "numbers = [curve.y for curve in curves]",
    ]


def _table(source: Source, against: Against) -> Table:
    x, y = source.curve.x, source.curve.y
    return Table(source.curve.name, np.column_stack((x, y)), list(map(str, range(len(x)))), [against, source.column])
