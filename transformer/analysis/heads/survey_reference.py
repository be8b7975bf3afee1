"""Counts a survey by loops over queries and keys, one pair to a pass: slow, and independent of survey.py.

The checks that use it are in survey_checks.py.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.heads.addresses import HeadAt
from transformer.analysis.heads.patterns import TIE, Pattern, punctuation_of
from transformer.data.batches import make_batch
from transformer.data.tasks import AlignmentUnit
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Recorder, Site
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer
from transformer.training.metrics import merge_to_words


@dataclass(frozen=True)
class Alone:
    """One pair in a pass of its own, without padding."""

    pair: Pair
    source: Sequence[int]
    read: Sequence[int]
    written: Sequence[int]
    source_words: Sequence[int]
    """The word of each source token or -1; all -1 where tokens are not made of whole units."""
    written_words: Sequence[int]
    """The same for each written token."""
    weights: dict[AttentionKind, Float[ndarray, "layer head query key"]]
    allowed: dict[AttentionKind, Bool[ndarray, "query key"]]
    sign: Callable[[int], bool]
    """Tells whether an id is a punctuation mark."""

    keys: dict[tuple[AttentionKind, str], list[tuple[int, list[int]]]] = field(default_factory=dict)
    """The queries that have a key of a pattern, with these keys, for each pattern that was looked for."""

    @cached_property
    def links(self) -> frozenset[tuple[int, int]]:
        """The gold links, where both sides have words."""
        known = max(self.source_words, default=-1) >= 0 and max(self.written_words, default=-1) >= 0
        return frozenset(self.pair.alignment) if known else frozenset()

    def rows(self, kind: AttentionKind) -> list[int]:
        """Returns the queries that can choose among keys."""
        return [query for query, keys in enumerate(self.allowed[kind]) if keys.sum() > 1]

    def of(self, at: HeadAt) -> Float[ndarray, "query key"]:
        """Returns a head's weights."""
        return self.weights[at.kind][at.layer, at.head].astype(np.float64)


@torch.no_grad()
def one_by_one(
    model: Transformer, pairs: Sequence[Pair], tokenizer: Tokenizer, unit: AlignmentUnit
) -> tuple[Alone, ...]:
    """Every pair in a pass of its own."""
    signs = punctuation_of(tokenizer).tolist()
    found = []
    for pair in pairs:
        source, target = tokenizer.encode(pair.source), tokenizer.encode_target(pair.target)
        batch, recorder = make_batch([(source, target)]), Recorder(lambda site: site.tensor in ("weights", "mask"))
        model(batch.source, batch.target_in, tap=recorder)
        recorded: dict[AttentionKind, list[tuple[str, ndarray]]] = {
            kind: [(site.tensor, x[0].numpy()) for site, x in recorder.recording.items() if _is(site, kind)]
            for kind in AttentionKind
        }
        found.append(
            Alone(
                pair,
                batch.source[0].tolist(),
                batch.target_in[0].tolist(),
                batch.target_out[0].tolist(),
                *_words(pair, source, target, tokenizer, unit),
                {kind: np.stack([x for name, x in made if name == "weights"]) for kind, made in recorded.items()},
                {kind: _mask(made, len(batch.source[0]), len(target) + 1, kind) for kind, made in recorded.items()},
                signs.__getitem__,
            )
        )
    return tuple(found)


def counted(passes: Sequence[Alone], at: HeadAt, name: str) -> float:
    """Returns the mean of a column over the rows of a head, by loops; NaN where nothing can be counted."""
    match name:
        case "entropy" | "largest" | "evenness":
            return _mean(_of_row(name, row) for one in passes for row in _chosen_rows(one, at))
        case "error_rate" | "accuracy" | "error_rate_read" | "accuracy_read":
            return _alignment(passes, at, name)
    pattern, _, what = name.partition(" ")
    if what == "rows":
        return float(sum(len(_keys_of(one, at.kind, pattern)) for one in passes))  # type: ignore[arg-type]
    found = [
        _of_cells(what, one.of(at)[query], keys, one.allowed[at.kind][query])
        for one in passes
        for query, keys in _keys_of(one, at.kind, pattern)  # type: ignore[arg-type]
    ]
    return _mean(found)


def undecided(passes: Sequence[Alone], at: HeadAt, name: str) -> float:
    """Returns the share of the rows of a column in which a weight lies so near the edge of a tie that rounding decides
    on which side; 0 for a column that does not turn on the largest weight."""
    match name:
        case "error_rate" | "accuracy" | "error_rate_read" | "accuracy_read":
            rows = [row for one in passes if one.links for row in _between(one, at, name) if row.any()]
        case _ if name.endswith(" peak"):
            pattern = name.removesuffix(" peak")
            rows = [one.of(at)[query] for one in passes for query, _ in _keys_of(one, at.kind, pattern)]  # type: ignore[arg-type]
        case _:
            return 0.0
    return sum(any(0.9 * TIE < 1 - w / row.max() < 1.1 * TIE for w in row) for row in rows) / max(len(rows), 1)


