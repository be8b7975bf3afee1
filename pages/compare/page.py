"""Two at once: two sentences through one model, or one sentence through two."""

from pages.compare.choices import PAGE
from pages.compare.sections import render_heads, render_outputs
from pages.compare.sides import choose_sides
from pages.shared.decoding import decode
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips

context = decode(frame("Compare two sentences, or two models.", PAGE))
chosen = PAGE.now
switch_chips(context)
sides = choose_sides(context, chosen)
if sides is not None:
    render_outputs(*sides, chosen)
    render_heads(context, *sides, chosen)
