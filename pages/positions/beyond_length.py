"""Beyond the trained length: exact match by length for each kind, and the visitor's own long sentence."""

from dataclasses import dataclass

import streamlit as st
import torch

from pages.positions.checks import check_intervals, check_lengths
from pages.positions.choices import Choices, segments
from pages.positions.export_study import take_own_lengths_away, take_study_lengths_away
from pages.positions.frame import beneath
from pages.positions.study import choose_study, corpus_of
from pages.shared import wording
from pages.shared.cache import cached
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from transformer.analysis.positions.lengths import LengthScore, scores_by_length, wilson
from transformer.data.tasks import MAX_SYMBOLS, pairs_of_length
from transformer.decoding.greedy import translate_ids
from transformer.experiments.figure_data import by_length
from transformer.experiments.study import LENGTH_TASKS, Study
from transformer.experiments.verdict import LengthCurve, length_curves
from transformer.figures.positions.study import ByLength, lengths_figure
from transformer.lab import Lab
from transformer.model.position_extension import Extension, extended

PAST: dict[Extension, str] = {
    "noise": "As it is",
    "clamp": "Clamp",
    "interpolate": "Interpolate",
    "refuse": "Refuse",
}
_LIVE_PAIRS = 50
_LONGEST_LIVE = 40
_QUIET = {"displayModeBar": False}


def draw_beyond(context: PageContext, chosen: Choices) -> None:
    """The study's curves by length, what a learned table does past its end, then this model and a sentence of one's
    own."""
    found = choose_study(chosen)
    segments("past", "Past its last trained row, a learned table", PAST, chosen.past)
    corpus = "" if found is None else corpus_of(found, chosen)
    if found is not None and (curves := length_curves(found, corpus, chosen.past)):
        drawn = by_length(curves)
        _draw(drawn, list(found.plan.positions), found.plan.trained_to, key="study-lengths")
        beneath(
            lambda: check_intervals(
                [s for curve in curves for s in curve.scores],
                [i for curve in curves for i in curve.intervals()],
            ),
            lambda: take_study_lengths_away(context, found, corpus, chosen.past, drawn),
        )
        st.markdown(_ends(found, chosen.past))
        _ranges(found, curves)
    else:
        st.caption("No study has tested lengths here yet: start one under *The paired study*.")
    st.markdown(f"##### {wording.plain(context.lab.name)}, tested here")
    _this_model(context, chosen.past)
    with st.expander("What am I looking at?"):
        st.markdown(
            "A point is the share of held-out strings of one length that came out right in every symbol, all seeds "
            "together; the band is Wilson's 95 % interval for that share. Up to the shaded edge are the lengths of "
            "training. Sinusoidal, rotary and ALiBi positions follow formulas that go on for ever, and no positions "
            "need nothing; that they *can* be computed does not mean that the model has learned what to do with them. "
            "A learned table must be carried on by a choice, for you alone: the model itself stays as it is. *Clamp* "
            "gives every later token the place of the last trained one. *Interpolate* spreads the trained rows over "
            "the whole sentence, in both stacks, as far as this very sentence needs, so that neighbours stand closer "
            "than they did in training."
        )


def _ends(found: Study, past: Extension) -> str:
    plan = found.plan
    trained, rows = plan.trained_to + 1, plan.tested_to + 1
    middle = rows // 2
    done = {
        "refuse": f"Here a sentence that needs position {trained} or more is **refused**: it gets no answer.",
        "noise": f"Here rows {trained} to {rows - 1} are used **as they are**: noise that no training ever touched.",
        "clamp": f"Here every position from {trained} on reads row {trained - 1}, the last trained one (**clamp**).",
        "interpolate": f"Here the {trained} trained rows are stretched over the whole sentence (**interpolate**): of a "
        f"sentence of {rows} tokens, position {middle} reads what lies at {middle * (trained - 1) / (rows - 1):.2f}.",
    }[past]
    return (
        f"Training strings have 1 to {plan.trained_to} symbols and an end mark: positions 0 to {trained - 1}. Every "
        f"model was built for max_length {rows}, so the learned table ends at position {rows - 1}; but **its rows "
        f"{trained} to {rows - 1} exist without ever having been trained**. {done}"
    )


def _draw(curves: list[ByLength], names: list[str], trained_to: int, *, key: str) -> None:
    figure = lengths_figure(curves, names, trained_to=trained_to, dark=is_dark())
    st.plotly_chart(figure, key=key, theme=None, config=_QUIET)


def _ranges(found: Study, curves: tuple[LengthCurve, ...]) -> None:
    """The same in numbers: inside, just beyond, and beyond."""
    first, last = found.plan.trained_to, found.plan.tested_to
    edges = [(1, first), (first + 1, min(first + 4, last)), (first + 1, last)]
    table: dict[str, list[str]] = {"positions": [curve.positions for curve in curves]}
    for low, high in edges:
        if low <= high:
            where = "inside" if high <= first else "beyond"
            table[f"{where}: {low} to {high} symbols"] = [_share(curve.scores, low, high) for curve in curves]
    st.dataframe(table, hide_index=True, width="stretch")


