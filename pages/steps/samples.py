"""Sampling: what the settings make of a step's distribution, and the outputs that are drawn with them."""

from collections.abc import Mapping

import streamlit as st

from pages.shared import fields, wording
from pages.shared.components.draw_distribution import Slider, draw_distribution
from pages.shared.context import Decoded, PageContext, say
from pages.shared.exhibit import exhibit, get_data
from pages.shared.guard import guard
from pages.steps.branches import Walk, decode_branches
from pages.steps.choices import PAGE, Choices, change
from pages.steps.loading import get_baseline
from pages.steps.stepper import render_stepper
from transformer.analysis.steps.candidates import candidates
from transformer.config import DecodeConfig
from transformer.interventions.names import plural
from transformer.setting import about
from transformer.views.steps.sampling import SamplesData, SampleTree, SamplingDistribution
from transformer.views.subjects import Decoding

N_SAMPLES = 100
_MAX_LISTED = 12
"""The number of different outputs that are listed and drawn."""
_MAX_CHARACTERS = 160
"""The largest number of characters of an output in the list; the tree and the export have all."""
_LIMITS = {"temperature": (0.1, 5.0), "top_k": (0, 50), "top_p": (0.05, 1.0), "min_p": (0.0, 1.0)}
_SETTINGS = tuple(_LIMITS)


def _slider(name: str, low: float, high: float) -> Slider:
    known = about(DecodeConfig, name)
    return Slider(name=name, label=known.label, low=low, high=high, step=known.step)


_SLIDERS = tuple(_slider(name, *limits) for name, limits in _LIMITS.items())


@guard("Sampling")
def render_samples(context: Decoded, chosen: Choices) -> None:
    """Renders the reshaped distribution of a step beside the outputs of many samples, and their tree."""
    walk = decode_branches(context, chosen)
    settings = {name: getattr(chosen, name) for name in _SETTINGS}
    render_stepper(walk, chosen)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        _render_distribution(context, walk, settings)
    subject = context.decoding
    view = SampleTree(**settings, n=N_SAMPLES, seed=chosen.seed, most=_MAX_LISTED)
    with right:
        fields.slider("Seed", 0, 100, chosen.seed, PAGE.take("seed"), key="draw-seed", step=1)
        say(*PAGE.said("seed"))
        with st.spinner("Drawing samples"):
            data = get_data(subject, view)
        _render_outputs(context, chosen, data)
    shown = data.samples[:_MAX_LISTED]
    st.caption(
        f"Each token is shown with the number of samples, of all {N_SAMPLES}, that wrote it there; the {len(shown)} "
        f"most frequent {plural(len(shown), 'output')} ({sum(sample.count for sample in shown)} samples) are drawn. "
        "Thicker lines were sampled more often. Greedy decoding's path is blue."
    )
    exhibit(subject, view, data=data, width=640)


def _render_distribution(context: PageContext, walk: Walk, settings: Mapping[str, float]) -> None:
    """Renders bars that follow the sliders in the browser; the check and the export are of the settings let go of."""
    step, log_probs = walk.step, walk.branch.log_probs[walk.step]
    pieces = {token: context.lab.tokenizer.piece(token) for token in candidates(log_probs, 10).ids}
    baseline = get_baseline(context.lab, walk.branch)[step] if context.view.switches else None
    say(*PAGE.said(*_SETTINGS))
    marks = "" if baseline is None else "; marks: the latter without the switches"
    st.caption(f"Step {step}: the model's distribution, and the one that is sampled from{marks}")
    exhibit(
        Decoding(context.lab, walk.branch),
        SamplingDistribution(step=step, **settings),  # type: ignore[arg-type]
        draw=lambda _: draw_distribution(
            log_probs,
            pieces,
            _SLIDERS,
            settings,
            _take,
            usual=baseline,
            never=context.lab.model.config.pad_id,
            label=f"Probabilities at step {step}",
            key="draw-distribution",
        ),
        width=640,
    )


def _take(settings: Mapping[str, object]) -> None:
    """Takes over what the sliders say, as a link's words: whatever comes from outside ends within the limits."""
    found, _ = Choices.read({name: str(settings[name]) for name in _SETTINGS if name in settings})
    change(**{name: getattr(found, name) for name in _SETTINGS})


def _render_outputs(context: PageContext, chosen: Choices, data: SamplesData) -> None:
    """Renders the list of the most frequent outputs."""
    n = len(data.samples)
    st.caption(f"{N_SAMPLES} samples with seed {chosen.seed}: {n} different {plural(n, 'output')}")
    if said := wording.smoothed(context.lab.checkpoint.settings.train.label_smoothing):
        st.caption(
            f"{said} A long output therefore often draws a wrong token somewhere: lower the temperature or top-p."
        )
    without = None if data.baseline is None else {sample.ids: sample.count for sample in data.baseline}
    lines = []
    for sample, text in list(zip(data.samples, data.texts, strict=True))[:_MAX_LISTED]:
        notes = [f"{wording.number(sample.log_prob)} nats"]
        if sample.ids == data.greedy:
            notes.append("same as greedy")
        if sample.ids[-1] != context.lab.model.config.eos_id:
            notes.append(f"no end mark: cut off at {len(sample.ids)} tokens")
        if without is not None:
            notes.append(f"without the switches {without.get(sample.ids, 0)} ×")
        short = text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
        said = wording.plain(short) or "*(nothing was written)*"
        lines.append(f"**{sample.count} ×** {said}  \n:gray[{' · '.join(notes)}]")
    if n > _MAX_LISTED:
        rest = sum(sample.count for sample in data.samples[_MAX_LISTED:])
        others = n - _MAX_LISTED
        lines.append(f":gray[and {others} {plural(others, 'other')}, {rest} {plural(rest, 'sample')}]")
    st.markdown("\n\n".join(lines))
    if without is not None:
        gone = len(without.keys() - {sample.ids for sample in data.samples})
        st.caption(f"Without the switches: {len(without)} different outputs, of which {gone} no longer occur.")
