"""Before attention: the one vector of recurrent models, what it forgets, and how far gradients reach."""

from pages.before.bottleneck import render_bottleneck
from pages.before.choices import PAGE, SECTIONS, segments
from pages.before.gradient import render_gradient
from pages.before.models import first_recurrent
from pages.shared.context import say
from pages.shared.header import frame

context = frame(
    "What did people do before attention, and why was it not enough?", PAGE, opens_on=(first_recurrent(), "")
)
chosen = PAGE.settle(context.view)
say(*PAGE.said())
segments("section", "Look at", SECTIONS, chosen.section)
if chosen.section == "bottleneck":
    render_bottleneck(context, chosen)
else:
    render_gradient(context, chosen)
