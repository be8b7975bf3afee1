"""Sampling on the Decoder steps page: what the settings make of a step's distribution, and what is drawn with them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import streamlit as st

from pages.shared import fields, loading, wording
from pages.shared.components.draw_distribution import Slider, draw_distribution
from pages.shared.context import is_dark
from pages.shared.controls import PageContext, say
from pages.shared.scrolling_figure import scrolling_figure
from pages.steps.branches import Walk, walk_of
from pages.steps.checks import check_draw, check_totals
from pages.steps.choices import PAGE, Choices, change
from pages.steps.export_search import take_distribution_away, take_samples_away
from pages.steps.loading import get_baseline
from pages.steps.stepper import step_to
from transformer.analysis.steps.candidates import candidates
from transformer.analysis.steps.prefix_tree import Branch, grow
from transformer.analysis.steps.samples import Sampling, Sample
from transformer.figures.steps.branches import TreeToken, branches_figure
from transformer.figures.steps.candidates import candidate_bars
from transformer.interventions import Intervention

N_SAMPLES = 100
_SHOWN = 12
"""Different outputs that are listed."""
_LONGEST = 160
"""Characters of an output in the list; the tree and what is taken away have all."""
_SLIDERS = (
    Slider(name="temperature", label="Temperature", low=0.1, high=5.0, step=0.1),
    Slider(name="top_k", label="Top-k", low=0, high=50, step=1),
    Slider(name="top_p", label="Top-p", low=0.05, high=1.0, step=0.05),
    Slider(name="min_p", label="Min-p", low=0.0, high=1.0, step=0.05),
)
_SHAPING = tuple(slider.name for slider in _SLIDERS)


def show_samples(context: PageContext, chosen: Choices) -> None:
    """The reshaped distribution of a step beside the outputs of many draws."""
    walk = walk_of(context, chosen)
    draw = _draw(chosen)
    step_to(walk, chosen)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        _show_distribution(context, walk, draw)
    with right:
        fields.slider("Seed", 0, 100, chosen.seed, lambda seed: change(seed=seed), key="draw-seed", step=1)
        say(*PAGE.said("seed"))
        _show_outputs(context, chosen, draw)
    _show_tree(context, chosen, walk)


def _show_distribution(context: PageContext, walk: Walk, draw: Sampling) -> None:
    """The bars follow the sliders in the browser; the proof and what is taken away are of the settings let go of."""
    step, log_probs, never = walk.step, walk.road.log_probs[walk.step], context.lab.model.config.pad_id
    drawn = draw.of(log_probs, never=never)
    found = candidates(log_probs, 10)
    pieces = {token: context.lab.tokenizer.piece(token) for token in found.ids}
    usual = get_baseline(context.lab, walk.road).log_probs[step] if context.view.switches else None
    say(*PAGE.said(*_SHAPING))
    marks = "" if usual is None else "; marks: drawn from without the switches"
    st.caption(f"Step {step}: what the model says, and what is drawn from{marks}")
    draw_distribution(
        log_probs,
        pieces,
        _SLIDERS,
        asdict(draw),
        _take,
        usual=usual,
        never=never,
        label=f"Probabilities at step {step}",
        key="draw-distribution",
    )
    before = found.probabilities
    if usual is not None:
        before = np.exp(draw.of(usual, never=never)[list(found.ids)]).tolist()
    figure = candidate_bars(
        list(pieces.values()),
        np.exp(drawn[list(found.ids)]).tolist(),
        written=None,
        before=before,
        dark=is_dark(),
        before_name="the model's own" if usual is None else "without the switches",
    )
    with st.container(horizontal=True):
        check_draw(context.lab, walk.road, step, draw, drawn)
        take_distribution_away(context, walk, draw, figure)


def _take(settings: Mapping[str, object]) -> None:
    """Takes over what the sliders say, as a link's words: whatever comes from outside ends within the limits."""
    found, _ = Choices.read({name: str(settings[name]) for name in _SHAPING if name in settings})
    change(**{name: getattr(found, name) for name in _SHAPING})


