"""The Masks page's sections: a batch of the visitor's sentences, the masks over it, and what leaks when one is off."""

import math
from functools import partial

import numpy as np
import streamlit as st

from pages.masks.choices import MAX_TEXT, PAGE, Choices
from pages.shared import fields, loading, wording
from pages.shared.context import PageContext, say
from pages.shared.controls import choose_kind
from pages.shared.exhibit import exhibit, get_data
from pages.shared.guard import guard
from pages.shared.url.session import choose, session, start_afresh
from transformer.analysis.attention.mask_leakage import Forcing, shares_of
from transformer.config import ModelConfig
from transformer.interventions import DisableMask, MaskKind, merged
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import MASK_RULES
from transformer.views.masks import (
    BatchTokens,
    EmptyAttentionRow,
    EmptyRowData,
    LeakData,
    MaskLeak,
    MasksData,
    SentenceMasks,
    TeacherForcing,
)
from transformer.views.subjects import Batch, Decoding

MAX_SENTENCES = 6
_PADDING: dict[MaskKind, str] = {
    "padding": "Padding mask, self-attention",
    "cross": "Padding mask, cross-attention",
}
_ON_LATER = next(str(share) for share in shares_of(ModelConfig()) if share.rule and share.rule.name == "causal")
_ALL_ON = "All masks are on: nothing leaks."
_NO_CAUSAL = (
    "The masks that this model has are on. It was trained without a causal mask, so later tokens are visible: "
    "**{share} %** of its decoder's self-attention falls on them."
)
_LOSS_HELP = "Loss: how badly each token of the outputs with all masks is predicted, on average; end marks count too."


def choose_batch(context: PageContext, chosen: Choices) -> Batch | None:
    """Renders the field for the other sentences; returns the batch, or None where the model cannot read it."""
    lines = [line.strip() for line in chosen.others[:MAX_TEXT].splitlines() if line.strip()]
    offered = [text for text in loading.examples(context.lab) if text != context.view.text]
    offered.sort(key=lambda text: len(text.split()))
    others = lines or list(dict.fromkeys(offered[i] for i in (0, -1))) if offered else lines
    texts = (context.view.text, *others[: MAX_SENTENCES - 1])
    fields.lines(
        "Other sentences of the batch, one per line",
        chosen.others if lines else "\n".join(others),
        PAGE.take("others"),
        key="masks-beside",
        height=80,
    )
    if len(chosen.others) > MAX_TEXT:
        say(
            f"These sentences have {len(chosen.others):,} characters; only the first {MAX_TEXT:,} are used, which is "
            "all that a link can carry. Make them shorter or fewer."
        )
    if (extra := len(others) - (MAX_SENTENCES - 1)) > 0:
        left_out = "the last one is left out" if extra == 1 else f"the last {extra} are left out"
        say(f"A batch here has at most {MAX_SENTENCES} sentences, including the one above: {left_out}.")
    try:
        return Batch(context.lab, context.lab.leak(texts, _masks_off(context)))
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None


def render_toggles(context: PageContext) -> None:
    """Renders a toggle for each mask; lifting one is a switch like any other and applies on the other pages too."""
    off = {mask for spec in _masks_off(context) for mask in spec.lifts}
    config = context.lab.transformer.config
    rules = [rule for rule in MASK_RULES if rule.lacking or rule.holds(config)]
    never = {rule.name for rule in rules if not rule.holds(config)}
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        for mask, label in (_PADDING | {rule.name: rule.label.capitalize() for rule in rules}).items():
            if mask in never:
                st.toggle(label, key=f"mask-never-{mask}", disabled=True, help="This model was trained without it.")
            else:
                fields.toggle(label, mask not in off, partial(_flip, mask), key=f"mask-on-{mask}")
        if never:
            st.button("Open a model that has one", key="masks-with-causal", type="tertiary", on_click=start_afresh)
    others = [spec.label() for spec in context.view.switches if not spec.lifts]
    if others:
        st.caption(f"Only mask switches apply on this page. Left out here: {wording.plain('; '.join(others))}.")


@guard("The batch")
def render_batch(batch: Batch) -> None:
    """Renders the batch as it goes into the encoder."""
    data = exhibit(batch, BatchTokens())
    if data is None:
        return
    empty = int((~data.real).sum())
    st.caption(
        f"{data.real.size} positions, {empty} of them padding ({wording.number(100 * empty / data.real.size)} %): "
        "a batch is a rectangle, but sentences differ in length. The padding mask hides \\<pad\\> from every query."
    )


