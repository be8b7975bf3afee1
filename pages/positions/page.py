"""Positions: the sinusoids of section 3.5 and a learned table, seen, compared, shifted, found again in the scores."""

from pages.positions.beyond_length import draw_beyond
from pages.positions.choices import PAGE, SECTIONS, segments
from pages.positions.distances import draw_distances
from pages.positions.edits import draw_break
from pages.positions.scores import draw_scores
from pages.positions.shifts import draw_shifts
from pages.positions.study import draw_study
from pages.positions.table_view import draw_table
from pages.positions.tables import tables
from pages.shared import controls

chosen = PAGE.follow_url()
context = controls.frame(
    "How does it know the order of the words? What the sinusoids are, and what a learned table becomes.",
    own=chosen.parameters(),
)
segments("section", "Look at", SECTIONS, chosen.section)
controls.say(*PAGE.said())
match chosen.section:
    case "table":
        draw_table(context, tables(context, chosen))
    case "distances":
        draw_distances(context, tables(context, chosen))
    case "shifts":
        draw_shifts(context, tables(context, chosen))
    case "scores":
        draw_scores(context, chosen)
    case "break":
        draw_break(context, chosen)
    case "beyond":
        draw_beyond(context, chosen)
    case "study":
        draw_study(context, chosen)
