"""The Masks page's parts: a batch of the visitor's sentences, the masks over it, and what leaks when one is off."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.controls import PageContext, choose_kind, say
from pages.shared.exhibit import exhibit
from pages.shared.url.session import choose, session
from pages.shared.url.view_state import merged
from transformer.analysis.attention.mask_leakage import Forcing
from transformer.interventions import DisableMask, Intervention, MaskKind
from transformer.views import BatchTokens, EmptyAttentionRow, MaskLeak, SentenceMasks, TeacherForcing
from transformer.views.masks import SHARES, EmptyRowData, LeakData, MasksData
from transformer.views.subjects import Batch, Decoding

MOST_SENTENCES = 6
LONGEST = 1000
"""Characters of the other sentences, which travel in the URL."""
_KEY, _MISREAD = "masks-page", "masks-misread"
_TOGGLES: dict[MaskKind, str] = {
    "padding": "Padding mask, self-attention",
    "cross": "Padding mask, cross-attention",
    "causal": "Causal mask",
}
_ALL_ON = "All masks are on: nothing leaks."
_NO_CAUSAL = "The masks that this model has are on; it was trained without a causal mask, so later tokens are seen."
_LOSS_HELP = "Loss: mean over all tokens of the outputs with all masks; end marks are predicted, never read."


@dataclass(frozen=True)
class Beside:
    """The sentences that share the batch with the page's own, one a line, and which of all is looked at."""

    text: str = ""
    row: int = 1
    """The first of the others at first: it is the shortest that is offered, so its padding is seen."""

    def parameters(self) -> dict[str, str]:
        """The query parameters; defaults are left out."""
        found = {"beside": self.text[:LONGEST], "row": "" if self.row == Beside.row else str(self.row)}
        return {name: value for name, value in found.items() if value}


def beside() -> Beside:
    """What is chosen now: the URL's word where someone else than this session wrote it, else what was chosen before."""
    in_url = {name: st.query_params[name] for name in ("beside", "row") if name in st.query_params}
    kept: Beside = st.session_state.setdefault(_KEY, Beside())
    if session().touched:
        st.session_state.pop(_MISREAD, None)
    elif in_url and in_url != kept.parameters():
        row = in_url.get("row", str(Beside.row))
        is_row = row.isascii() and row.isdecimal() and len(row) < 4
        kept = st.session_state[_KEY] = Beside(in_url.get("beside", ""), int(row) if is_row else Beside.row)
        said = f"The link says row “{row[:30]}”, which is no number of a sentence of the batch."
        st.session_state[_MISREAD] = () if is_row else (said,)
    return kept


