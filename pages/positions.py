"""Positions: the sinusoids of section 3.5 and a learned table, seen, compared, shifted, found again in the scores."""

from pages.common import controls
from pages.common.position_beyond import draw_beyond
from pages.common.position_break import draw_break
from pages.common.position_choices import PAGE, SECTIONS, segments
from pages.common.position_distances import draw_distances
from pages.common.position_scores import draw_scores
from pages.common.position_shifts import draw_shifts
from pages.common.position_study import draw_study
from pages.common.position_table_view import draw_table
from pages.common.position_tables import tables

chosen = PAGE.follow_url()
scene = controls.frame(
    "How does it know the order of the words? What the sinusoids are, and what a learned table becomes.",
    own=chosen.parameters(),
)
segments("section", "Look at", SECTIONS, chosen.section)
controls.say(*PAGE.said())
match chosen.section:
    case "table":
        draw_table(scene, tables(scene, chosen))
    case "distances":
        draw_distances(scene, tables(scene, chosen))
    case "shifts":
        draw_shifts(scene, tables(scene, chosen))
    case "scores":
        draw_scores(scene, chosen)
    case "break":
        draw_break(scene, chosen)
    case "beyond":
        draw_beyond(scene, chosen)
    case "study":
        draw_study(scene, chosen)
