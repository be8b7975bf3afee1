"""The checks of the timeline's film: the step on show, and the newest, made again from the weights kept of them."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from pages.shared.checks import badge
from pages.shared.components.run_timeline import MOST_POINTS, drawn_curve
from pages.training.run_checks import drawn, held
from pages.training.timeline.drawing import curves_of, take_of
from pages.training.timeline.frames import Frame, Snapshot, Take, Timeline
from pages.training.timeline.state import timeline
from pages.training.timeline.view import TimelineView
from transformer.analysis.attention.weight_checks import TOLERANCE, recomputed_weights
from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import check_output
from transformer.analysis.training.run_checks import Drawn, check_points
from transformer.analysis.training.timeline import row_entropy
from transformer.checkpoints.store import Checkpoint, CheckpointError, load_checkpoint
from transformer.data.batches import encode_sources
from transformer.decoding.greedy import greedy
from transformer.lab import AttentionKind
from transformer.runs.run_folder import Run


def check_film(run: Run, reel: Timeline, frames: Sequence[Frame], found: Sequence[Snapshot]) -> None:
    """Of the frame on show and the newest: text, attention, loss and entropies, from weights read again from disk."""
    view = timeline().view
    shown = nearest(frames, view.step)
    wanted = list({frame.step: frame for frame in (shown, frames[-1])}.values())
    paths = {snapshot.step: snapshot.path for snapshot in found}

    def check() -> Iterable[Check]:
        for frame in wanted:
            try:
                checkpoint = load_checkpoint(run.folder, weights=paths[frame.step])
            except CheckpointError as error:
                yield Check(f"The weights of step {frame.step:,} can be read", math.inf, 0, str(error))
                continue
            yield from _check_frame(checkpoint, reel, frame, view)
        yield from check_points(_lines(run.folder, frames, run))

    badge(held(check, "proof-film", (run.id, reel.text, shown.step, view.kind, view.rows)), key="proof-film")


def nearest(frames: Sequence[Frame], step: int | None) -> Frame:
    """The frame that the film shows at a step."""
    return frames[-1] if step is None else min(frames, key=lambda frame: abs(frame.step - step))


def _check_frame(checkpoint: Checkpoint, reel: Timeline, frame: Frame, view: TimelineView) -> Iterator[Check]:
    at, model = f"Step {frame.step:,}: ", checkpoint.model
    how = "the step that stands in their file"
    yield agree(f"{at}the weights are those of that step", frame.step, checkpoint.step, 0, how)
    source, _ = encode_sources([reel.text], checkpoint.tokenizer, max_length=model.config.max_length)
    ids = source[0].tolist()
    steps = greedy(model, source, max_length=model.config.max_length)
    written = [int(step.tokens[0]) for step in steps]
    off = sum(a != b for a, b in zip(written, frame.own.ids, strict=False)) + abs(len(written) - len(frame.own.ids))
    how = "translated again with these weights, nothing recorded; tokens that differ"
    yield Check(f"{at}these weights write this output", off, 0, how)
    take = take_of(frame, view.rows)
    forced = reel.goal if take is frame.forced else ()
    again = _weights(checkpoint, ids, forced, take, view.kind)
    how = f"decoded again, {again.size:,} weights of all heads from q, k and mask in double precision"
    yield agree(f"{at}its attention is that of these weights", take.attention[view.kind].weights, again, TOLERANCE, how)
    if frame.forced is not None:
        with torch.no_grad():
            spoken = np.log(frame.forced.probabilities.astype(np.float64))
            for check in check_output(model, ids, reel.goal, (), spoken):
                yield Check(f"{at}the goal's probabilities, and so its loss, are the model's", *_rest(check))
        seen = frame.forced.attention[view.kind]
        sums = _entropies(_weights(checkpoint, ids, reel.goal, frame.forced, view.kind), frame.forced, view.kind)
        how = "−Σ p ln p summed cell by cell; nats"
        yield agree(f"{at}each head's entropy", row_entropy(seen.weights, seen.mask), sums, 1e-4, how)


def _rest(check: Check) -> tuple[float, float, str]:
    return check.measured, check.tolerance, check.how


def _weights(
    checkpoint: Checkpoint, ids: Sequence[int], forced: Sequence[int], take: Take, kind: AttentionKind
) -> np.ndarray:
    """The weights [layer head query key] of a kind by hand, as many rows as the film keeps."""
    stack, sublayer = kind.where
    again = recomputed_weights(checkpoint.model, ids, (), dict(enumerate(forced)), stack=stack, sublayer=sublayer)
    rows, columns = take.attention[kind].weights.shape[2:]
    return again[:, :, :rows, :columns]


def _entropies(weights: np.ndarray, take: Take, kind: AttentionKind) -> np.ndarray:
    """Mean entropy [layer head] of the rows that have a choice."""
    mask = take.attention[kind].mask
    found = np.full(weights.shape[:2], np.nan)
    for layer, head in np.ndindex(*found.shape):
        rows = [weights[layer, head, row] for row in range(weights.shape[2]) if mask[layer, row].sum() > 1]
        each = [-math.fsum(p * math.log(p) for p in row.tolist() if p > 0) for row in rows]
        if each:
            found[layer, head] = math.fsum(each) / len(each)
    return found


def _lines(folder: Path, frames: Sequence[Frame], run: Run) -> list[Drawn]:
    """The two curves of the run below the film, as the browser gets them."""
    return [
        drawn(folder, split, "loss", drawn_curve(curve), most=MOST_POINTS, positive=True)
        for split, curve in zip(("train", "validation"), curves_of(run, frames), strict=False)
    ]
