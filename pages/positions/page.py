"""Positions: the sinusoids of section 3.5 and a learned table, compared, shifted, and found again in the scores."""

from pages.positions.beyond_length import render_beyond
from pages.positions.choices import PAGE, SECTIONS, segments
from pages.positions.edits import render_edits
from pages.positions.scores import render_scores
from pages.positions.shifts import render_shifts
from pages.positions.study import render_study
from pages.positions.tables import render_distances, render_tables
from pages.shared.context import say
from pages.shared.header import frame

_RENDER = {
    "table": render_tables,
    "distances": render_distances,
    "shifts": render_shifts,
    "scores": render_scores,
    "break": render_edits,
    "beyond": render_beyond,
    "study": render_study,
}

context = frame(
    "How does it know the order of the words? Sinusoids, and what a learned table becomes.",
    PAGE,
    needs="a Transformer",
    opens_on=("reverse", "a b c d e"),
)
chosen = PAGE.now
segments("section", "Look at", SECTIONS, chosen.section)
say(*PAGE.said())
_RENDER[chosen.section](context, chosen)
