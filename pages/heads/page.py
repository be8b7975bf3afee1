"""Heads: the patterns of each over many sentences, their similarity and importance, and minimal sets of them."""

from pages.heads.choices import PAGE, SECTIONS, follow_picks, segments
from pages.heads.faithfulness import render_faithfulness
from pages.heads.importance import render_importance
from pages.heads.minimal_set import render_minimal_set
from pages.heads.patterns import render_patterns
from pages.heads.similarity import render_similarity
from pages.shared.context import Decoded, say
from pages.shared.decoding import decode
from pages.shared.header import frame
from pages.shared.interventions.panel import switch_chips
from pages.shared.url.session import problems

follow_picks()
context = frame("What does each head do, over many sentences, and does it matter?", PAGE, needs="a Transformer")
chosen = PAGE.settle(context.view)


def decode_with_chips() -> Decoded:
    """Decodes the sentence, and renders its switches."""
    decoded = decode(context)
    switch_chips(decoded)
    return decoded


say(*PAGE.said(), *problems("kind", "layer", "head"))
if chosen.section in ("roles", "alike"):
    say(*problems("switch"))  # whose chips are not shown there
segments("section", "Look at", SECTIONS, chosen.section, bare=True)
match chosen.section:
    case "roles":
        render_patterns(context, chosen)
    case "alike":
        render_similarity(context, chosen)
    case "worth":
        render_importance(decode_with_chips(), chosen)
    case "smallest":
        render_minimal_set(decode_with_chips(), chosen)
    case "evidence":
        render_faithfulness(decode_with_chips(), chosen)
