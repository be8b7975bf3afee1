"""Heads: what each does over many sentences, which are alike, what each is worth, and how few change an output."""

from pages.heads.choices import SECTIONS, choices, misread, segments
from pages.heads.faithfulness import draw_evidence
from pages.heads.importance import draw_worth
from pages.heads.minimal_set import draw_search
from pages.heads.patterns import draw_roles
from pages.heads.similarity import draw_alike
from pages.shared import controls

chosen = choices()
context = controls.frame("What does each head do, over many sentences, and what is it worth?", own=chosen.parameters())
controls.say(*misread(), *controls.problems("kind", "layer", "head"))
if chosen.section in ("roles", "alike"):
    controls.say(*controls.problems("switch"))  # whose chips are not shown there
segments("section", "Look at", SECTIONS, chosen.section, bare=True)
match chosen.section:
    case "roles":
        draw_roles(context, chosen)
    case "alike":
        draw_alike(context, chosen)
    case "worth":
        controls.switch_chips(context)
        draw_worth(context, chosen)
    case "smallest":
        controls.switch_chips(context)
        draw_search(context, chosen)
    case "evidence":
        controls.switch_chips(context)
        draw_evidence(context, chosen)
