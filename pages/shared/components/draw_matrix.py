"""An empty matrix to draw in: one place in each row."""

from collections.abc import Sequence

from pages.shared.components.frontend import colours_of, declared, reported
from transformer.model.kinds import KindName

_component = declared("draw_matrix", css=("draw_matrix.css",), js=("tokens.js", "draw_matrix.js"), reports=("drawn",))


def draw_matrix(rows: Sequence[str], columns: Sequence[str], *, label: str, kind: KindName, key: str) -> None:
    """Draws the matrix; `drawn_places` is what the visitor has put into it."""
    drawn = drawn_places(key, len(rows), len(columns))
    _component(
        key=key,
        data={
            "rows": list(rows),
            "columns": list(columns),
            "drawn": list(drawn),
            "label": label,
            "colours": colours_of(kind),
        },
    )


def drawn_places(key: str, n_rows: int, n_columns: int) -> tuple[int | None, ...]:
    """Returns the column that the visitor marked in each row; None where there is none yet."""
    report = reported(key).get("drawn")
    if not isinstance(report, list) or len(report) != n_rows:
        return (None,) * n_rows
    return tuple(place if isinstance(place, int) and 0 <= place < n_columns else None for place in report)
