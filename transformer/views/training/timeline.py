"""One sentence at one step of a run's training, decoded with the weights kept of that step; and one head of it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.weight_checks import Recomputed, recomputed_attention
from transformer.analysis.checks import Check, agree
from transformer.analysis.training.timeline import row_entropy
from transformer.checkpoints.store import Checkpoint, CheckpointError, load_checkpoint
from transformer.data.batches import encode_sources
from transformer.decoding.greedy import greedy
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.figures.export import matrix_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Attention, Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.views.view import Origin

MAX_ROWS = 40
"""The most rows of a decoder's attention that are kept of a pass: the output of an untrained model has no end."""


@dataclass(frozen=True)
class DecodedSnapshot:
    """A sentence decoded with one step's weights. Read-only: shared by all visitors."""

    run: Path
    weights: str
    """The file, below the run's folder."""
    written_ns: int
    """The time at which that file was written, in nanoseconds."""
    step: int
    text: str
    forced: tuple[int, ...]
    """The ids that it was made to write; empty where it chose them itself."""
    source: tuple[str, ...]
    """The sentence, its end mark included."""
    tokens: tuple[str, ...]
    """The output, its end mark included."""
    ids: tuple[int, ...]
    translation: str
    probabilities: Float[ndarray, " token"]
    ended: bool
    attention: Mapping[AttentionKind, Attention]
    """The attention of each kind, of the decoder's at most MAX_ROWS rows."""

    @property
    def loss(self) -> float:
        """Cross-entropy of the output in nats per token."""
        return float(-np.log(np.maximum(self.probabilities, 1e-30)).mean())


def decode_snapshot(
    run: Path, weights: str, text: str, forced: Sequence[int] = (), *, lab: Lab | None = None
) -> DecodedSnapshot:
    """Decodes the sentence with the weights in this file of a run, which `lab` has where they are already loaded."""
    lab = lab or Lab(load_checkpoint(run, weights=run / weights))
    seen = lab.inspect(text, forced=dict(enumerate(forced)))
    return DecodedSnapshot(
        run=run,
        weights=weights,
        written_ns=(run / weights).stat().st_mtime_ns,
        step=lab.checkpoint.step,
        text=text,
        forced=tuple(forced),
        source=seen.source_tokens,
        tokens=seen.target_tokens,
        ids=seen.target_ids,
        translation=seen.translation,
        probabilities=seen.probabilities,
        ended=seen.ended,
        attention={kind: _cropped(seen, kind) for kind in seen.attentions},
    )


@dataclass(frozen=True)
class AtStep:
    """A sentence at one step of a training."""

    snapshot: DecodedSnapshot

    @property
    def origin(self) -> Origin:
        """Decodes the sentence with the weights of the step."""
        one = self.snapshot
        forced = f", {one.forced!r}" if one.forced else ""
        return Origin(
            stem=f"{one.run.name}-step{one.step}",
            caption=f"{one.run.name} · step {one.step:,} · {one.text}",
            imports=(
                "from transformer.checkpoints.store import find_checkpoint",
                "from transformer.views.training.timeline import decode_snapshot",
            ),
            lines=(
                f"run = find_checkpoint({one.run.name!r})",
                f"snapshot = decode_snapshot(run, {one.weights!r}, {one.text!r}{forced})",
            ),
        )


