"""Beyond the trained length: exact match by length for each kind of positions, and the visitor's own long string."""

from dataclasses import dataclass

import streamlit as st
import torch

from pages.positions.choices import Choices, segments
from pages.positions.study import choose_study, corpus_of
from pages.shared import wording
from pages.shared.cache import cached
from pages.shared.context import PageContext, say
from pages.shared.exhibit import exhibit
from transformer.data.tasks import MAX_SYMBOLS, pairs_of_length
from transformer.decoding.greedy import translate_ids
from transformer.experiments.plan import LENGTH_TASKS, Study
from transformer.experiments.verdict import Share, length_curves
from transformer.lab import Lab
from transformer.model.position_extension import Extension, extended
from transformer.views.study.lengths import LengthsData, ModelLengths, StudyLengths
from transformer.views.subjects import Model, PairedStudy

PAST: dict[Extension, str] = {
    "noise": "As it is",
    "clamp": "Clamp",
    "interpolate": "Interpolate",
    "refuse": "Refuse",
}
_PAIRS = 50
_LONGEST = 40
_MAX_TOKENS = 200
_FORMULA = {
    "sinusoidal": "the formula",
    "rotary": "the angles",
    "alibi": "the slopes",
    "none": "nothing: it has no positions",
}


def render_beyond(context: PageContext, chosen: Choices) -> None:
    """Renders the study's curves by length, then this page's model and a string of the visitor's own."""
    _, found = choose_study(chosen)
    segments("past", "Past its last trained row, a learned table", PAST, chosen.past)
    if found is not None and length_curves(found, corpus_of(found, chosen), chosen.past):
        data = exhibit(
            PairedStudy(found), StudyLengths(corpus=corpus_of(found, chosen), past=chosen.past), explain=_explain
        )
        st.markdown(_ends_text(found, chosen.past))
        if data is not None:
            _render_ranges(data)
    else:
        st.caption("No study has tested lengths here yet: start one under *The paired study*.")
    st.markdown(f"## {wording.plain(context.lab.name)}, tested here")
    _render_model(context.lab, chosen.past)


def _explain() -> None:
    st.markdown(
        "A point is the share of held-out strings of one length with every symbol right, all seeds together; the "
        "band is Wilson's 95 % interval for that share. The shaded part holds the lengths of training. "
        "Sinusoidal, rotary and ALiBi positions follow formulas that never end, and no positions need none; that "
        "they *can* be computed does not mean that the model has learned what to do with them. A learned table "
        "has to be extended somehow, in your session only: the model itself stays as it is. *Clamp* gives every "
        "later token the position of the last trained one. *Interpolate* spreads the trained rows over the whole "
        "sentence, in both stacks, as far as this sentence needs, so that neighbours are closer together than "
        "they were in training."
    )


def _ends_text(found: Study, past: Extension) -> str:
    plan = found.plan
    trained, rows = plan.trained_to + 1, plan.tested_to + 1
    middle = rows // 2
    done = {
        "refuse": f"Here a sentence that needs position {trained} or more is **refused**: it gets no answer.",
        "noise": f"Here rows {trained} to {rows - 1} are used **as they are**: noise that no training ever touched.",
        "clamp": f"Here every position from {trained} on reads row {trained - 1}, the last trained one (**clamp**).",
        "interpolate": f"Here the {trained} trained rows are stretched over the whole sentence (**interpolate**): in a "
        f"sentence of {rows} tokens, position {middle} reads what lies at {middle * (trained - 1) / (rows - 1):.2f}.",
    }[past]
    return (
        f"Training strings have 1 to {plan.trained_to} symbols and an end mark: positions 0 to {trained - 1}. Every "
        f"model was built for max_length {rows}, so the learned table ends at position {rows - 1}; but **its rows "
        f"{trained} to {rows - 1} exist without ever having been trained**. {done}"
    )


def _render_ranges(data: LengthsData) -> None:
    """Renders the same in numbers: inside the trained lengths, just beyond, and beyond."""
    table: dict[str, list[str]] = {"positions": [curve.name for curve in data.curves]}
    for each in data.ranges:
        where = "inside" if each.last <= data.trained_to else "beyond"
        table[f"{where}: {each.first} to {each.last} symbols"] = [_share_text(share) for share in each.shares]
    st.dataframe(table, hide_index=True, width="stretch")


