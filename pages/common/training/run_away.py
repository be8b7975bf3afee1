"""What is taken away of the curves of runs."""

from collections.abc import Sequence
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from pages.common.exports import Away, _files, papered
from pages.common.pictures import is_dark
from transformer.figures.curves import Against, Curve, overlay_figure
from transformer.figures.tables import Table

_WIDTH = 640


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
    """A quiet button under the curves of some runs, each named as its run; nothing is made before it is opened."""
    with st.popover("Take it away", icon=":material/download:", type="tertiary", key=key, on_change="rerun") as box:
        if not box.open:
            return
        names = [curve.name for curve in curves]
        options = {"title": title, "against": against, "log": log, "percent": percent}
        figure = papered(overlay_figure(curves, **options, dark=is_dark()), dark=is_dark())  # type: ignore[arg-type]
        tables = tuple(_table(curve, against, column) for curve in curves)
        lines = [
            "import numpy as np",
            "",
            "from transformer.checkpoint import find_checkpoint, history",
            "from transformer.figures.curves import Curve, overlay_figure",
            "",
            "curves = []",
            f"for name in {names!r}:",
            f"    rows = [row for row in history(find_checkpoint(name)) if row['split'] == {split!r}]",
            f"    x, y = ([row.get(key) for row in rows] for key in ({against!r}, {column!r}))",
            "    curves.append(Curve(name, np.array(x, dtype=float), np.array(y, dtype=float)))",
            "numbers = [curve.y for curve in curves]",
            f"figure = overlay_figure(curves, {', '.join(f'{name}={value!r}' for name, value in options.items())})",
        ]
        away = Away(f"runs-{column.replace('_', '-')}", figure, tables, "\n".join(lines))
        with st.container(width=_WIDTH, key=f"{key}-away"):
            _files(away, f"{column.replace('_', ' ')} of {', '.join(names)}", key)
            st.caption("The same in Python")
            st.code(away.python, language="python", wrap_lines=True)
            st.caption("A link with everything in it")
            query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
            address = (st.context.url or "http://localhost:8501/runs").partition("?")[0]
            st.code(f"{address}?{query}", language=None, wrap_lines=True)


def _table(curve: Curve, against: Against, column: str) -> Table:
    return Table(
        curve.name, np.column_stack((curve.x, curve.y)), list(map(str, range(len(curve.x)))), [against, column]
    )