def _share(scores: tuple[LengthScore, ...], low: int, high: int) -> str:
    within = [score for score in scores if low <= score.length <= high]
    right, count = sum(s.right for s in within), sum(s.count for s in within)
    if not count:
        return "refused"
    least, most = wilson(right, count)
    return f"{100 * right / count:.1f} % ({100 * least:.1f}–{100 * most:.1f}), {right:,} of {count:,}"


def _this_model(context: PageContext, past: Extension) -> None:
    lab = context.lab
    corpus = lab.checkpoint.settings.corpus
    if corpus.name not in LENGTH_TASKS:
        st.markdown(
            f"It learned *{wording.plain(corpus.name)}*, whose sentences cannot be had at any length. Choose a model "
            f"of {', '.join(LENGTH_TASKS[:-1])} or {LENGTH_TASKS[-1]} to see exact match by length."
        )
        return
    longest = corpus.longest or MAX_SYMBOLS
    kind, rows = lab.model.config.positions, lab.model.config.max_length
    said = f"It has {kind} positions and learned strings of 1 to {longest} symbols: positions 0 to {longest}."
    if kind == "learned":
        said += (
            f" Its table has {rows} rows and ends at position {rows - 1}; rows {longest + 1} to {rows - 1} exist and "
            "were never trained."
        )
    else:
        said += f" It was built for {rows} tokens; longer ones are read here by going on with {_FORMULA[kind]}."
    st.markdown(said)
    _try(lab, past, longest)
    if st.session_state.get(f"measured-{lab.name}") or st.button(
        f"Test {_LIVE_PAIRS} strings of each length from 1 to {_LONGEST_LIVE}", key="measure-lengths"
    ):
        st.session_state[f"measured-{lab.name}"] = True
        how: Extension = past if kind == "learned" else "noise"
        curve = LengthCurve(kind, _measured(lab, how, longest))
        (drawn,) = by_length([curve])
        _draw([drawn], [kind], longest, key="own-lengths")
        beneath(
            lambda: check_lengths(curve.scores, (2, longest), lambda n: _one_by_one(lab, n, past, longest)),
            lambda: take_own_lengths_away(context, how, longest, _LIVE_PAIRS, drawn),
        )
        st.dataframe(
            {
                "lengths": [f"1 to {longest}, inside", f"{longest + 1} to {_LONGEST_LIVE}, beyond"],
                "exact match": [_share(curve.scores, 1, longest), _share(curve.scores, longest + 1, _LONGEST_LIVE)],
            },
            hide_index=True,
            width="content",
        )


_FORMULA = {
    "sinusoidal": "the formula",
    "rotary": "the angles",
    "alibi": "the slopes",
    "none": "nothing: it has no positions",
}


def _try(lab: Lab, past: Extension, longest: int) -> None:
    """A long sentence of the visitor's own, through the model so extended."""
    key = f"beyond-text-{lab.name}"
    own = pairs_of_length(lab.checkpoint.settings.corpus.name, longest + 4, 1)[0].source
    text = st.text_input(f"A string longer than {longest} symbols", own, key=key)
    try:
        answer = _answer(lab, text, past, longest)
    except ValueError as error:
        said = str(error).strip().rstrip(".")
        say(f"Refused: {said}.")
        return
    st.markdown(f"It writes: {wording.plain(answer.text) or '(nothing)'}")
    st.caption(f"{answer.n_tokens} tokens with the end mark: positions 0 to {answer.n_tokens - 1}. {answer.done}")


@dataclass(frozen=True)
class _Answer:
    text: str
    n_tokens: int
    done: str


@cached(max_entries=64)
def _answer(lab: Lab, text: str, past: Extension, longest: int) -> _Answer:
    """What the model writes, its positions carried on as far as this text needs; ValueError where they are not."""
    ids = [*lab.tokenizer.encode(text), lab.model.config.eos_id]
    if not text.strip():
        raise ValueError("type at least one symbol")
    if len(ids) > _MOST_TOKENS:
        raise ValueError(f"the text has {len(ids)} tokens with its end mark; up to {_MOST_TOKENS} are read here")
    model = extended(lab.model, max(len(ids), longest + 1), past, trained=longest + 1)
    written = translate_ids(model, torch.tensor([ids]), max_length=max(len(ids), longest + 1))[0]
    return _Answer(lab.tokenizer.decode(written), len(ids), _done(lab, len(ids), past, longest))


_MOST_TOKENS = 200


def _done(lab: Lab, n_tokens: int, past: Extension, longest: int) -> str:
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


def _one_by_one(lab: Lab, length: int, past: Extension, longest: int) -> int:
    """How many strings of a length come out right, each in a batch of its own."""
    how = past if lab.model.config.positions == "learned" else "noise"
    pairs = pairs_of_length(lab.checkpoint.settings.corpus.name, length, _LIVE_PAIRS)
    return sum(
        scores_by_length(lab.model, lab.tokenizer, {length: [pair]}, how, trained=longest + 1)[0].right
        for pair in pairs
    )


@cached(max_entries=32, spinner="Translating strings of every length")
def _measured(lab: Lab, past: Extension, longest: int) -> tuple[LengthScore, ...]:
    corpus = lab.checkpoint.settings.corpus.name
    pairs = {n: pairs_of_length(corpus, n, _LIVE_PAIRS) for n in range(1, _LONGEST_LIVE + 1)}
    return scores_by_length(lab.model, lab.tokenizer, pairs, past, trained=longest + 1)
