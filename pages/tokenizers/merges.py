"""The merges of BPE on the text, one by one."""

import streamlit as st

from pages.shared import wording
from pages.shared.components.tokens import token_chips
from pages.shared.context import say, sentence
from pages.shared.exhibit import exhibit, get_data
from pages.shared.fields import slider
from pages.tokenizers.choices import PAGE, Choices
from pages.tokenizers.learned import choose_text_and_source, learned
from transformer.data.corpora import CorpusError
from transformer.interventions.names import plural
from transformer.text.tokenizer import TokenizerError
from transformer.views.tokens.merges import BpeMerges, MergesData
from transformer.views.tokens.subjects import CutText


def render_merges(chosen: Choices) -> None:
    """Renders the merges of a tokenizer learned from the chosen corpus."""
    choose_text_and_source(chosen)
    try:
        subject = CutText(learned(chosen, "bpe"), chosen.text)
    except (CorpusError, TokenizerError) as error:
        say(sentence(str(error)))
        return
    render_steps(subject, chosen)
    st.caption(
        "To learn, BPE merged the most frequent pair of neighbouring pieces in its text again and again, until the "
        "vocabulary was full. To read, it makes the same merges in the same order; what no merge reaches stays a "
        "character. A piece never crosses a space."
    )


def render_steps(subject: CutText, chosen: Choices) -> None:
    """Renders the slider over the merges, the pieces of this moment, and the picture of all."""
    data = get_data(subject, BpeMerges())
    last = len(data.merges)
    step = last if chosen.step is None else min(chosen.step, last)
    if last:
        slider("Merges made", 0, last, step, _take_step, key=f"tokenizers-step-{last}")
    st.markdown(_step_text(data, step))
    pieces = data.pieces(step)
    made = set(data.merges[step - 1].starts) if step else set()
    starts = _starts(pieces)
    token_chips(
        pieces,
        label=f"{len(pieces)} {plural(len(pieces), 'piece')}",
        changed=[i for i, start in enumerate(starts) if start in made],
        note="This merge made it.",
        key="tokenizers-pieces",
    )
    exhibit(subject, BpeMerges(step=step), data=data)


def _take_step(step: int) -> None:
    PAGE.change(step=step)


def _step_text(data: MergesData, step: int) -> str:
    if not data.merges:
        return "No merge applies: every piece is a character."
    if not step:
        return f"Before the first merge: {len(data.characters)} characters."
    merge = data.merges[step - 1]
    places = len(merge.starts)
    where = f", in {places} places" if places > 1 else ""
    left, right, piece = (f"**{wording.plain(part)}**" for part in (merge.left, merge.right, merge.piece))
    return f"Step {step} of {len(data.merges)}: {left} + {right} → {piece}{where}. It was learned as merge " + (
        wording.plain(f"{merge.rank + 1:,} of {data.learned:,}.")
    )


def _starts(pieces: tuple[str, ...]) -> list[int]:
    found, start = [], 0
    for piece in pieces:
        found.append(start)
        start += len(piece)
    return found
