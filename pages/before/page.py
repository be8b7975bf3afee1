"""Before attention: the one vector of recurrent models, what it forgets, and how far gradients reach."""

from pages.before.bottleneck import render_bottleneck
from pages.before.choices import PAGE, open_on
from pages.before.models import first_recurrent
from pages.shared.context import say
from pages.shared.header import frame

open_on(first_recurrent())
context = frame("What did people do before attention, and why was it not enough?", PAGE)
chosen = PAGE.settle(context.view)
say(*PAGE.said())
render_bottleneck(context, chosen)