def _chosen_rows(one: Alone, at: HeadAt) -> Iterator[Float[ndarray, " _"]]:
    for query in one.rows(at.kind):
        yield one.of(at)[query][one.allowed[at.kind][query]]


def _of_row(name: str, row: Float[ndarray, " _"]) -> float:
    if name == "largest":
        return float(row.max())
    entropy = -math.fsum(w * math.log(w) for w in row if w > 0)
    return entropy if name == "entropy" else entropy / math.log(len(row))


def _of_cells(what: str, row: Float[ndarray, " key"], keys: Sequence[int], allowed: Bool[ndarray, " key"]) -> float:
    match what:
        case "peak":
            largest = _largest(row)
            return sum(key in keys for key in largest) / len(largest)
        case "even":
            return len(keys) / int(allowed.sum())
    return math.fsum(row[key] for key in keys)


def _largest(row: Float[ndarray, " key"]) -> list[int]:
    """Returns the keys of a row's largest weight: several where they are equal."""
    most = max(row.tolist())
    return [key for key, weight in enumerate(row.tolist()) if most - weight <= TIE * most]


def _keys_of(one: Alone, kind: AttentionKind, pattern: Pattern) -> list[tuple[int, list[int]]]:
    """Returns the queries that can choose and have such a key, with these keys."""
    if (kind, pattern) not in one.keys:
        one.keys[kind, pattern] = list(_look_for(one, kind, pattern))
    return one.keys[kind, pattern]


def _look_for(one: Alone, kind: AttentionKind, pattern: Pattern) -> Iterator[tuple[int, list[int]]]:
    rule = {"encoder_self": _in_encoder, "decoder_self": _in_decoder, "cross": _in_cross}[kind]
    for query in one.rows(kind):
        allowed = np.flatnonzero(one.allowed[kind][query])
        keys = [int(key) for key in allowed if rule(one, pattern, query, int(key))]
        if keys:
            yield query, keys


def _in_encoder(one: Alone, pattern: Pattern, query: int, key: int) -> bool:
    n, (pronoun, noun) = len(one.source) - 1, one.pair.referent or (None, None)
    words = one.source_words
    match pattern:
        case "anti_diagonal":
            return query < n and key == n - 1 - query
        case "end":
            return key == n
        case "referent":
            return pronoun is not None and words[query] == pronoun and words[key] == noun
    return _anywhere(one, pattern, query, key, one.source)


def _in_decoder(one: Alone, pattern: Pattern, query: int, key: int) -> bool:
    if pattern != "referent":
        return _anywhere(one, pattern, query, key, one.read)
    asks, asked = (_linked(one, word) for word in one.pair.referent or (None, None))
    read_word = -1 if key == 0 else one.written_words[key - 1]
    return one.written_words[query] in asks and read_word in asked


def _in_cross(one: Alone, pattern: Pattern, query: int, key: int) -> bool:
    n_source, n_written = len(one.source) - 1, len(one.written) - 1
    place = math.floor((query + 0.5) * n_source / max(n_written, 1))
    match pattern:
        case "diagonal":
            return query < n_written and key == place
        case "anti_diagonal":
            return query < n_written and key == n_source - 1 - place
        case "same_token":
            return query < n_written and one.written[query] == one.source[key]
        case "end":
            return key == n_source
        case "alignment":
            return (one.source_words[key], one.written_words[query]) in one.links
        case "referent":
            pronoun, noun = one.pair.referent or (None, None)
            return one.written_words[query] in _linked(one, pronoun) and one.source_words[key] == noun
    return _anywhere(one, pattern, query, key, one.source)


def _anywhere(one: Alone, pattern: Pattern, query: int, key: int, keys: Sequence[int]) -> bool:
    """Tells whether a cell has a pattern that is the same in all kinds of attention, or in self-attention."""
    match pattern:
        case "previous":
            return key == query - 1
        case "next":
            return key == query + 1
        case "diagonal":
            return key == query
        case "same_token":
            return key != query and keys[key] == keys[query]
        case "first":
            return key == 0
        case "punctuation":
            return one.sign(keys[key])
    raise AssertionError(f"{pattern} is not defined here")