def _share_text(share: Share) -> str:
    if not share.count:
        return "refused"
    low, high = 100 * share.low, 100 * share.high
    return f"{100 * share.value:.1f} % ({low:.1f}–{high:.1f}), {share.right:,} of {share.count:,}"


def _render_model(lab: Lab, past: Extension) -> None:
    corpus = lab.checkpoint.settings.corpus
    if corpus.name not in LENGTH_TASKS:
        st.markdown(
            f"It learned *{wording.plain(corpus.name)}*, whose sentences cannot be generated at a given length. Choose "
            f"a model of {', '.join(LENGTH_TASKS[:-1])} or {LENGTH_TASKS[-1]} to see exact match by length."
        )
        return
    longest = corpus.longest or MAX_SYMBOLS
    kind, rows = lab.model.config.positions, lab.model.config.max_length
    text = f"It has {kind} positions and learned strings of 1 to {longest} symbols: positions 0 to {longest}."
    if kind == "learned":
        text += (
            f" Its table has {rows} rows and ends at position {rows - 1}; rows {longest + 1} to {rows - 1} exist and "
            "were never trained."
        )
    else:
        text += f" It was built for {rows} tokens; for longer strings, the page continues with {_FORMULA[kind]}."
    st.markdown(text)
    _render_own_string(lab, past, longest)
    measured = f"measured-{lab.name}"
    label = f"Test {_PAIRS} strings of each length from 1 to {_LONGEST}"
    if st.session_state.get(measured) or st.button(label, key="measure-lengths"):
        st.session_state[measured] = True
        view = ModelLengths(past=past if kind == "learned" else "noise", longest=_LONGEST, pairs=_PAIRS)
        with st.spinner("Translating strings of every length"):
            data = exhibit(Model(lab), view)
        if data is not None:
            _render_ranges(data)


def _render_own_string(lab: Lab, past: Extension, longest: int) -> None:
    """Renders a long string of the visitor's own, translated with the positions extended."""
    key = f"beyond-text-{lab.name}"
    example = pairs_of_length(lab.checkpoint.settings.corpus.name, longest + 4, 1)[0].source
    text = st.text_input(f"A string longer than {longest} symbols", example, key=key)
    try:
        answer = _translate(lab, text, past, longest)
    except ValueError as error:
        say(f"Refused: {str(error).strip().rstrip('.')}.")
        return
    st.markdown(f"It writes: {wording.plain(answer.text) or '(nothing)'}")
    extension = _extension_text(lab, answer.n_tokens, past, longest)
    st.caption(f"{answer.n_tokens} tokens with the end mark: positions 0 to {answer.n_tokens - 1}. {extension}")


@dataclass(frozen=True)
class _Answer:
    text: str
    n_tokens: int


@cached(max_entries=64)
def _translate(lab: Lab, text: str, past: Extension, longest: int) -> _Answer:
    """Translates a string, its positions extended as far as it needs; ValueError where they cannot be."""
    ids = [*lab.tokenizer.encode(text), lab.model.config.eos_id]
    if not text.strip():
        raise ValueError("type at least one symbol")
    if len(ids) > _MAX_TOKENS:
        raise ValueError(f"the text has {len(ids)} tokens with its end mark; at most {_MAX_TOKENS} are read here")
    model = extended(lab.model, max(len(ids), longest + 1), past, trained=longest + 1)
    written = translate_ids(model, torch.tensor([ids]), max_length=max(len(ids), longest + 1))[0]
    return _Answer(lab.tokenizer.decode(written), len(ids))


def _extension_text(lab: Lab, n_tokens: int, past: Extension, longest: int) -> str:
    if n_tokens <= longest + 1:
        return "All of them were trained."
    if lab.model.config.positions != "learned":
        return f"Training reached 0 to {longest}."
    return {
        "noise": f"Rows {longest + 1} to {n_tokens - 1} of the table are untrained and used as they are.",
        "clamp": f"Positions {longest + 1} to {n_tokens - 1} read row {longest}.",
        "interpolate": f"The trained rows 0 to {longest} are stretched over all of them.",
        "refuse": "",
    }[past]
