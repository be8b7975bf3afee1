"""Checks of what was read back from fixed vectors: the vectors recorded again, and the probes applied by other code."""

from collections import Counter
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.reach.linear_probe import PENALTY, covariance
from transformer.analysis.reach.vector_probe import LengthProbe, VectorProbe, fixed_vectors
from transformer.data.batches import make_batch
from transformer.model.families import AnyModel
from transformer.model.precise import in_double
from transformer.model.recurrent import VECTOR
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recorder


def check_probe(
    model: AnyModel,
    found: VectorProbe,
    *,
    right: Int[ndarray, "length position"],
    guessed: Int[ndarray, "length position"],
    whole: Int[ndarray, " length"],
    exact: Int[ndarray, " length"],
) -> Iterator[Check]:
    """Counts again, and shows that the probes are the best of their kind and were not tested on what they knew."""
    precise = in_double(model)
    width = right.shape[1]
    read = [_read_again(precise, each) for each in found.lengths]
    how = "tested sentences of one length as a batch in double precision, each probe applied to each vector by itself"
    again = np.array([_padded(rows.sum(axis=0), width) for rows in read])
    yield agree("So many tokens are read back at each position", right, again, 0, how)
    yield agree("So many sentences are read back whole", whole, [rows.all(axis=1).sum() for rows in read], 0, how)
    counts = [_padded([_guessed(each, place) for place in range(each.length)], width) for each in found.lengths]
    yield agree("Guessing gets so many", guessed, counts, 0, "the most frequent token of each place counted again")
    correct = [_teacher_forced(precise, each) for each in found.lengths]
    how = "each target read by the model, in double precision: right if every next token is the most probable one"
    yield agree("The model itself writes so many without a mistake", exact, correct, 0, how)
    known = sum(len({*each.tested} & {*each.fitted}) for each in found.lengths)
    yield Check("No tested sentence was fitted on", float(known), 0, "sentences that are in both; their number")
    slopes = [_slope(precise, each) for each in found.lengths]
    how = "the gradient of its loss in NumPy, from vectors in double precision; the largest norm of all probes"
    yield Check("No other linear probe has a smaller loss on the fitted sentences", max(slopes), 5e-3, how)


@torch.no_grad()
def _read_again(precise: Seq2Seq, each: LengthProbe) -> ndarray:
    """Returns [sentence position]: True where a token is read back."""
    recorder = Recorder(lambda site: site == VECTOR)
    batch = make_batch([([*source], [*target]) for source, target in each.tested])
    precise.encode(batch.source, batch.source_mask, tap=recorder)
    rows = []
    for (source, _), vector in zip(each.tested, recorder.recording[VECTOR][:, 0].numpy(), strict=True):
        row = []
        for token, labels, weights, bias in zip(
            source, each.labels, each.probes.weights, each.probes.bias, strict=True
        ):
            best = max(range(len(bias)), key=(weights @ (vector - each.probes.mean) + bias).__getitem__)
            row.append(labels[best] == token)
        rows.append(row)
    return np.array(rows)


def _guessed(each: LengthProbe, place: int) -> int:
    """Returns how often the most frequent fitted token stands at a place of the tested sentences."""
    counted = Counter(source[place] for source, _ in each.fitted)
    most = max(counted.values())
    frequent = min(token for token, count in counted.items() if count == most)
    return sum(source[place] == frequent for source, _ in each.tested)


@torch.no_grad()
def _teacher_forced(precise: Seq2Seq, each: LengthProbe) -> int:
    batch = make_batch([([*source], [*target]) for source, target in each.tested])
    best = precise(batch.source, batch.target_in, batch.source_mask, batch.target_mask)
    best[..., precise.config.pad_id] = -torch.inf  # never written
    return int(((best.argmax(dim=-1) == batch.target_out) | ~batch.target_mask).all(dim=1).sum())


def _slope(precise: Seq2Seq, each: LengthProbe) -> float:
    """Returns the largest norm of a probe's gradient, in coordinates in which the covariance is the identity."""
    vectors = fixed_vectors(precise, [source for source, _ in each.fitted])
    centred, spread = vectors - vectors.mean(axis=0), covariance(vectors)
    values, axes = np.linalg.eigh(spread)
    root = axes / np.sqrt(values) @ axes.T
    found = []
    for place, (weights, bias) in enumerate(zip(each.probes.weights, each.probes.bias, strict=True)):
        scores = centred @ weights.T + bias
        share = np.exp(scores - scores.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        share[
            np.arange(len(share)), np.searchsorted(each.labels[place], [source[place] for source, _ in each.fitted])
        ] -= 1
        by_weight = (share.T @ centred / len(vectors) + PENALTY * weights @ spread) @ root
        found.append(float((by_weight**2).sum() + (share.mean(axis=0) ** 2).sum()) ** 0.5)
    return max(found)


def _padded(counts: ndarray | list[int], width: int) -> list[int]:
    return [*counts, *[0] * (width - len(counts))]
