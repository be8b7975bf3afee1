"""Invitations: one change to try, and links into the other pages that show something surprising."""

from dataclasses import dataclass, replace

import streamlit as st

from pages.home.said import change_of, most_needed
from pages.home.translation import render_translation
from pages.shared import loading, wording
from pages.shared.cache import cached
from pages.shared.context import Decoded, PageContext, is_transformer
from pages.shared.header import change_text
from pages.shared.texts.catalogue import Texts
from pages.shared.url.session import session
from pages.shared.waiting import give_way
from transformer.access.classroom import classroom
from transformer.analysis.heads.importance import HeadEffect, OutputEffect, head_effects, output_effects
from transformer.data.corpora import CORPORA
from transformer.inspection.token_alignment import edit_marks
from transformer.interventions import AblateHeads, DisableMask, heads_set_to, merged
from transformer.lab import AttentionKind, Lab

TEXTS = Texts("home")
_CHANGES = (
    ("tired", "wide"),
    ("wide", "tired"),
    ("fast", "slow"),
    ("slow", "fast"),
    ("followed", "did not follow"),
    ("did not follow", "followed"),
    ("heavy", "weak"),
    ("black", "old"),
)
"""Pairs of words of which one in place of the other turns the meaning of a sentence of the pronoun corpus."""
SEEN = 0.05
"""The smallest change of a probability that Home sends a visitor to see."""
_ARROW = ":material/arrow_forward:"


@dataclass(frozen=True)
class SentenceChange:
    """The difference from a similar sentence shown before."""

    source: frozenset[int] = frozenset()
    target: frozenset[int] = frozenset()
    sentence: str = ""


def sentence_change(context: Decoded) -> SentenceChange:
    """Returns the difference from the sentence shown before, if the two are similar."""
    text = session().previous.get(context.lab.name)
    if text is None or text == context.view.text:
        return SentenceChange()
    try:
        before = loading.get_inspection(context.lab, text, context.view.switches)
    except ValueError:
        return SentenceChange()
    now = context.inspection
    gone, new = edit_marks(before.source_tokens, now.source_tokens)
    if 2 * len(new) > len(now.source_tokens) or 2 * len(gone) > len(before.source_tokens):
        return SentenceChange()
    _, written = edit_marks(before.target_tokens, now.target_tokens)
    return SentenceChange(new, written, change_of(before.target_tokens, now.target_tokens))


def class_lesson() -> None:
    """Renders the link to the lesson that a teacher pinned for the class; nothing where there is none."""
    if (found := classroom()).lesson:
        st.page_link(
            "pages/learn/page.py",
            label=TEXTS("class_lesson", lesson=wording.plain(found.lesson_title)),
            icon=":material/school:",
            query_params={"lesson": found.lesson},
        )


def change_to_try(context: PageContext) -> tuple[str, str] | None:
    """Returns a change of the sentence that is worth seeing, with the new sentence; None if there is none."""
    text = context.view.text
    padded = f" {text} ".replace(".", " .").replace(",", " ,")
    for old, new in _CHANGES:
        if f" {old} " in padded and not context.lab.unknown(new):
            changed = f" {text}".replace(f" {old}", f" {new}", 1).strip()
            return TEXTS("change", old=old, new=new), changed
    if context.lab.checkpoint.settings.corpus.name in ("reverse", "copy", "sort") and " " in text:
        symbols = text.split()
        return TEXTS("move_first"), " ".join([*symbols[1:], symbols[0]])
    return None


def try_a_change(offered: tuple[str, str]) -> None:
    """Renders a button that makes this change."""
    label, changed = offered
    st.button(label, key="try", type="primary", on_click=change_text, args=(changed,))


def render_without_attention(context: Decoded) -> None:
    """Renders the translation of a model that has no attention to draw, and what to do next."""
    render_translation(context)
    n_tokens = len(context.inspection.source_tokens)
    st.markdown(TEXTS("one_vector", n=n_tokens, d_model=context.lab.model.config.d_model))
    if offered := change_to_try(context):
        try_a_change(offered)
    st.space("small")
    st.markdown(f"## {TEXTS('further')}")
    watch_one_learn()
    _lessons()
    _before_attention(context)
    _train_your_own(context)


