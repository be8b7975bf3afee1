"""The Masks page's parts: a batch of the visitor's sentences, the masks over it, and what leaks when one is off."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Int
from numpy import ndarray
from streamlit.delta_generator import DeltaGenerator

from pages.common import fields, loading, wording
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import Scene, choose_kind, say
from pages.common.mask_proofs import prove_batch, prove_combined, prove_honest, prove_leak, prove_row
from pages.common.pictures import is_dark
from pages.common.state import choose, visit
from pages.common.view import merged
from transformer.analysis.leaks import EmptyRow, Forcing, Leak, Reading, causal_part, real_part
from transformer.figures.masks import Part, batch_figure, masks_figure
from transformer.figures.theme import KIND_NAMES
from transformer.interventions import Intervention, MaskKind, MaskOff

MOST_SENTENCES = 6
OFF = " (off)"
"""Behind the name of a mask that is switched off."""
SIDES = {"encoder_self": ("source", "source"), "decoder_self": ("target", "target"), "cross": ("target", "source")}
"""What asks and what is asked in each attention, by the fields of a leak."""
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
SHARES = (
    *(f"on padding, {KIND_NAMES[kind].lower()}" for kind in ("encoder_self", "cross", "decoder_self")),
    "on later tokens, decoder self-attention",
)
"""What attention may fall on that masks hide."""
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
    if visit().touched:
        st.session_state.pop(_MISREAD, None)
    elif in_url and in_url != kept.parameters():
        row = in_url.get("row", str(Beside.row))
        is_row = row.isascii() and row.isdecimal() and len(row) < 4
        kept = st.session_state[_KEY] = Beside(in_url.get("beside", ""), int(row) if is_row else Beside.row)
        said = f"The link says row “{row[:30]}”, which is no number of a sentence of the batch."
        st.session_state[_MISREAD] = () if is_row else (said,)
    return kept


def choose_batch(scene: Scene, chosen: Beside) -> tuple[tuple[str, ...], Leak] | None:
    """The field for the other sentences; the batch as read by the model, or None where it cannot be read."""
    lines = [line.strip() for line in chosen.text[:LONGEST].splitlines() if line.strip()]
    offered = [text for text in loading.examples(scene.lab) if text != scene.view.text]
    offered.sort(key=lambda text: len(text.split()))
    others = lines or list(dict.fromkeys(offered[i] for i in (0, len(offered) // 2))) if offered else lines
    texts = (scene.view.text, *others[: MOST_SENTENCES - 1])
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
        return texts, loading.get_leak(scene.lab, texts, masks_off(scene))
    except ValueError as error:
        say(f"{str(error)[:1].upper()}{str(error)[1:]}.")
        return None


def switch_masks(scene: Scene) -> None:
    """A toggle for each mask; off is a switch like all others and travels to the other pages."""
    off = {mask for spec in masks_off(scene) for mask in spec.lifts}
    never = set() if scene.lab.model.config.causal_mask else {"causal"}
    with st.container(horizontal=True, gap="medium"):
        for mask, label in _TOGGLES.items():
            if mask in never:
                st.toggle(label, key=f"mask-never-{mask}", disabled=True, help="This model was trained without it.")
            else:
                fields.toggle(label, mask not in off, partial(_flip, mask), key=f"mask-on-{mask}")
    others = [spec.label() for spec in scene.view.switches if not spec.lifts]
    if others:
        st.caption(f"Masks alone count on this page. Left out here: {wording.plain('; '.join(others))}.")


def draw_batch(scene: Scene, leak: Leak, texts: Sequence[str]) -> None:
    """The batch as it goes into the encoder."""
    pad = scene.lab.model.config.pad_id
    rows = [[scene.lab.tokenizer.piece(token) for token in row] for row in leak.source.tolist()]
    scrolling_figure(batch_figure(rows, leak.source != pad, is_dark()), key="batch")
    empty = int((leak.source == pad).sum())
    st.caption(
        f"{leak.source.size} places, {empty} of them empty ({wording.number(100 * empty / leak.source.size)} %): "
        "a batch is a rectangle, sentences are not. The padding mask hides the \\<pad\\> ones from every query."
    )
    prove_batch(scene, leak, texts)


def draw_masks(scene: Scene, leak: Leak, texts: tuple[str, ...], chosen: Beside) -> DeltaGenerator:
    """The masks of one sentence that combine into what the pass applied; the row of buttons under them."""
    row = min(chosen.row, len(texts) - 1)
    say(*st.session_state.get(_MISREAD, ()))
    if row < chosen.row != Beside.row:
        say(
            f"There is no sentence {chosen.row}: the batch has sentences 0 to {len(texts) - 1}. Sentence {row} is "
            "shown."
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        choose_kind(scene)
        fields.box(
            "Sentence of the batch",
            range(len(texts)),
            row,
            lambda i: _change(row=i),
            key="masks-row",
            names=lambda i: f"{i} · {texts[i]}",
        )
    kind = scene.view.kind
    asking, asked = (getattr(leak, side)[row] for side in SIDES[kind])
    parts = parts_of(scene, asking, asked)
    has_causal = len(parts) > 1
    labels = [[scene.lab.tokenizer.piece(int(token)) for token in side] for side in (asking, asked)]
    scrolling_figure(masks_figure(parts, labels[0], labels[1], kind=kind, dark=is_dark()), key="masks")
    applied = leak.lifted.masks[kind][row]
    combined = np.logical_and.reduce([part.mask for part in parts])
    same = (
        "exactly the mask that the recorded pass applied"
        if np.array_equal(applied, combined)
        else ("**not** the mask that the pass applied")
    )
    what = "The combination" if len(parts) > 1 else "That"
    st.caption(f"Coloured cells may attend, struck ones may not. {what} is {same}.{_no_causal(scene, has_causal)}")
    padding_on, *causal_on = (not part.name.endswith(OFF) for part in parts)
    buttons = st.container(horizontal=True, gap="small")
    with buttons:
        prove_combined(scene, asking, asked, applied, combined, padding=padding_on, causal=any(causal_on))
    return buttons


def parts_of(scene: Scene, asking: Int[ndarray, "query"], asked: Int[ndarray, "key"]) -> list[Part]:
    """The padding mask of these tokens in the chosen attention, and where there is one the causal mask."""
    kind, config = scene.view.kind, scene.lab.model.config
    off = {mask for spec in masks_off(scene) for mask in spec.lifts}
    every = np.ones((len(asking), len(asked)), dtype=bool)
    padding_off, causal_off = ("cross" if kind == "cross" else "padding") in off, "causal" in off
    padding = every if padding_off else real_part(asked, config.pad_id, len(asking)).copy()
    parts = [Part("padding" + OFF * padding_off, padding, "padding: no token stands here")]
    if kind == "decoder_self" and config.causal_mask:
        causal = every if causal_off else causal_part(len(asking))
        parts.append(Part("causal" + OFF * causal_off, causal, "later than the query"))
    return parts


def _no_causal(scene: Scene, has_causal: bool) -> str:
    """Why there is no causal mask beside the padding mask; empty where there is one."""
    if has_causal:
        return ""
    kind = scene.view.kind
    if kind == "decoder_self":
        return f" {KIND_NAMES[kind]} has no causal mask: this model was trained without one."
    both = " *Decoder self* has both." if scene.lab.model.config.causal_mask else ""
    return f" {KIND_NAMES[kind]} has no causal mask: the whole sentence is there from the start.{both}"


def tell_leak(scene: Scene, leak: Leak, texts: tuple[str, ...]) -> None:
    """What the masks that are off let through, in numbers."""
    off = masks_off(scene)
    st.markdown("##### What leaks")
    if not off:
        st.markdown(
            f"{_ALL_ON if scene.lab.model.config.causal_mask else _NO_CAUSAL} Attention on padding is "
            f"{wording.number(max(leak.intact.on_padding.values()))}, on later tokens "
            f"{wording.number(leak.intact.on_future)}. Switch one off above."
        )
    before, after = leak.intact, leak.lifted
    shares = zip(SHARES, shares_of(before), shares_of(after), strict=True)
    rows = [
        ("loss, teacher-forced (nats per token)", before.loss, after.loss),
        *((f"attention {name}", a, b) for name, a, b in shares),
    ]
    columns = {
        "": [name for name, _, _ in rows],
        "all masks on": [wording.number(float(value)) for _, value, _ in rows],
    }
    if off:
        columns["as switched"] = [wording.number(float(value)) for _, _, value in rows]
    st.dataframe(
        columns,
        hide_index=True,
        width="stretch",
    )
    st.caption(f"{_LOSS_HELP} Attention: mean share of a real query's attention, over all layers and heads.")
    prove_leak(scene, leak, off)
    if endless := [str(i) for i, ended in enumerate(before.ended) if not ended]:
        st.caption(
            f"Sentence{'s' * (len(endless) > 1)} {', '.join(endless)}: no end mark was written, the output with all "
            f"masks was cut off at the model's {scene.lab.model.config.max_length} tokens."
        )
    if not off:
        return
    if not leak.changed:
        moved = float(np.abs(after.losses - before.losses).max())
        st.markdown(
            f"**No output changed.** Free-running, all {len(texts)} sentences come out as before; a sentence's loss "
            f"moved by at most {wording.number(moved)} nats per token."
        )
    decode = scene.lab.tokenizer.decode
    for i in leak.changed:
        was, became = (wording.plain(decode(_written(out.outputs[i], scene))) for out in (before, after))
        cut = "" if after.ended[i] else f" It wrote no end mark and was cut off after {len(after.outputs[i])} tokens."
        st.markdown(f"Sentence {i}, free-running: *{was or '(no words)'}* became *{became or '(no words)'}*.{cut}")


def shares_of(reading: Reading) -> list[float]:
    """How much attention fell on each of SHARES."""
    return [*(reading.on_padding[kind] for kind in ("encoder_self", "cross", "decoder_self")), reading.on_future]


def tell_forcing(scene: Scene) -> None:
    """Why teacher forcing under a causal mask is not cheating, measured on the page's own sentence."""
    measured = loading.get_forcing(scene.lab, scene.view.text)
    if not scene.lab.model.config.causal_mask:
        _tell_cheating(scene, measured)
        return
    with st.expander("Why teacher forcing under a causal mask is not cheating"):
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
        prove_honest(scene, measured)


def tell_empty_row(scene: Scene, row: EmptyRow) -> DeltaGenerator:
    """What becomes of a row that may attend to nothing; the box in which that stands."""
    box = st.expander("A row that may attend to nothing")
    with box:
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
        prove_row(scene, row)
    return box


def _tell_cheating(scene: Scene, measured: Forcing) -> None:
    """What teacher forcing is worth in a model that never had a causal mask."""
    with st.expander("Why teacher forcing without a causal mask is cheating"):
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
        prove_honest(scene, measured)


def masks_off(scene: Scene) -> tuple[Intervention, ...]:
    """The masks that are switched off."""
    return tuple(spec for spec in scene.view.switches if spec.lifts)


def _flip(mask: MaskKind, on: bool) -> None:
    kept = [spec for spec in visit().view.switches if spec != MaskOff(mask)]
    choose(switches=merged(kept if on else [*kept, MaskOff(mask)]))


def _change(**changes: object) -> None:
    st.session_state[_KEY] = replace(st.session_state[_KEY], **changes)
    choose()


def _written(ids: tuple[int, ...], scene: Scene) -> list[int]:
    return [token for token in ids if token != scene.lab.model.config.eos_id]
