"""Heads: what each does over many sentences, which are alike, what each is worth, and how few change an output."""

from pages.common import controls
from pages.common.head_alike import draw_alike
from pages.common.head_choices import SECTIONS, choices, misread, segments
from pages.common.head_evidence import draw_evidence
from pages.common.head_roles import draw_roles
from pages.common.head_search import draw_search
from pages.common.head_worth import draw_worth

chosen = choices()
scene = controls.frame("What does each head do, over many sentences, and what is it worth?", own=chosen.parameters())
controls.say(*misread(), *controls.problems("kind", "layer", "head"))
if chosen.section in ("roles", "alike"):
    controls.say(*controls.problems("switch"))  # whose chips are not shown there
segments("section", "Look at", SECTIONS, chosen.section, bare=True)
match chosen.section:
    case "roles":
        draw_roles(scene, chosen)
    case "alike":
        draw_alike(scene, chosen)
    case "worth":
        controls.switch_chips(scene)
        draw_worth(scene, chosen)
    case "smallest":
        controls.switch_chips(scene)
        draw_search(scene, chosen)
    case "evidence":
        controls.switch_chips(scene)
        draw_evidence(scene, chosen)
