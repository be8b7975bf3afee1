"""Checks of a recorded pass: every equation on it holds, recording changed nothing, and it has the numbers that wrote
the output."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch

from transformer.analysis.checks import Check, agree, agree_in_units, softmax_units
from transformer.analysis.trace.opened import ROUNDING, Moved, OpenedStep, check_equation, open_step
from transformer.analysis.trace.step import Step, TracedModel, Value
from transformer.analysis.trace.steps import find_step, steps
from transformer.analysis.trace.trace import Trace, record_trace
from transformer.decoding.greedy import Constraints, greedy
from transformer.inspection.inspection import AttentionKind, Inspection
from transformer.interventions import compile_interventions
from transformer.model.precise import in_double
from transformer.model.taps import Recording, Site

STEP_TOLERANCE = 1e-6
"""The largest difference of a probability in a step's own pass and in the decoding; with a cache ROUNDING holds."""
LOGITS = Site("decoder", None, None, "logits")
WHOLE_PASS = 10
"""The deviation of a whole pass in float32, in units of that of one step."""


def check_steps(model: TracedModel, trace: Trace) -> Check:
    """Checks that every equation of the pass holds, in every layer."""
    places = [(step, layer) for step in steps(model) for layer in range(step.n_layers)]
    failing = [place for place in places if not check_equation(trace, *place).holds]
    where = f", the first at {failing[0][0]} of layer {failing[0][1]}" if failing else ""
    how = f"{len(places)} steps of all layers computed again in double precision; how many differ{where}"
    return Check("Every step's equation gives what the pass computed", float(len(failing)), 0.0, how)


def largest(trace: Trace, sites: Iterable[Site]) -> float:
    """Returns the size of the largest number at these sites."""
    return max(float(trace.taken[site].abs().max()) for site in sites)


@torch.no_grad()
def check_unrecorded(model: TracedModel, trace: Trace) -> Check:
    """Checks that the pass ends in the same logits when nothing is recorded."""
    tap = compile_interventions(trace.interventions, model)
    again = model(torch.tensor([trace.source]), torch.tensor([trace.inputs]), tap=tap)[0].numpy()
    logits = trace.taken[LOGITS].numpy()
    size = max(1.0, float(abs(logits).max()))
    how = f"the pass run again with nothing recorded, {logits.size:,} logits"
    return agree("Recording does not change the pass", logits, again, ROUNDING * WHOLE_PASS * size, how)


def check_opened(
    trace: Trace, precise_pass: tuple[TracedModel, Trace], step: Step, layer: int, shown: OpenedStep
) -> Iterator[Check]:
    """Checks an opened step's equation, and every array against the same pass in double precision (`precise_trace`)."""
    yield check_equation(trace, step, layer)
    precise, again = precise_pass
    expected = open_step(again, replace(step, model=precise), layer)
    for side, mine, theirs in (
        ("in", shown.comes_in, expected.comes_in),
        ("out", shown.comes_out, expected.comes_out),
    ):
        if mine or theirs:
            yield _same_arrays(f"What comes {side} is what this pass has here", mine, theirs)
    if shown.moved or expected.moved:
        yield _same_moves(shown.moved, expected.moved)


def precise_trace(model: TracedModel, trace: Trace) -> tuple[TracedModel, Trace]:
    """Returns the model in double precision, and the same pass recorded with it."""
    precise = in_double(model)
    again = record_trace(
        precise,
        trace.source,
        trace.target,
        trace.interventions,
        log_probs=trace.log_probs,
        source_again=trace.source_again,
        step=trace.last,
    )
    return precise, again


def check_weights_written(
    model: TracedModel, trace: Trace, seen: Inspection, kinds: Sequence[AttentionKind], layer: int | None = None
) -> Check:
    """Checks that the weights of a layer (None: of all) in this pass are those that wrote the inspection's output."""
    n_of = {kind: len(seen.attention(kind).weights) for kind in kinds}
    places: list[tuple[AttentionKind, int]] = [
        (kind, at) for kind in kinds for at in (range(n_of[kind]) if layer is None else [layer])
    ]
    lost = trace.sees_later and "decoder_self" in kinds and trace.last + 1 < len(seen.target_ids)
    again = _own_pass_again(model, trace, seen) if lost else {}
    shown, recorded, units = [], [], []
    for kind, at in places:
        stack, sublayer = kind.where
        site = Site(stack, at, sublayer, "weights")
        mine, theirs = trace.taken[site].numpy(), seen.attention(kind).weights[at]
        if trace.sees_later and kind == "cross":
            mine, theirs = mine[:, -1], theirs[:, trace.last]
        elif site in again:
            theirs = again[site].numpy()[0]
        units.append(softmax_units(theirs.ravel(), largest(trace, [Site(stack, at, sublayer, "scores")])))
        shown.append(mine.ravel())
        recorded.append(theirs.ravel())
    return agree_in_units(
        "They are the weights that wrote the output",
        np.concatenate(shown),
        np.concatenate(recorded),
        np.concatenate(units),
        ROUNDING,
        f"{sum(map(len, shown)):,} weights of all heads against those of {_decoding(trace, rerun=lost)}",
    )