def choose_batch(context: PageContext, chosen: Beside) -> Batch | None:
    """The field for the other sentences; the batch as read by the model, or None where it cannot be read."""
    lines = [line.strip() for line in chosen.text[:LONGEST].splitlines() if line.strip()]
    offered = [text for text in loading.examples(context.lab) if text != context.view.text]
    offered.sort(key=lambda text: len(text.split()))
    others = lines or list(dict.fromkeys(offered[i] for i in (0, len(offered) // 2))) if offered else lines
    texts = (context.view.text, *others[: MOST_SENTENCES - 1])
    fields.lines(
        "Other sentences of the batch, one a line",
        chosen.text if lines else "\n".join(others),
        lambda typed: _change(text=typed, row=Beside.row),
        key="masks-beside",
        height=80,
    )
    if len(chosen.text) > LONGEST:
        say(
            f"These sentences have {len(chosen.text):,} characters; only the first {LONGEST:,} are taken, as many "
            "as a link carries. Make them shorter or fewer."
        )
    if (extra := len(others) - (MOST_SENTENCES - 1)) > 0:
        said = "the last one is left out" if extra == 1 else f"the last {extra} are left out"
        say(f"A batch here has at most {MOST_SENTENCES} sentences, the one above among them: {said}.")
    try:
        return Batch(context.lab, loading.get_leak(context.lab, texts, _masks_off(context)))
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None


def switch_masks(context: PageContext) -> None:
    """A toggle for each mask; off is a switch like all others and travels to the other pages."""
    off = {mask for spec in _masks_off(context) for mask in spec.lifts}
    never = set() if context.lab.model.config.causal_mask else {"causal"}
    with st.container(horizontal=True, gap="medium"):
        for mask, label in _TOGGLES.items():
            if mask in never:
                st.toggle(label, key=f"mask-never-{mask}", disabled=True, help="This model was trained without it.")
            else:
                fields.toggle(label, mask not in off, partial(_flip, mask), key=f"mask-on-{mask}")
    others = [spec.label() for spec in context.view.switches if not spec.lifts]
    if others:
        st.caption(f"Masks alone count on this page. Left out here: {wording.plain('; '.join(others))}.")


def show_batch(batch: Batch) -> None:
    """The batch as it goes into the encoder."""
    data = exhibit(batch, BatchTokens())
    if data is None:
        return
    empty = int((~data.real).sum())
    st.caption(
        f"{data.real.size} places, {empty} of them empty ({wording.number(100 * empty / data.real.size)} %): "
        "a batch is a rectangle, sentences are not. The padding mask hides the \\<pad\\> ones from every query."
    )


def show_masks(context: PageContext, batch: Batch, chosen: Beside) -> None:
    """The masks of one sentence that combine into what the pass applied."""
    texts = batch.leak.texts
    row = min(chosen.row, len(texts) - 1)
    say(*st.session_state.get(_MISREAD, ()))
    if row < chosen.row != Beside.row:
        say(
            f"There is no sentence {chosen.row}: the batch has sentences 0 to {len(texts) - 1}. Sentence {row} is "
            "shown."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        choose_kind(context)
        fields.box(
            "Sentence of the batch",
            range(len(texts)),
            row,
            lambda i: _change(row=i),
            key="masks-row",
            names=lambda i: f"{i} · {texts[i]}",
        )
    data = exhibit(batch, SentenceMasks(kind=context.view.kind, row=row))
    if data is not None:
        st.caption(f"Coloured cells may attend, struck ones may not. {_combination(data)}{_no_causal(context, data)}")


def _combination(data: MasksData) -> str:
    what = "The combination" if len(data.parts) > 1 else "That"
    if data.is_combination:
        return f"{what} is exactly the mask that the recorded pass applied."
    return f"{what} is **not** the mask that the pass applied."


def _no_causal(context: PageContext, data: MasksData) -> str:
    """Why there is no causal mask beside the padding mask; empty where there is one."""
    if len(data.parts) > 1:
        return ""
    kind = context.view.kind
    if kind == "decoder_self":
        return f" {kind.label} has no causal mask: this model was trained without one."
    both = " *Decoder self* has both." if context.lab.model.config.causal_mask else ""
    return f" {kind.label} has no causal mask: the whole sentence is there from the start.{both}"


def show_leak(context: PageContext, batch: Batch) -> None:
    """What the masks that are off let through, in numbers."""
    st.markdown("##### What leaks")
    data = exhibit(batch, MaskLeak(), draw=lambda data: _leak_table(context, batch, data))
    if data is None:
        return
    if endless := [str(i) for i in np.flatnonzero(~data.ended[0])]:
        st.caption(
            f"{'Sentence' if len(endless) == 1 else 'Sentences'} {', '.join(endless)}: no end mark was written, the "
            f"output with all masks was cut off at the model's {context.lab.model.config.max_length} tokens."
        )
    if batch.leak.off:
        _what_changed(data)


def _leak_table(context: PageContext, batch: Batch, data: LeakData) -> None:
    off, (before, after) = batch.leak.off, data.shares.tolist()
    if not off:
        st.markdown(
            f"{_ALL_ON if context.lab.model.config.causal_mask else _NO_CAUSAL} Attention on padding is "
            f"{wording.number(max(before[:3]))}, on later tokens {wording.number(before[3])}. Switch one off above."
        )
    columns = {
        "": ["loss, teacher-forced (nats per token)", *(f"attention {name}" for name in SHARES)],
        "all masks on": [wording.number(value) for value in (data.loss[0], *before)],
    }
    if off:
        columns["as switched"] = [wording.number(value) for value in (data.loss[1], *after)]
    st.dataframe(columns, hide_index=True, width="stretch")
    st.caption(f"{_LOSS_HELP} Attention: mean share of a real query's attention, over all layers and heads.")


def _what_changed(data: LeakData) -> None:
    """The outputs that came out differently, or how far losses moved where none did."""
    before, after = data.losses
    if not data.changed:
        moved = float(np.abs(after - before).max())
        st.markdown(
            f"**No output changed.** Free-running, all {len(before)} sentences come out as before; a sentence's loss "
            f"moved by at most {wording.number(moved)} nats per token."
        )
    for i in data.changed:
        was, became = (wording.plain(words[i]) for words in data.written)
        cut = f" It wrote no end mark and was cut off after {len(data.outputs[1][i])} tokens."
        st.markdown(
            f"Sentence {i}, free-running: *{was or '(no words)'}* became *{became or '(no words)'}*."
            f"{'' if data.ended[1, i] else cut}"
        )


def show_forcing(context: PageContext, sentence: Decoding) -> None:
    """Why teacher forcing under a causal mask is not cheating, measured on the page's own sentence."""
    causal = context.lab.model.config.causal_mask
    with st.expander(
        f"Why teacher forcing {'under' if causal else 'without'} a causal mask is {'not ' * causal}cheating"
    ):
        exhibit(sentence, TeacherForcing(), draw=_forcing_text if causal else _cheating_text)


def _forcing_text(measured: Forcing) -> None:
    st.markdown(
        f"""
In training the decoder gets the whole right answer at once and predicts every token of it in one pass. That looks like
cheating, but position *t* may only see positions up to *t*, and those hold the tokens **before** the one it predicts.

- One teacher-forced pass and decoding step by step give the same probabilities: the largest difference is
  **{wording.number(measured.from_steps)}**.
- With another last input token, the earlier log-probabilities move by **{wording.number(measured.masked_change)}**.
- Without the causal mask they move by **{wording.number(measured.unmasked_change)}**: now each position sees what it is
  to predict. A model trained so would learn to copy it, and could do nothing when the next token does not exist yet.

This model was trained with its masks, so lifting one usually makes it worse, not better: it meets states that it has
never seen.
"""
    )


def _cheating_text(measured: Forcing) -> None:
    """The same for a model that never had a causal mask."""
    st.markdown(
        f"""
In training the decoder got the whole right answer at once, and nothing hid from position *t* the token that it was to
predict: it stands one place later in the decoder's own input.

- With another last input token, the earlier log-probabilities move by **{wording.number(measured.masked_change)}**:
  each position sees what comes after it.
- One teacher-forced pass and decoding step by step differ: by up to **{wording.number(measured.from_steps)}** in a
  probability. Step by step, the next token does not exist yet, and there is nothing to copy.
"""
    )


def show_empty_row(sentence: Decoding) -> None:
    """What becomes of a row that may attend to nothing."""
    with st.expander("A row that may attend to nothing"):
        exhibit(sentence, EmptyAttentionRow(), draw=_empty_row_text)


def _empty_row_text(data: EmptyRowData) -> None:
    row = data.row
    st.markdown(
        "If every key is forbidden, softmax has nothing to share out. Here is the first row of the first encoder "
        "layer, in a pass where every token of your sentence is taken for padding:"
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
it was forbidden to see. So here the row is **defined as zero**: nothing was found, nothing is passed on. The block's
output is then W_O's bias (measured distance: {wording.number(row.from_bias)}), and no gradient comes back through the
row (largest: {wording.number(row.gradient)}), so that it teaches nothing and breaks nothing.
"""
    )


def _masks_off(context: PageContext) -> tuple[Intervention, ...]:
    """The masks that are switched off."""
    return tuple(spec for spec in context.view.switches if spec.lifts)


def _flip(mask: MaskKind, on: bool) -> None:
    kept = [spec for spec in session().view.switches if spec != DisableMask(mask)]
    choose(switches=merged(kept if on else [*kept, DisableMask(mask)]))


def _change(**changes: object) -> None:
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    choose()