def _linked(one: Alone, word: int | None) -> set[int]:
    """Returns the target words that the gold alignment links to a source word."""
    return {target for source, target in one.links if source == word}


def _alignment(passes: Sequence[Alone], at: HeadAt, name: str) -> float:
    """Returns the agreement with the gold links, all pairs as one long sentence; of rows that write, or that read."""
    right, n_found, n_gold, aligned = 0.0, 0, 0, 0
    for one in passes:
        links = one.links
        if not links:
            continue
        for target, row in enumerate(_between(one, at, name)):
            if row.any():
                largest = _largest(row)
                right += sum((source, target) in links for source in largest) / len(largest)
                n_found += 1
        n_gold += len(links)
        aligned += len({target for _, target in links})
    if not n_gold:
        return math.nan
    return right / aligned if name.startswith("accuracy") else 1 - 2 * right / (n_found + n_gold)


def _between(one: Alone, at: HeadAt, name: str) -> Float[ndarray, "target source"]:
    """Returns the weights between words, by the rows that read a word or by those that write it."""
    queries = [-1, *one.written_words[:-1]] if name.endswith("_read") else one.written_words
    return merge_to_words(one.of(at), queries, one.source_words)


def distances_by_rows(passes: Sequence[Alone], kind: AttentionKind) -> Float[ndarray, "head head"]:
    """Returns the mean Jensen-Shannon distance of every two heads of a kind, by its definition."""
    total, n_rows = 0.0, 0
    for one in passes:
        for query in one.rows(kind):
            rows = one.weights[kind][:, :, query].reshape(-1, one.weights[kind].shape[-1]).astype(np.float64)
            a, b = np.broadcast_arrays(rows[:, None], rows[None])
            half = _divergence(a, (a + b) / 2) / 2 + _divergence(b, (a + b) / 2) / 2
            total, n_rows = total + np.sqrt(np.maximum(half, 0)), n_rows + 1
    return np.asarray(total) / max(n_rows, 1)


def layer_entropy_by_pairs(passes: Sequence[Alone], kind: AttentionKind) -> Float[ndarray, "layer 3"]:
    """Returns the mean entropy of each layer, its standard error by the residual of each pair, and the mean logarithm
    of the number of keys."""
    layers, heads = passes[0].weights[kind].shape[:2]
    n_rows = [len(one.rows(kind)) for one in passes]
    all_rows = max(sum(n_rows), 1)
    uniform = math.fsum(math.log(one.allowed[kind][query].sum()) for one in passes for query in one.rows(kind))
    found = []
    for layer in range(layers):
        sums = [
            math.fsum(
                _of_row("entropy", one.weights[kind][layer, head, query].astype(np.float64)) / heads
                for query in one.rows(kind)
                for head in range(heads)
            )
            for one in passes
        ]
        mean = math.fsum(sums) / all_rows
        residuals = [(total - mean * n) ** 2 for total, n in zip(sums, n_rows, strict=True)]
        n = len(passes)
        error = math.sqrt(n / (n - 1) * math.fsum(residuals)) / all_rows if n > 1 else math.nan
        found.append((mean, error, uniform / all_rows))
    return np.array(found)


def _divergence(p: Float[ndarray, "a b key"], q: Float[ndarray, "a b key"]) -> Float[ndarray, "a b"]:
    """Returns the Kullback-Leibler divergence in bits."""
    ratio = np.divide(p, q, out=np.ones_like(q), where=p > 0)
    return (p * np.log2(np.where(ratio > 0, ratio, 1.0))).sum(axis=-1)


def _mean(values: Iterator[float] | Sequence[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found) if found else math.nan


def _words(
    pair: Pair, source: Sequence[int], target: Sequence[int], tokenizer: Tokenizer, unit: AlignmentUnit
) -> tuple[list[int], list[int]]:
    """Returns the unit of each source token and of each written one, end marks -1."""
    if unit == "word":
        return [*tokenizer.sentence(pair.source).words], [*tokenizer.word_of_output(target), -1]
    sides = ((pair.source, source), (pair.target, target))
    spelt = [[*range(len(text))] if len(text) == len(ids) else [-1] * len(ids) for text, ids in sides]
    return [*spelt[0], -1], [*spelt[1], -1]


def _is(site: Site, kind: AttentionKind) -> bool:
    return (site.stack, site.sublayer) == kind.where


def _mask(
    recorded: list[tuple[str, ndarray]], n_source: int, n_target: int, kind: AttentionKind
) -> Bool[ndarray, "query key"]:
    mask = next(x for name, x in recorded if name == "mask")[0]
    n_query = n_source if kind == "encoder_self" else n_target
    return np.broadcast_to(mask, (n_query, mask.shape[-1]))