@dataclass(frozen=True)
class SnapshotData:
    """One head at one step, and the output that it helped to write."""

    step: int
    ids: Int[ndarray, " token"]
    """The output."""
    probabilities: Float[ndarray, " token"]
    loss: float
    """The cross-entropy of the output in nats per token."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Float[ndarray, "query key"]
    mask: Bool[ndarray, "query key"]
    entropies: Float[ndarray, "layer head"]
    """The entropy in nats of every head of this kind, averaged over its rows; NaN where no row has a choice."""


@dataclass(frozen=True, kw_only=True)
class SnapshotAttention:
    """One head's attention at one step of a training."""

    kind: KindName = "cross"
    layer: int = 0
    head: int = 0
    name = "{kind}-layer{layer}-head{head}"
    explained = (
        "One head at one step of the training, with the weights as they were then. Each row is a token, and says how "
        "it shared its attention out over the columns. At the start of a training that is spread out; a pattern "
        "appears while the loss falls."
    )

    def data(self, snapshot: DecodedSnapshot) -> SnapshotData:
        """The head's weights, every head's entropy, and the output with its probabilities."""
        if (seen := snapshot.attention.get(AttentionKind(self.kind))) is None:
            raise ValueError(f"the model has no {AttentionKind(self.kind).phrase}")
        return SnapshotData(
            step=snapshot.step,
            ids=np.array(snapshot.ids, dtype=np.int64),
            probabilities=snapshot.probabilities,
            loss=snapshot.loss,
            queries=tuple(seen.queries),
            keys=tuple(seen.keys),
            weights=seen.weights[self.layer, self.head],
            mask=seen.mask[self.layer],
            entropies=row_entropy(seen.weights, seen.mask),
        )

    def figure(self, data: SnapshotData, *, dark: bool = False) -> go.Figure:
        """The head as a matrix."""
        labels, titles = (data.queries, data.keys), AXIS_TITLES[AttentionKind(self.kind)]
        return matrix_figure(data.weights, *labels, kind=self.kind, titles=titles, mask=data.mask, dark=dark)

    def tables(self, data: SnapshotData) -> tuple[DataFrame, ...]:
        """The weights, the entropies, and the output's probabilities."""
        layers, heads = (
            [f"{name} {i}" for i in range(n)] for name, n in zip(("layer", "head"), data.entropies.shape, strict=True)
        )
        places = [f"token {i}" for i in range(len(data.ids))]
        return (
            matrix_table("weight", data.weights, numbered(data.queries), numbered(data.keys)),
            matrix_table("entropy", data.entropies, layers, heads),
            column_table("output", places, {"id": data.ids, "probability": data.probabilities}),
        )

    def checks(self, snapshot: DecodedSnapshot, data: SnapshotData) -> Iterator[Check]:
        """Loads the weights of that step again and decodes the sentence again, without recording anything."""
        try:
            checkpoint = load_checkpoint(snapshot.run, weights=snapshot.run / snapshot.weights)
        except CheckpointError as error:
            yield Check(f"The weights of step {data.step:,} can be read", math.inf, 0, str(error))
            return
        how = "the step in the notes of their file"
        yield agree(f"The weights are those of step {data.step:,}", data.step, checkpoint.step, 0, how)
        model = checkpoint.model
        source, mask = encode_sources([snapshot.text], checkpoint.tokenizer, max_length=model.config.max_length)
        steps = greedy(model, source, max_length=model.config.max_length)
        written = list(snapshot.forced) or [int(step.tokens[0]) for step in steps]
        how = "the ids that were forced" if snapshot.forced else "decoded again, nothing recorded"
        shown = data.ids.tolist()
        off = sum(a != b for a, b in zip(written, shown, strict=False)) + abs(len(written) - len(shown))
        yield Check("These weights write this output", off, 0, f"{how}; tokens that differ")
        spoken = _probabilities(checkpoint, source, mask, written)
        if len(spoken) == len(data.probabilities):
            how = "read in one pass, teacher-forced"
            yield agree("Its tokens have these probabilities", data.probabilities, spoken, 1e-4, how)
            nats = -math.fsum(np.log(np.maximum(spoken, 1e-30)).tolist()) / len(spoken)
            yield agree("Its loss is their mean negative logarithm", data.loss, nats, 1e-3 * max(1.0, nats), "nats")
        found = self._attention(checkpoint, source[0].tolist(), snapshot)
        again = found.weights
        how = f"{again.size:,} weights of all heads from q, k and mask in double precision"
        claim = "The attention is that of these weights"
        yield found.check(claim, data.weights, again[self.layer, self.head], how)
        yield agree("The mask is what its rule says", data.mask, found.mask[self.layer], 0, "cell by cell")
        sums = _entropies(again, snapshot.attention[AttentionKind(self.kind)].mask)
        known = np.isfinite(sums)
        pair = np.where(np.isfinite(data.entropies), data.entropies, -1), np.where(known, sums, -1)
        tolerance = 1e-4 * float(found.units(again).max(initial=1.0))
        yield agree("Each head has this entropy", *pair, tolerance, "−Σ p ln p summed entry by entry; nats")

    def _attention(self, checkpoint: Checkpoint, ids: Sequence[int], snapshot: DecodedSnapshot) -> Recomputed:
        """Computes the weights of this kind from q, k and mask, as many rows as are kept."""
        forced = dict(enumerate(snapshot.forced))
        again = recomputed_attention(checkpoint.model, ids, (), forced, self.kind)
        rows, columns = snapshot.attention[AttentionKind(self.kind)].weights.shape[2:]
        kept = again.weights[:, :, :rows, :columns], again.mask[:, :rows, :columns]
        return Recomputed(*kept, again.largest)


@torch.no_grad()
def _probabilities(
    checkpoint: Checkpoint,
    source: Int[torch.Tensor, "1 key"],
    mask: Bool[torch.Tensor, "1 key"],
    written: Sequence[int],
) -> Float[ndarray, " token"]:
    """Returns the probability of each token of an output, from one teacher-forced pass."""
    model = checkpoint.model
    target = torch.tensor([[model.config.bos_id, *written[:-1]]])
    logits = model(source, target, mask, torch.ones_like(target, dtype=torch.bool))[0]
    return logits.double().softmax(-1)[torch.arange(len(written)), torch.tensor(written)].numpy()


def _entropies(
    weights: Float[ndarray, "layer head query key"], mask: Bool[ndarray, "layer query key"]
) -> Float[ndarray, "layer head"]:
    """Returns the mean entropy of the rows that have a choice."""
    found = np.full(weights.shape[:2], np.nan)
    for layer, head in np.ndindex(*found.shape):
        rows = [weights[layer, head, row] for row in range(weights.shape[2]) if mask[layer, row].sum() > 1]
        each = [-math.fsum(p * math.log(p) for p in row.tolist() if p > 0) for row in rows]
        if each:
            found[layer, head] = math.fsum(each) / len(each)
    return found


def _cropped(seen: Inspection, kind: AttentionKind) -> Attention:
    whole = seen.attention(kind)
    if kind is AttentionKind.ENCODER_SELF or len(whole.queries) <= MAX_ROWS:
        return whole
    columns = MAX_ROWS if kind is not AttentionKind.CROSS else len(whole.keys)
    return replace(
        whole,
        weights=whole.weights[:, :, :MAX_ROWS, :columns].copy(),
        mask=whole.mask[:, :MAX_ROWS, :columns].copy(),
        queries=whole.queries[:MAX_ROWS],
        keys=whole.keys[:columns],
    )