def check_probabilities_written(model: TracedModel, trace: Trace, seen: Inspection) -> Check:
    """Checks that this pass gives the written tokens the probabilities with which the decoding wrote them."""
    first = trace.last if trace.sees_later else 0
    rows = np.arange(first, trace.last + 1)
    (shown,) = open_step(trace, find_step(model, "decoder.probabilities")).comes_out
    written = shown.values[rows, np.array(seen.target_ids)[rows]]
    how = f"those of the tokens written, {len(rows):,} in all, against those of {_decoding(trace)}"
    tolerance, recorded = STEP_TOLERANCE if trace.sees_later else ROUNDING, seen.probabilities[rows]
    units = softmax_units(recorded, largest(trace, [LOGITS]))
    claim = "They are the probabilities that wrote the output"
    return agree_in_units(claim, written, recorded, units, tolerance, how)


def _same_arrays(claim: str, mine: Sequence[Value], theirs: Sequence[Value]) -> Check:
    """Compares arrays with those of the pass in double precision: the worst deviation for its size."""
    how = f"{len(theirs)} arrays of the pass run again in double precision; largest deviation for numbers of size 1"
    if [_layout(shown) for shown in mine] != [_layout(shown) for shown in theirs]:
        return Check(claim, np.inf, ROUNDING * WHOLE_PASS, f"{how}; they are other arrays")
    worst = 0.0
    for own, again in zip(mine, theirs, strict=True):
        is_exact = own.values.dtype.kind == "i"
        if not np.array_equal(_mask(own), _mask(again)) or (is_exact and not np.array_equal(own.values, again.values)):
            worst = np.inf
        for a, b in ((own.values, again.values), (own.before, again.before)):
            if a is not None and b is not None:
                apart = agree("", a, b, 0, "").measured
                worst = max(worst, apart / max(1.0, float(np.abs(b).max(initial=0))))
    return Check(claim, worst, ROUNDING * WHOLE_PASS, how)


def _layout(shown: Value) -> tuple[object, ...]:
    return shown.name, shown.rows, shown.columns, shown.recorded, shown.every_row, shown.before is None


def _mask(shown: Value) -> np.ndarray | tuple[int, ...]:
    return shown.values.shape if shown.allowed is None else shown.allowed


def _same_moves(mine: Sequence[Moved], theirs: Sequence[Moved]) -> Check:
    """Compares how far switches moved the numbers with the same pass in double precision."""
    size = max(1.0, *(moved.by for moved in theirs))
    how = "the pass run again in double precision, before and after the switches"
    claim = "The switches moved the numbers here this far"
    if [moved.spec for moved in mine] != [moved.spec for moved in theirs]:
        return Check(claim, np.inf, ROUNDING * WHOLE_PASS * size, f"{how}; they are other switches")
    shown, again = ([moved.by for moved in side] for side in (mine, theirs))
    return agree(claim, shown, again, ROUNDING * WHOLE_PASS * size, how)


def _decoding(trace: Trace, *, rerun: bool = False) -> str:
    if not trace.sees_later:
        return "the decoding steps"
    again = ", run again for its self-attention" if rerun else ""
    return f"step {trace.last} of the decoding{again}"


def _own_pass_again(model: TracedModel, trace: Trace, seen: Inspection) -> Recording:
    """The decoder's self-attention at the trace's step, decoded again: an inspection keeps the last pass alone."""
    decoding = greedy(
        model,
        torch.tensor([seen.source_ids]),
        max_length=model.config.max_length,
        constraints=Constraints(forced=dict(seen.forced)),
        tap=compile_interventions(seen.interventions, model),
        record=lambda site: (site.stack, site.sublayer, site.tensor) == ("decoder", "self", "weights"),
    )
    step = next(islice(decoding, trace.last, None))
    assert step.recording is not None, "these steps record"
    return step.recording