@guard("The masks")
def render_masks(context: PageContext, batch: Batch, chosen: Choices) -> None:
    """Renders the masks of one sentence that combine into the one that the pass applied."""
    texts = batch.leak.texts
    row = min(chosen.row, len(texts) - 1)
    say(*PAGE.said())
    if row < chosen.row:
        say(
            f"There is no sentence {chosen.row}: the batch has sentences 0 to {len(texts) - 1}. Sentence {row} is "
            "shown."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        choose_kind(context, _choose_kind)
        fields.box(
            "Sentence of the batch",
            range(len(texts)),
            row,
            PAGE.take("row"),
            key="masks-row",
            names=lambda i: f"{i} · {texts[i]}" if i else f"0, yours · {texts[i]}",
        )
    data = exhibit(batch, SentenceMasks(kind=context.view.kind, row=row))
    if data is not None:
        legend = "A row is a token that looks (query), a column one that can be looked at (key). "
        legend += "Coloured: it may look there. Crossed out: it may not, and its weight is exactly 0."
        which = "both masks are" if len(data.parts) == 2 else "all masks are"
        both = f" ∧ means *and*: coloured where {which}." if len(data.parts) > 1 else ""
        st.caption(f"{legend}{both} {_combination(data)}{_no_causal(context, data)}")


def _combination(data: MasksData) -> str:
    what = "The combination" if len(data.parts) > 1 else "That"
    if data.is_combination:
        return f"{what} is exactly the mask that the recorded pass applied."
    return f"{what} is **not** the mask that the pass applied."


def _no_causal(context: PageContext, data: MasksData) -> str:
    """Returns why there is no causal mask beside the padding mask; empty if there is one."""
    kind = context.view.kind
    if data.missing:
        return " Grey: the causal mask that this model was trained without, and what it would have hidden."
    if len(data.parts) > 1:
        return ""
    both = " *Decoder self* has both." if context.lab.model.config.causal_mask else ""
    return f" {kind.label} has no causal mask: the whole sentence is there from the start.{both}"


@guard("The effect of the masks")
def render_effect(context: PageContext, batch: Batch) -> None:
    """Renders the loss without the masks that are off, then the outputs that came out differently."""
    data = get_data(batch, MaskLeak())
    before, after = map(wording.number, data.loss.tolist())
    if not batch.leak.off:
        share = wording.number(100 * data.shares[0, data.names.index(_ON_LATER)])
        said = _ALL_ON if context.lab.model.config.causal_mask else _NO_CAUSAL.format(share=share)
        st.markdown(f"{said} Loss: **{before}** nats per token. Switch a mask off above.", help=_LOSS_HELP)
        return
    off = {mask for spec in batch.leak.off for mask in spec.lifts}
    is_worse = bool(data.changed) and data.loss[1] > data.loss[0]
    why = "".join(f" {rule.unfamiliar}" for rule in MASK_RULES if is_worse and rule.name in off)
    st.markdown(f"Loss: **{after}** nats per token; with all masks {before}.{why}", help=_LOSS_HELP)
    _what_changed(data, off)


@guard("What leaks")
def render_leak(context: PageContext, batch: Batch) -> None:
    """Renders the leak through the masks that are off, in numbers."""
    st.markdown("## What leaks")
    data = exhibit(batch, MaskLeak(), draw=lambda data: _leak_table(batch, data))
    if data is None:
        return
    if endless := [str(i) for i in np.flatnonzero(~data.ended[0])]:
        st.caption(
            f"{'Sentence' if len(endless) == 1 else 'Sentences'} {', '.join(endless)}: no end mark was written, the "
            f"output with all masks was cut off at the model's {context.lab.model.config.max_length} tokens."
        )


def _leak_table(batch: Batch, data: LeakData) -> None:
    before, after = data.shares.tolist()
    has_all = batch.lab.model.config.causal_mask
    columns = {
        "": ["loss, teacher-forced (nats per token)", *(f"attention {name}" for name in data.names)],
        "all masks on" if has_all else "with the masks that it has": [
            wording.number(value) for value in (data.loss[0], *before)
        ],
    }
    if batch.leak.off:
        columns["as switched"] = [wording.number(value) for value in (data.loss[1], *after)]
    st.dataframe(columns, hide_index=True, width="stretch")
    st.caption(f"{_LOSS_HELP} Attention: mean share of a real query's attention, over all layers and heads.")


def _what_changed(data: LeakData, off: set[MaskKind]) -> None:
    """Renders the outputs that came out differently; if none did, what changed instead."""
    if not data.changed:
        st.markdown(_same_outputs_text(data, off))
    for i in data.changed:
        before, after = (wording.plain(words[i]) or "(no words)" for words in data.written)
        cut = f" It wrote no end mark and was cut off after {len(data.outputs[1][i])} tokens."
        which = f"Sentence {i}{'' if i else ' (yours)'}, decoded step by step"
        st.markdown(f"{which}: it writes *{after}* now instead of *{before}*.{'' if data.ended[1, i] else cut}")


def _same_outputs_text(data: LeakData, off: set[MaskKind]) -> str:
    """Says what lifting masks changed where every output's words stayed the same: the loss, and why it can."""
    before, after = data.loss.tolist()
    if wording.number(before) == wording.number(after):
        moved = float(np.abs(data.losses[1] - data.losses[0]).max())
        return (
            "**Little depends on it here.** The output words stay the same, and a sentence's loss moves by at most "
            f"{wording.number(moved)} nats per token."
        )
    verb = "rises" if after > before else "falls"
    text = (
        f"**The loss {verb}, but the output words stay the same.** Decoded step by step, the most probable token is "
        "still the same at every step. "
        "The loss reads the same outputs in one pass (teacher-forced) and asks how probable each token was: "
        f"{wording.number(math.exp(-before))} before, {wording.number(math.exp(-after))} now (geometric mean)."
    )
    if "causal" in off:
        text += (
            " In that one pass every position now sees the tokens after it, as it never did in training; step by step "
            "those tokens do not exist yet, which is why the words can stay the same."
        )
    return text


@guard("Teacher forcing")
def render_forcing(context: PageContext, sentence: Decoding) -> None:
    """Renders why teacher forcing under a causal mask is not cheating, measured on the page's own sentence."""
    causal = context.lab.model.config.causal_mask
    without = "Why teacher forcing without a causal mask is cheating"
    with st.expander("Why teacher forcing with a causal mask is not cheating" if causal else without):
        exhibit(sentence, TeacherForcing(), draw=_forcing_text if causal else _cheating_text)


def _forcing_text(measured: Forcing) -> None:
    st.markdown(
        f"""
In training the decoder gets the whole correct answer at once and predicts each of its tokens in one pass. That looks
like cheating, but position *t* sees only positions up to *t*, and those hold the tokens **before** the one it predicts.

- One teacher-forced pass and decoding step by step give the same probabilities: the largest difference is
  **{wording.number(measured.from_steps)}**.
- If the last input token changes, the earlier log-probabilities move by **{wording.number(measured.masked_change)}**.
- Without the causal mask they move by **{wording.number(measured.unmasked_change)}**: now each position sees the
  token that it has to predict. A model trained this way would learn to copy it, and would be lost when the next token
  does not exist yet.

This model was trained with its masks, so lifting one usually makes it worse, not better: its layers receive values that
they never received in training.
"""
    )


def _cheating_text(measured: Forcing) -> None:
    """Renders the same for a model that never had a causal mask."""
    st.markdown(
        f"""
In training the decoder got the whole correct answer at once, and nothing kept position *t* from seeing the token that
it had to predict: that token comes right after it in the decoder's own input.

- If the last input token changes, the earlier log-probabilities move by **{wording.number(measured.masked_change)}**:
  each position sees what comes after it.
- One teacher-forced pass and decoding step by step differ: by up to **{wording.number(measured.from_steps)}** in a
  probability. Step by step, the next token does not exist yet, and there is nothing to copy.
"""
    )


@guard("The empty row")
def render_empty_row(sentence: Decoding) -> None:
    """Explains a row that may attend to nothing."""
    with st.expander("A row that may attend to nothing"):
        exhibit(sentence, EmptyAttentionRow(), draw=_empty_row_text)


def _empty_row_text(data: EmptyRowData) -> None:
    row = data.row
    st.markdown(
        "If every key is forbidden, softmax has nothing to distribute. Here is the first row of the first encoder "
        "layer, in a pass that treats every token of your sentence as padding:"
    )
    st.dataframe(
        {
            "softmax with −∞ for forbidden keys": [str(value) for value in row.plain],
            "with the lowest finite number instead": [str(value) for value in row.floored],
            "in this project": [str(value) for value in row.here],
        },
        width="stretch",
        height=180,
    )
    st.markdown(
        f"""
The first is 0 / 0: one such row turns the whole loss into NaN. The second spreads attention evenly over exactly what
it must not see. So here the row is **defined as zero**: nothing was found, nothing is passed on. The sublayer's output
is then W_O's bias (measured distance: {wording.number(row.from_bias)}), and no gradient flows back through the row
(largest: {wording.number(row.gradient)}), so it teaches nothing and breaks nothing.
"""
    )


def _masks_off(context: PageContext) -> tuple[DisableMask, ...]:
    """Returns the switches that turn masks off."""
    return tuple(spec for spec in context.view.switches if isinstance(spec, DisableMask))


def _flip(mask: MaskKind, on: bool) -> None:
    kept = [spec for spec in session().view.switches if spec != DisableMask(mask)]
    choose(switches=merged(kept if on else [*kept, DisableMask(mask)]))


def _choose_kind(kind: AttentionKind) -> None:
    PAGE.change(attention=None)
    choose(kind=kind)
