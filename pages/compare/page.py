"""Two at once: one sentence through two models, or two sentences through one."""

from pages.compare.choices import PAGE
from pages.compare.figures import show_heads, show_outputs
from pages.compare.sides import choose_sides
from pages.shared import controls

chosen = PAGE.follow_url()
context = controls.frame(
    "What does another model see in this sentence, or this model in another?", own=chosen.parameters()
)
controls.switch_chips(context)
pair = choose_sides(context, chosen)
if pair is not None:
    show_outputs(context, pair)
    show_heads(context, pair, chosen)