def _show_outputs(context: PageContext, chosen: Choices, draw: Sampling) -> None:
    found = _drawn(context, chosen, draw, context.view.switches)
    greedy = context.inspection.target_ids
    usual = {drawn.ids: drawn.count for drawn in _drawn(context, chosen, draw, ())} if context.view.switches else None
    st.caption(f"{N_SAMPLES} samples with seed {chosen.seed}: {len(found)} different output{'s' * (len(found) != 1)}")
    lines = []
    for drawn in found[:_SHOWN]:
        notes = " · greedy's" * (drawn.ids == greedy)
        if drawn.ids[-1] != context.lab.model.config.eos_id:
            notes += f" · no end mark: cut off at {len(drawn.ids)} tokens"
        if usual is not None:
            notes += f" · without the switches {usual.get(drawn.ids, 0)} ×"
        lines.append(
            f"**{drawn.count} ×** {wording.plain(_shortened(_text(context, drawn))) or '*(nothing was written)*'}  \n"
            f":gray[{wording.number(drawn.log_prob)} nats{notes}]"
        )
    if len(found) > _SHOWN:
        rest = sum(drawn.count for drawn in found[_SHOWN:])
        lines.append(f":gray[and {len(found) - _SHOWN} others, {rest} samples]")
    st.markdown("\n\n".join(lines))
    if usual is not None:
        gone = [ids for ids in usual if ids not in {drawn.ids for drawn in found}]
        st.caption(f"Without the switches {len(usual)} different outputs; {len(gone)} of them do not come up now.")


def _show_tree(context: PageContext, chosen: Choices, walk: Walk) -> None:
    """The most frequent outputs as one tree, each token with the number of all samples that wrote it there."""
    draw = _draw(chosen)
    found = _drawn(context, chosen, draw, context.view.switches)
    usual = _drawn(context, chosen, draw, ()) if context.view.switches else None
    greedy = context.inspection.target_ids
    tree = prefix_tree([drawn.ids for drawn in found], [drawn.count for drawn in found])
    kept = [branch for branch in tree if branch.outputs[0] < _SHOWN]  # rows are those of the most frequent outputs
    places = {id(branch): place for place, branch in enumerate(kept)}
    twigs = [
        TreeToken(
            branch.step,
            context.lab.tokenizer.piece(branch.token),
            branch.row,
            None if branch.parent is None else places[id(tree[branch.parent])],
            f"{branch.weight:g} ×",
            branch.weight / N_SAMPLES,
            found[branch.outputs[0]].ids[: branch.step + 1] == greedy[: branch.step + 1],
            _counted(branch, found[branch.outputs[0]].ids[: branch.step + 1], usual),
        )
        for branch in kept
    ]
    shown = sum(drawn.count for drawn in found[:_SHOWN])
    st.caption(
        f"All {N_SAMPLES} samples counted at each token; drawn are the ways of the {min(_SHOWN, len(found))} most "
        f"frequent outputs ({shown} samples). A line is as thick as it was often taken. Greedy's way is blue."
    )
    figure = branches_figure(twigs, dark=is_dark())
    scrolling_figure(figure, key="samples-tree")
    with st.container(horizontal=True):
        check_totals(context, found, key="proof-samples")
        take_samples_away(context, chosen, draw, found, _SHOWN, figure)


def _counted(branch: Branch, begun: tuple[int, ...], usual: Sequence[Sample] | None) -> str:
    said = f"{branch.weight:g} of {N_SAMPLES} samples come by here"
    if usual is None:
        return said
    without = sum(drawn.count for drawn in usual if drawn.ids[: len(begun)] == begun)
    return f"{said}; without the switches {without}"


def _drawn(context: PageContext, chosen: Choices, draw: Sampling, switches: Sequence[Intervention]) -> tuple[Sample, ...]:
    return loading.get_samples(context.lab, context.view.text, switches, draw, n=N_SAMPLES, seed=chosen.seed)


def _draw(chosen: Choices) -> Sampling:
    return Sampling(temperature=chosen.temperature, top_k=chosen.top_k, top_p=chosen.top_p, min_p=chosen.min_p)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(context: PageContext, drawn: Sample) -> str:
    eos = context.lab.model.config.eos_id
    return context.lab.tokenizer.decode([token for token in drawn.ids if token != eos])
