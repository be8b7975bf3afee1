"""A badge at each figure that opens its own check: claims about what is drawn, measured when asked for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import streamlit as st
from jaxtyping import Float

from pages.common import loading, wording
from pages.common.scene import Scene
from transformer.analysis.cell_proofs import prove_cell
from transformer.analysis.comparison_proofs import prove_most_moved, prove_outputs
from transformer.analysis.figure_proofs import prove_comparison, prove_distribution, prove_output
from transformer.analysis.proofs import Proof, agree
from transformer.analysis.weight_proofs import prove_weights
from transformer.figures.theme import KIND_NAMES
from transformer.inspection import KIND_SITES, AttentionKind, Comparison, Inspection
from transformer.lab import Lab
from transformer.taps import Address

Run = Callable[[], Iterable[Proof]]


def badge(run: Run, *, key: str) -> None:
    """A quiet button under a figure; opened, it runs the proofs and shows what each measured, a failing one in red."""
    with st.popover("Prove it", icon=":material/verified:", type="tertiary", key=key, on_change="rerun") as box:
        if box.open:
            with st.container(width=520):
                _show(tuple(run()))


def _show(proofs: Sequence[Proof]) -> None:
    failing = sum(not proof.holds for proof in proofs)
    if failing:
        st.markdown(f":red[:material/error: **{failing} of {len(proofs)} checks fail.**]")
    else:
        n = len(proofs)
        said = "1 check, run just now: it holds." if n == 1 else f"{n} checks, run just now: all hold."
        st.markdown(f":green[:material/verified: **{said}**]")
    for proof in proofs:
        icon = ":green[:material/check:]" if proof.holds else ":red[:material/close:]"
        claim = f"**{wording.plain(proof.claim)}.**" if proof.holds else f":red[**{wording.plain(proof.claim)}.**]"
        how = wording.plain(f"{proof.how[:1].upper()}{proof.how[1:]}")
        measured, allowed = wording.number(proof.measured), wording.number(proof.tolerance)
        st.markdown(f"{icon} {claim} {how}: **{measured}** (allowed: {allowed}).")


def show_proofs(scene: Scene) -> None:
    """Of a decoding: that recording changed nothing, and that all its attention is what q, k and masks give."""

    def run() -> Iterable[Proof]:
        yield from loading.get_proofs(scene.lab, scene.view.text, scene.view.switches)
        for kind in KIND_SITES:
            yield weight_proofs(scene.lab, scene.inspection, kind)[0]

    badge(run, key="proofs")


def weight_proofs(lab: Lab, seen: Inspection, kind: AttentionKind) -> tuple[Proof, ...]:
    """That the weights of one kind of attention are what q, k and the mask of this very decoding give."""
    stack, block = KIND_SITES[kind]
    attention = seen.attention(kind)
    return prove_weights(
        lab.model,
        seen.source_ids,
        seen.interventions,
        dict(seen.forced),
        stack=stack,
        block=block,
        weights=attention.weights,
        mask=attention.mask,
    )


def prove_lines(scene: Scene, drawn: Float[np.ndarray, "query key"]) -> None:
    """Of the lines of cross-attention on Home: one head, or the average of a layer's."""

    def run() -> Iterable[Proof]:
        yield from weight_proofs(scene.lab, scene.inspection, "cross")
        weights = scene.inspection.cross.weights[scene.layer]
        heads = range(len(weights)) if scene.view.head is None else [scene.view.head]
        again = sum(weights[head].astype(np.float64) for head in heads) / len(heads)
        whose = f"the average of {len(heads)} heads" if len(heads) > 1 else f"head {heads[0]}"
        yield agree(f"The lines are {whose} of layer {scene.layer}", drawn, again, 1e-6, "summed again")

    badge(run, key="proof-home")


def prove_cell_of(scene: Scene, query: int, key: int) -> None:
    """Of the sum of a cell."""

    def run() -> Iterable[Proof]:
        lab, kind = scene.lab, scene.view.kind
        cell = loading.get_cell(lab, scene.inspection, kind, scene.layer, scene.head, query, key)
        seen, (stack, block) = scene.inspection, KIND_SITES[kind]
        yield from prove_cell(
            lab.model,
            seen.source_ids,
            seen.interventions,
            dict(seen.forced),
            address=Address(stack, scene.layer, block),
            query=query,
            cell=cell,
            shown=seen.attention(kind).weights[scene.layer, scene.head, query],
        )

    badge(run, key="proof-cell")


def prove_compared(scene: Scene, comparison: Comparison) -> None:
    """Of probabilities before and after, of their divergence, and of both outputs."""

    def run() -> Iterable[Proof]:
        yield from prove_comparison(
            scene.lab.model,
            comparison.before.source_ids,
            comparison.before.target_ids,
            comparison.after.interventions,
            before=comparison.forced_before,
            after=comparison.forced_after,
            kl_divergence=comparison.kl_divergence,
        )
        yield from prove_outputs(scene.lab.model, comparison)

    badge(run, key="proof-compared")


def prove_difference(scene: Scene) -> None:
    """Of the difference of a head's attention: each side is read again, without recording anything else; and of the
    head that moved most."""

    def run() -> Iterable[Proof]:
        lab, kind = scene.lab, scene.view.kind
        shift = loading.get_attention_shift(lab, scene.view.text, scene.view.switches)
        comparison = loading.get_comparison(lab, scene.view.text, scene.view.switches)
        forced = dict(enumerate(comparison.before.target_ids))
        for name, switches, found in (
            ("before", (), shift.before[kind]),
            ("after", comparison.after.interventions, shift.after[kind]),
        ):
            stack, block = KIND_SITES[kind]
            claim, *_ = prove_weights(
                lab.model,
                comparison.before.source_ids,
                switches,
                forced,
                stack=stack,
                block=block,
                weights=found.weights,
                mask=found.mask,
            )
            yield replace(claim, claim=f"{name.capitalize()}: {claim.claim}")
            again = lab.attention_on(comparison.before, switches)[kind].weights
            how = "the original output read again"
            yield agree(f"What is called {name} is that pass's attention", found.weights, again, 0, how)
        moved, most, layer, head = shift.largest()[0]
        claim = f"{KIND_NAMES[most]}, layer {layer}, head {head} moved most"
        claim = claim if moved >= wording.NEGLIGIBLE else "No weight of any head moved, but for rounding"
        yield prove_most_moved(lab.model, comparison, shift, claim)

    badge(run, key="proof-difference")


def prove_road(lab: Lab, *roads: Inspection, key: str) -> None:
    """Of an output and the roads forced beside it: the probability under each of their tokens."""

    def run() -> Iterable[Proof]:
        for index, road in enumerate(roads):
            own = road.log_probs[np.arange(len(road.target_ids)), list(road.target_ids)]
            whose = f"Road {index}: " if index else ""
            for proof in prove_output(lab.model, road.source_ids, road.target_ids, road.interventions, own):
                yield replace(proof, claim=f"{whose}{proof.claim}")

    badge(run, key=key)


def prove_step(lab: Lab, road: Inspection, step: int, *, key: str) -> None:
    """Of one step's distribution over the next token."""

    def run() -> Iterable[Proof]:
        prefix, row = road.target_ids[:step], road.log_probs[step]
        return prove_distribution(lab.model, road.source_ids, prefix, road.interventions, row)

    badge(run, key=key)


def prove_rows(lab: Lab, road: Inspection, kind: AttentionKind, *, key: str) -> None:
    """Of a row of attention of a road: that of the kind that it belongs to."""
    badge(lambda: weight_proofs(lab, road, kind), key=key)