def look_further(context: Decoded) -> None:
    """Renders links with everything filled in: the lessons, the head that this output needs most, and, folded, more."""
    st.markdown(f"## {TEXTS('further')}")
    _lessons()
    _most_needed_head(context)
    with st.expander(TEXTS("more")):
        if is_transformer(context.lab):
            _experiments(context)
        _before_attention(context)
        _train_your_own(context)


def _experiments(context: Decoded) -> None:
    _which_heads(context)
    layer = context.lab.model.config.n_decoder_layers - 1
    everything = AblateHeads("decoder", layer, "cross", tuple(range(context.lab.model.config.n_heads)))
    _link(context, (everything,), TEXTS("without_layer", layer=layer))
    if context.lab.model.config.causal_mask:
        _link(context, (DisableMask("causal"),), TEXTS("without_mask"))
    _smallest_set(context)


def watch_one_learn() -> None:
    """Renders the link to the Playground, which needs no knowledge."""
    st.page_link("pages/playground/page.py", label=TEXTS("playground"), icon=_ARROW)


def _lessons() -> None:
    st.page_link("pages/learn/page.py", label=TEXTS("lessons"), icon=_ARROW)


def _smallest_set(context: PageContext) -> None:
    """Links to the Heads page's search, with this sentence."""
    filled = context.view.parameters() | {"section": "smallest"}
    st.page_link("pages/heads/page.py", label=TEXTS("smallest_set"), icon=_ARROW, query_params=filled)


def _before_attention(context: PageContext) -> None:
    """Links to the page of recurrent models, with this model and sentence."""
    filled = context.view.parameters()
    st.page_link("pages/before/page.py", label=TEXTS("before"), icon=_ARROW, query_params=filled)


def _train_your_own(context: PageContext) -> None:
    """Links to the Train page with this model's corpus and this sentence filled in."""
    corpus = context.lab.checkpoint.settings.corpus.name
    filled = {"corpus": corpus, "sentence": context.view.text} if corpus in CORPORA else None
    st.page_link("pages/train/page.py", label=TEXTS("train"), icon=_ARROW, query_params=filled)


def _most_needed_head(context: Decoded) -> None:
    """Returns the one head without which the output changes most, measured now."""
    if context.view.switches:
        return
    effects = _output_effects(context.lab, context.view.text)
    piece = context.lab.tokenizer.piece
    written = context.inspection.target_tokens[effects[0].step]
    instead = None if effects[0].instead is None else piece(effects[0].instead)
    _link(context, (effects[0].switch,), most_needed(effects[0], len(effects), written, instead))


def _which_heads(context: Decoded) -> None:
    """Returns the two heads that matter most to the pronoun, measured now; None if neither moves it enough to be
    seen."""
    step = wording.pronoun_step(context.inspection)
    if context.view.switches or step is None:
        return
    strongest = _head_effects(context.lab, context.view.text, step)[:2]
    if abs(strongest[0].shift) < SEEN:
        return
    specs = merged([effect.switch for effect in strongest])
    word = wording.token(context.inspection.target_tokens[step])
    moved = wording.listed([wording.number(effect.shift, signed=True) for effect in strongest])
    _link(context, specs, TEXTS("which_heads", word=word, moved=moved))


def _link(context: PageContext, switches: tuple, label: str) -> None:
    kind = AttentionKind.CROSS
    head = layer = None
    if off := sorted(heads_set_to(switches[:1], ("zero",))):
        stack, layer, sublayer, head = off[0]
        kind = AttentionKind.at(stack, sublayer)
    elif DisableMask("causal") in switches:
        kind = AttentionKind.DECODER_SELF
    view = replace(context.view.at_head(kind, layer, head), switches=switches)
    st.page_link("pages/attention/page.py", label=label, icon=_ARROW, query_params=view.parameters())


@cached(max_entries=64)
def _head_effects(lab: Lab, text: str, step: int) -> tuple[HeadEffect, ...]:
    """Returns every head's effect on the token of a step, the largest first."""
    inspection = loading.get_inspection(lab, text)
    return head_effects(lab.model, inspection.source_ids, inspection.target_ids, step, tell=give_way)


@cached(max_entries=64)
def _output_effects(lab: Lab, text: str) -> tuple[OutputEffect, ...]:
    """Returns every head's effect on the output, the largest first."""
    inspection = loading.get_inspection(lab, text)
    return output_effects(lab.model, inspection.source_ids, inspection.target_ids, tell=give_way)
