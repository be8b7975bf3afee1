"""Reads source tokens back from the one vector of a recurrent encoder, with a linear probe for each length and
position.

Sentences of one length at a time: where the length is mixed too, a position lies differently in the vector of each. The
probes are fitted on training pairs, of which there are enough, and tested on validation pairs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from transformer.analysis.reach.linear_probe import LinearProbes, fit_probes
from transformer.checkpoints.store import Checkpoint
from transformer.data.batches import make_batch
from transformer.data.corpus_snapshot import load_own
from transformer.decoding.greedy import translate_ids
from transformer.model.recurrent import VECTOR
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recorder
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

FITTED, TESTED = 1_500, 250
"""The largest numbers of sentences of one length that probes are fitted on and tested on."""
MIN_FITTED, MIN_TESTED = 100, 20
"""A length with fewer is left out."""
MAX_LENGTHS = 12
_SEARCHED = 20_000
"""Training pairs that are looked through."""
_ROWS = 250
"""Sentences that are encoded together."""
NO_VECTOR = "a Transformer has no fixed vector: its decoder reads a state for each source token"

Ids = tuple[int, ...]


@dataclass(frozen=True)
class LengthProbe:
    """The probes for sentences of one length."""

    length: int
    """Source tokens, the end mark not counted."""
    fitted: tuple[tuple[Ids, Ids], ...]
    """The training pairs (source, target) that the probes were fitted on, as token ids without end marks."""
    tested: tuple[tuple[Ids, Ids], ...]
    """The validation pairs that they were tested on."""
    labels: tuple[Ids, ...]
    """The token ids that each probe chooses among: all that stand at its position in the fitted sources."""
    probes: LinearProbes
    right: Int[ndarray, " position"]
    """Tested sentences whose token at a position was read back."""
    whole: int
    """Tested sentences that were read back without a mistake."""
    exact: int
    """Tested sentences that the model itself wrote without a mistake."""


@dataclass(frozen=True)
class VectorProbe:
    """The probes of all lengths."""

    lengths: tuple[LengthProbe, ...]

    @cached_property
    def digest(self) -> bytes:
        """A hash of the sentences and of every weight."""
        found = blake2b()
        for each in self.lengths:
            counts = each.right.tolist(), each.whole, each.exact
            found.update(repr((each.length, each.fitted, each.tested, counts)).encode())
            found.update(b"".join(weights.tobytes() for weights in each.probes.weights))
        return found.digest()


def has_vector(model: Seq2Seq) -> bool:
    """Tells whether all or a part of what the decoder reads is one vector."""
    return VECTOR in model.sites()


def probe_vector(checkpoint: Checkpoint, tell: Callable[[float], object] = lambda share: None) -> VectorProbe:
    """Fits and tests probes for up to MAX_LENGTHS lengths of a model's own corpus.

    `tell` is given the share that is done. ValueError for a model without such a vector, a corpus with too few
    sentences of every length, and one that is not here (AbsentCorpus).
    """
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    if not has_vector(model):
        raise ValueError(NO_VECTOR)
    corpus = load_own(checkpoint.settings.corpus, checkpoint.folder)
    most = model.config.max_length
    tested = _by_length(corpus.validation, tokenizer, most, TESTED)
    held_out = frozenset(source for own in tested.values() for source, _ in own)
    fitted = _by_length(_spread(corpus.train, _SEARCHED), tokenizer, most, FITTED, without=held_out)
    enough = [n for n in sorted(tested) if len(tested[n]) >= MIN_TESTED and len(fitted[n]) >= MIN_FITTED]
    if not enough:
        raise ValueError(
            f"no sentence length has {MIN_FITTED} training and {MIN_TESTED} validation pairs, which a probe needs"
        )
    places = np.unique(np.linspace(0, len(enough) - 1, MAX_LENGTHS).round().astype(int))
    chosen = [enough[place] for place in places]
    found = []
    for length in chosen:
        found.append(_probe(model, length, fitted[length], tested[length]))
        tell(len(found) / len(chosen))
    return VectorProbe(tuple(found))


@torch.no_grad()
def fixed_vectors(model: Seq2Seq, sources: Sequence[Ids]) -> Float[ndarray, "sentence d_model"]:
    """Returns the vector of each of these sources, all equally long, in the precision of the model."""
    found = []
    for start in range(0, len(sources), _ROWS):
        recorder = Recorder(lambda site: site == VECTOR)
        rows = [[*ids, model.config.eos_id] for ids in sources[start : start + _ROWS]]
        model.encode(torch.tensor(rows), tap=recorder)
        found.append(recorder.recording[VECTOR][:, 0])
    return torch.cat(found).double().numpy()


def _probe(
    model: Seq2Seq, length: int, fitted: Sequence[tuple[Ids, Ids]], tested: Sequence[tuple[Ids, Ids]]
) -> LengthProbe:
    columns = np.array([source for source, _ in fitted]).T
    labels, known = zip(*(np.unique(column, return_inverse=True) for column in columns), strict=True)
    probes = fit_probes(fixed_vectors(model, [source for source, _ in fitted]), np.stack(known))
    read = probes.read(fixed_vectors(model, [source for source, _ in tested]))
    truth = np.array([source for source, _ in tested]).T
    right = np.stack([own[row] for own, row in zip(labels, read, strict=True)]) == truth  # [position sentence]
    counts = right.sum(axis=1), int(right.all(axis=0).sum())
    named = tuple(tuple(own.tolist()) for own in labels)
    return LengthProbe(length, tuple(fitted), tuple(tested), named, probes, *counts, _exact(model, tested))


def _exact(model: Seq2Seq, pairs: Sequence[tuple[Ids, Ids]]) -> int:
    """Returns the number of pairs whose target the model writes, token for token."""
    batch = make_batch([(list(source), list(target)) for source, target in pairs])
    limit = min(batch.target_out.size(1) + 1, model.config.max_length)
    written = translate_ids(model, batch.source, batch.source_mask, max_length=limit)
    return sum(tuple(ids) == target for ids, (_, target) in zip(written, pairs, strict=True))


def _by_length(
    pairs: Iterable[Pair], tokenizer: Tokenizer, max_length: int, most: int, *, without: frozenset[Ids] = frozenset()
) -> dict[int, list[tuple[Ids, Ids]]]:
    """Returns the first pairs of each length that fit into a model, each source once, `without` some."""
    found: dict[int, dict[Ids, Ids]] = defaultdict(dict)
    for pair in pairs:
        source, target = tuple(tokenizer.encode(pair.source)), tuple(tokenizer.encode_target(pair.target))
        fits = 0 < len(source) < max_length and 0 < len(target) < max_length and source not in without
        if fits and len(found[len(source)]) < most:
            found[len(source)].setdefault(source, target)
    return defaultdict(list, {length: list(own.items()) for length, own in found.items()})


def _spread(pairs: Sequence[Pair], count: int) -> Iterable[Pair]:
    """Yields so many of the pairs, spread evenly over all of them."""
    return (pairs[i * len(pairs) // count] for i in range(count)) if len(pairs) > count else pairs
