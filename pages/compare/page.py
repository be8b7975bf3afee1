"""Two at once: one sentence through two models, or two sentences through one."""

from pages.compare.choices import PAGE
from pages.compare.sections import render_heads, render_outputs
from pages.compare.sides import choose_sides
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips

context = frame("Compare two models, or two sentences.", PAGE)
chosen = PAGE.now
switch_chips(context)
sides = choose_sides(context, chosen)
if sides is not None:
    render_outputs(*sides, chosen)
    render_heads(context, *sides, chosen)
