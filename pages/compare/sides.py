"""Two at once: the controls for what stands on both sides, and both sides decoded."""

import streamlit as st

from pages.compare.choices import PAGE, Choices, Two
from pages.compare.loading import Side, get_lab_at, side, steps_of
from pages.shared import loading, wording
from pages.shared.context import Decoded, PageContext, say, sentence
from pages.shared.fields import box, line, segments
from pages.shared.interventions.panel import switch_popover
from pages.shared.url.session import session
from transformer.checkpoints.settings import CheckpointError, Found, read_settings
from transformer.text.pairs import clean_text

_TWO: dict[Two, str] = {"sentences": "Two sentences", "models": "Two models"}
LAST = "at the end"
_CHANGES = (("tired", "wide"), ("wide", "tired"), ("did not follow", "followed"), ("heavy", "weak"), ("fast", "slow"))


def choose_sides(context: Decoded, chosen: Choices) -> tuple[Side, Side] | None:
    """Renders the controls for what is compared with the page's model and sentence. Returns both sides, or None if one
    fails."""
    say(*PAGE.said())
    other = chosen.other or _suggested_model(context)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        segments("Compare", _TWO, chosen.compared, PAGE.take("two"), key="two", hide_label=False)
        if chosen.compared == "models":
            _choose_step("two-at", f"Weights of {context.lab.name}", context.lab.name, chosen.at, "at")
            _choose_other(context, other)
            _choose_step("two-other-at", f"Weights of {other}", other, chosen.other_at, "other_at")
        else:
            _choose_sentence(context, chosen)
        switch_popover(context)
    text = context.view.text if chosen.compared == "models" else chosen.other_text or _other_sentence(context)
    other = other if chosen.compared == "models" else context.lab.name
    at, other_at = (chosen.at, chosen.other_at) if chosen.compared == "models" else ("", "")
    # The suggestion depends on the models that there are; an exported link names it.
    session().own |= {"other": other} if chosen.compared == "models" else {"other_text": text}
    first = _side(context.lab.name, at, context.view.text, context)
    second = _side(other, other_at, text, context)
    if first is None or second is None:
        return None
    say(*first.left_out, *second.left_out)
    read = second.seen.sentence
    if read.unseen and read.unseen != context.sentence.unseen:
        st.markdown(f"{wording.plain(second.name)}: {wording.unseen(second.lab.tokenizer, read)}")
    return first, second


def _choose_other(context: PageContext, other: str) -> None:
    names = [model.name for model in loading.models()]
    box("Other model", names, other, lambda name: PAGE.change(other=name or ""), key="two-other", width=220)


def _choose_step(key: str, label: str, name: str, step: str, field: str) -> None:
    steps = steps_of(name)
    if not steps:
        return
    box(
        label,
        [LAST, *steps],
        step if step in steps else LAST,
        lambda taken: PAGE.change(**{field: "" if taken == LAST else taken}),
        key=key,
        names=lambda s: s if s == LAST else f"step {int(s):,}",
        width=170,
    )


def _choose_sentence(context: PageContext, chosen: Choices) -> None:
    text = chosen.other_text or _other_sentence(context)
    line("The other sentence", text, lambda typed: PAGE.change(other_text=clean_text(typed)), key="two-text")


def _side(name: str, step: str, text: str, context: PageContext) -> Side | None:
    """Returns one side, or None with a sentence about what is wrong with it."""
    try:
        get_lab_at(name, step)
        return side(name, step, text, context.view.switches)
    except (CheckpointError, ValueError) as error:
        say(sentence(str(error)))
        return None


def _suggested_model(context: PageContext) -> str:
    """Returns a model to compare this one with: another of the same corpus, else any other, else itself."""
    others = [model for model in loading.models() if model.name != context.lab.name]
    corpus = context.lab.checkpoint.settings.corpus.name
    related = [model.name for model in others if _corpus_of(model) == corpus]
    near = [name for name in related if context.lab.name.removesuffix("-learned") in name]
    return next(iter([*near, *related, *(model.name for model in others)]), context.lab.name)


def _corpus_of(model: Found) -> str:
    """Returns the corpus in a model's settings, read without its weights; empty if they cannot be read."""
    try:
        return read_settings(model.folder).corpus.name
    except CheckpointError:
        return ""


def _other_sentence(context: PageContext) -> str:
    """Returns the page's sentence with one word changed, else another example."""
    text = context.view.text
    for old, new in _CHANGES:
        if f" {old}" in text and not context.lab.unknown(new):
            return text.replace(f" {old}", f" {new}", 1)
    if " " in text and context.lab.checkpoint.settings.corpus.name in ("reverse", "copy", "sort"):
        first, rest = text.split(" ", 1)
        return f"{rest} {first}"
    return next((other for other in loading.examples(context.lab) if other != text), text)
