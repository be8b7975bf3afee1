"""Sampling on the Decoder steps page: what the settings make of a step's distribution, and what is drawn with them."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st

from pages.common import fields, loading, wording
from pages.common.components.scrolling_figure import scrolling_figure
from pages.common.controls import Scene, say
from pages.common.export_search import take_distribution_away, take_samples_away
from pages.common.pictures import is_dark
from pages.common.step_choices import Choices, change, said_of
from pages.common.step_loading import get_usual
from pages.common.step_proofs import prove_draw, prove_totals
from pages.common.step_roads import Walk, walk_of
from pages.common.stepper import step_to
from transformer.analysis.branches import Branch, grow
from transformer.analysis.candidates import candidates
from transformer.analysis.draws import Draw, Drawn
from transformer.figures.branches import Twig, branches_figure
from transformer.figures.candidates import candidate_bars
from transformer.interventions import Intervention

N_SAMPLES = 100
_SHOWN = 12
"""Different outputs that are listed."""
_LONGEST = 160
"""Characters of an output in the list; the tree and what is taken away have all."""


def choose_draw(chosen: Choices) -> None:
    """Temperature, top-k, top-p, min-p and the seed; each acts at once."""
    for column, (name, label, low, high, step) in zip(
        st.columns(5),
        (
            ("temperature", "Temperature", 0.1, 5.0, 0.1),
            ("top_k", "Top-k (0: all)", 0, 50, 1),
            ("top_p", "Top-p", 0.05, 1.0, 0.05),
            ("min_p", "Min-p", 0.0, 1.0, 0.05),
            ("seed", "Seed", 0, 100, 1),
        ),
        strict=True,
    ):
        value = min(max(getattr(chosen, name), low), high)
        with column:
            fields.slider(label, low, high, value, partial(_set, name), key=f"draw-{name}", step=step)
    say(*said_of("temperature", "top_k", "top_p", "min_p", "seed"))


def _set(name: str, value: object) -> None:
    change(**{name: value})


def show_samples(scene: Scene, chosen: Choices) -> None:
    """The reshaped distribution of a step beside the outputs of many draws."""
    walk = walk_of(scene, chosen)
    draw = _draw(chosen)
    step_to(walk, chosen)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        _show_distribution(scene, walk, draw)
    with right:
        _show_outputs(scene, chosen, draw)
    _show_tree(scene, chosen, walk)


def _show_distribution(scene: Scene, walk: Walk, draw: Draw) -> None:
    step, log_probs = walk.step, walk.road.log_probs[walk.step]
    drawn = draw.of(log_probs, never=scene.lab.model.config.pad_id)
    found = candidates(log_probs, 10)
    usual = None
    if scene.view.switches:
        usual = draw.of(get_usual(scene.lab, walk.road).log_probs[step], never=scene.lab.model.config.pad_id)
    figure = candidate_bars(
        [scene.lab.tokenizer.piece(token) for token in found.ids],
        np.exp(drawn[list(found.ids)]).tolist(),
        written=None,
        before=found.probabilities if usual is None else np.exp(usual[list(found.ids)]).tolist(),
        dark=is_dark(),
        before_name="the model's own" if usual is None else "without the switches",
    )
    marks = "what the model says" if usual is None else "the same without the switches, after the same words"
    st.caption(f"Step {step}: bars are what is drawn from, marks {marks}")
    scrolling_figure(figure, key="draw-bars")
    with st.container(horizontal=True):
        prove_draw(scene.lab, walk.road, step, draw, drawn)
        take_distribution_away(scene, walk, draw, figure)
    left = int(np.isfinite(drawn).sum())
    st.markdown(
        f"{left:,} of {len(drawn):,} tokens can be drawn; entropy {wording.number(candidates(drawn, 1).entropy)} nats."
    )


def _show_outputs(scene: Scene, chosen: Choices, draw: Draw) -> None:
    found = _drawn(scene, chosen, draw, scene.view.switches)
    greedy = scene.inspection.target_ids
    usual = {drawn.ids: drawn.count for drawn in _drawn(scene, chosen, draw, ())} if scene.view.switches else None
    st.caption(f"{N_SAMPLES} samples with seed {chosen.seed}: {len(found)} different output{'s' * (len(found) != 1)}")
    lines = []
    for drawn in found[:_SHOWN]:
        notes = " · greedy's" * (drawn.ids == greedy)
        if drawn.ids[-1] != scene.lab.model.config.eos_id:
            notes += f" · no end mark: cut off at {len(drawn.ids)} tokens"
        if usual is not None:
            notes += f" · without the switches {usual.get(drawn.ids, 0)} ×"
        lines.append(
            f"**{drawn.count} ×** {wording.plain(_shortened(_text(scene, drawn))) or '*(nothing was written)*'}  \n"
            f":gray[{wording.number(drawn.log_prob)} nats{notes}]"
        )
    if len(found) > _SHOWN:
        rest = sum(drawn.count for drawn in found[_SHOWN:])
        lines.append(f":gray[and {len(found) - _SHOWN} others, {rest} samples]")
    st.markdown("\n\n".join(lines))
    if usual is not None:
        gone = [ids for ids in usual if ids not in {drawn.ids for drawn in found}]
        st.caption(f"Without the switches {len(usual)} different outputs; {len(gone)} of them do not come up now.")


def _show_tree(scene: Scene, chosen: Choices, walk: Walk) -> None:
    """The most frequent outputs as one tree, each token with the number of all samples that wrote it there."""
    draw = _draw(chosen)
    found = _drawn(scene, chosen, draw, scene.view.switches)
    usual = _drawn(scene, chosen, draw, ()) if scene.view.switches else None
    greedy = scene.inspection.target_ids
    tree = grow([drawn.ids for drawn in found], [drawn.count for drawn in found])
    kept = [branch for branch in tree if branch.outputs[0] < _SHOWN]  # rows are those of the most frequent outputs
    places = {id(branch): place for place, branch in enumerate(kept)}
    twigs = [
        Twig(
            branch.step,
            scene.lab.tokenizer.piece(branch.token),
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
        prove_totals(scene, found, key="proof-samples")
        take_samples_away(scene, chosen, draw, found, _SHOWN, figure)


def _counted(branch: Branch, begun: tuple[int, ...], usual: Sequence[Drawn] | None) -> str:
    said = f"{branch.weight:g} of {N_SAMPLES} samples come by here"
    if usual is None:
        return said
    without = sum(drawn.count for drawn in usual if drawn.ids[: len(begun)] == begun)
    return f"{said}; without the switches {without}"


def _drawn(scene: Scene, chosen: Choices, draw: Draw, switches: Sequence[Intervention]) -> tuple[Drawn, ...]:
    return loading.get_draws(scene.lab, scene.view.text, switches, draw, n=N_SAMPLES, seed=chosen.seed)


def _draw(chosen: Choices) -> Draw:
    return Draw(temperature=chosen.temperature, top_k=chosen.top_k, top_p=chosen.top_p, min_p=chosen.min_p)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(scene: Scene, drawn: Drawn) -> str:
    eos = scene.lab.model.config.eos_id
    return scene.lab.tokenizer.decode([token for token in drawn.ids if token != eos])
