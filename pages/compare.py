"""Two at once: one sentence through two models, or two sentences through one."""

from pages.common import controls
from pages.common.two_choices import PAGE
from pages.common.two_sides import choose_sides
from pages.common.two_views import show_heads, show_outputs

chosen = PAGE.follow_url()
scene = controls.frame(
    "What does another model see in this sentence, or this model in another?", own=chosen.parameters()
)
controls.switch_chips(scene)
pair = choose_sides(scene, chosen)
if pair is not None:
    show_outputs(scene, pair)
    show_heads(scene, pair, chosen)
