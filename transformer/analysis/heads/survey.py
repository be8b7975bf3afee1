"""Surveys every head over many pairs: the share of its weight on the token before, the end mark, the aligned word and
so on, and its distance to other heads. One teacher-forced pass a batch, real positions only.

Mean weights by the key's place are those of Clark et al. (2019, "What Does BERT Look At?", section 3); the share of
rows whose largest weight lies there is the measure by which Voita et al. (2019, "Analyzing Multi-Head Self-Attention",
section 5.1) call a head positional; alignment from the row that writes a word, and from the one that reads it, are
compared by Kobayashi et al. (2020, "Attention is Not Only a Weight", for Transformer-based translation).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.heads.addresses import HeadAt, Tell, heads_of
from transformer.analysis.heads.patterns import TIE, Gold, Pattern, gold_of, patterns_of, punctuation_of
from transformer.analysis.heads.similarity import summed_distances
from transformer.data.batches import Batch, pair_batches
from transformer.data.tasks import AlignmentUnit
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Recorder, Recording, Site
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

CLEAR = 0.5
"""A head that puts more of its weight than this on a pattern, on average, is named after it."""
ABOVE_EVEN = 0.15
"""The margin by which it must also exceed an even head, one that looks at all allowed keys alike."""
NOTICEABLE = 0.05
"""The margin beyond an even head's share that a pattern needs to be named at all."""
_COUNTS = ("pairs", "source", "target", "links", "referents")
PART = 1_000
"""The number of pairs that are added up by themselves, so that they can be measured again by themselves."""
Sums = Mapping[str, Float[ndarray, " part *shape"]]
"""The sums of a survey, as in "cross.weight.previous" with a number a head: a row for every PART of its pairs."""


@dataclass(frozen=True)
class Alignment:
    """The agreement of a head's strongest links with the gold ones, over all pairs that have some."""

    error_rate: float
    """1 - 2 |found and gold| / (|found| + |gold|) over all pairs (Och and Ney, 2003, every gold link sure): 0 is
    perfect. Every target word has one found link, to the source word that it looks at most; where it looks at several
    alike, each is that word in part."""
    accuracy: float
    """Share of the aligned target words that look most at a source word they are aligned with."""


@dataclass(frozen=True)
class Profile:
    """One head over all rows that could choose among keys."""

    at: HeadAt
    weight: Mapping[Pattern, float]
    """Mean weight on the keys of each pattern, over the rows that have such a key."""
    peak: Mapping[Pattern, float]
    """Share of these rows whose largest weight lies there; each of several equal ones counts in part."""
    entropy: float
    """Mean, in nats."""
    evenness: float
    """Mean of the entropy over the largest possible one."""
    largest: float
    """Mean of the row's largest weight."""
    written: Alignment | None
    """The alignment of cross-attention by the rows that write a word; None where there is no gold alignment."""
    read: Alignment | None
    """The same by the rows that read it, one step later."""


@dataclass(frozen=True)
class MainPatterns:
    """The pattern that a head is named after."""

    patterns: tuple[Pattern, ...]
    """Empty where no pattern has noticeably more than an even head would give it."""
    clear: bool
    """True where most of its weight lies there."""


@dataclass(frozen=True)
class Survey:
    """All heads of a model over the same pairs."""

    profiles: tuple[Profile, ...]
    even: Mapping[AttentionKind, Mapping[Pattern, float]]
    """The mean weight of a head that looks at all allowed keys alike."""
    rows: Mapping[AttentionKind, Mapping[Pattern, int]]
    """Rows that have such a key."""
    n_rows: Mapping[AttentionKind, int]
    """Rows that could choose among keys."""
    distances: Mapping[AttentionKind, Float[ndarray, "head head"]]
    """Mean Jensen-Shannon distance of every two heads of a kind, in the order of `of_kind`."""
    reach: Mapping[AttentionKind, Float[ndarray, "head tokens"]]
    """Self-attention's weight by |query - key|, added up over rows. The last line is a uniform head's."""
    layer_entropy: Mapping[AttentionKind, Float[ndarray, "layer 3"]]
    """Mean entropy of the rows of all heads of a layer, its standard error, and the entropy of a uniform head on the
    same rows, in nats. The error is that of a ratio of sums over pairs (Cochran, 1977, section 6.4): rows of one pair
    are not independent. NaN for a single pair."""
    n_pairs: int
    n_source: int
    """Source tokens, end marks included."""
    n_target: int
    """Target tokens, end marks included."""
    n_links: int
    """Gold links."""
    n_referents: int
    """Pronouns whose referent is known."""
    sums: Sums = field(default_factory=dict)
    """The sums that all of this is made of."""
    published: bool = False
    """True where it was measured when the model was published, False where just now."""

    def of_kind(self, kind: AttentionKind) -> tuple[Profile, ...]:
        """Returns the heads of one kind of attention, layer by layer."""
        return tuple(profile for profile in self.profiles if profile.at.kind == kind)

    @cached_property
    def by_head(self) -> Mapping[HeadAt, Profile]:
        """The profiles by the address of the head."""
        return {profile.at: profile for profile in self.profiles}

    def main_patterns(self, profile: Profile) -> MainPatterns:
        """Returns the pattern with the most weight beyond an even head's share, and one that is all but equal to it.

        Patterns that few rows have are left out, but for the referent, which only rows with a pronoun have.
        """
        kind = profile.at.kind
        above: dict[Pattern, float] = {
            name: weight - self.even[kind][name]
            for name, weight in profile.weight.items()
            if name == "referent" or self.rows[kind][name] >= self.n_rows[kind] / 2
        }
        clear: dict[Pattern, float] = {
            name: a for name, a in above.items() if profile.weight[name] >= CLEAR and a >= ABOVE_EVEN
        }
        usual: dict[Pattern, float] = {name: a for name, a in above.items() if name != "referent" and a >= NOTICEABLE}
        found = clear or usual
        best = sorted(found, key=lambda name: -found[name])
        equal: list[Pattern] = [name for name in best[:2] if found[best[0]] - found[name] <= 0.02]
        return MainPatterns(tuple(equal), bool(clear))


@torch.no_grad()
def survey(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    *,
    unit: AlignmentUnit = "word",
    batch_tokens: int = 2_048,
    tell: Tell | None = None,
) -> Survey:
    """Surveys every head over these pairs; ValueError for none, or one that does not fit the model."""
    if not pairs:
        raise ValueError("there are no pairs to look at")
    parts: list[dict[str, ndarray]] = []
    for start in range(0, len(pairs), PART):
        part = pairs[start : start + PART]

        def told(done: int, start: int = start) -> None:
            if tell is not None:
                tell((start + done) / len(pairs))

        parts.append(dict(_added_up(model, part, tokenizer, unit, batch_tokens, told)))
    return survey_of(model, {name: _stacked([part[name] for part in parts]) for name in parts[0]})


def survey_of(model: Transformer, sums: Sums, *, published: bool = False) -> Survey:
    """Returns the survey that these sums make, all parts together."""
    total = {name: rows.sum(axis=0) for name, rows in sums.items()}
    by_kind = {kind: _Sums.read(kind, total) for kind in AttentionKind}
    return Survey(
        profiles=tuple(found for kind, own in by_kind.items() for found in own.profiles(kind, model)),
        even={kind: own.mean(own.even) for kind, own in by_kind.items()},
        rows={kind: {name: int(n) for name, n in own.count.items()} for kind, own in by_kind.items()},
        n_rows={kind: own.rows for kind, own in by_kind.items()},
        distances={kind: (own.distances / max(own.rows, 1)).numpy() for kind, own in by_kind.items()},
        reach={kind: own.reach.numpy() for kind, own in by_kind.items() if kind != "cross"},
        layer_entropy={kind: own.layer_entropy(int(total["pairs"])) for kind, own in by_kind.items()},
        **{f"n_{name}": int(total[name]) for name in _COUNTS},
        sums=sums,
        published=published,
    )


def with_part(sums: Sums, part: int, again: Sums) -> Sums:
    """Returns the sums with those of one part measured again in its place."""
    rows = {name: [*value[:part], again[name][0], *value[part + 1 :]] for name, value in sums.items()}
    return {name: _stacked(value) for name, value in rows.items()}


def _added_up(
    model: Transformer,
    pairs: Sequence[Pair],
    tokenizer: Tokenizer,
    unit: AlignmentUnit,
    batch_tokens: int,
    tell: Callable[[int], None],
) -> Iterator[tuple[str, ndarray]]:
    """Yields the sums over these pairs by their names; tells after each batch how many pairs are done."""
    punctuation, done = punctuation_of(tokenizer), 0
    sums: dict[AttentionKind, _Sums] = {kind: _Sums() for kind in AttentionKind}
    counts = dict.fromkeys(_COUNTS, 0)
    for rows, batch in pair_batches(pairs, tokenizer, batch_tokens, max_length=model.config.max_length):
        recorder = Recorder(_wanted)
        memory = model.encode(batch.source, batch.source_mask, tap=recorder)
        model.decode(batch.target_in, memory, batch.source_mask, batch.target_mask, tap=recorder)
        gold = gold_of([pairs[row] for row in rows], batch, tokenizer, unit)
        for kind, total in sums.items():
            total.add(kind, _weights(recorder.recording, model, kind), batch, gold, punctuation, recorder.recording)
        found = len(rows), batch.source_mask.sum(), batch.n_tokens, gold.links.sum(), gold.noun.sum()
        counts = {name: count + int(n) for (name, count), n in zip(counts.items(), found, strict=True)}
        done += len(rows)
        tell(done)
    yield from ((name, np.array(float(count))) for name, count in counts.items())
    for kind, total in sums.items():
        yield from total.arrays(kind)


def _stacked(rows: Sequence[ndarray]) -> Float[ndarray, " part *shape"]:
    """Returns the sums of all parts; those by distance end where the longest sentence of any part does."""
    shape = np.max([row.shape for row in rows], axis=0).astype(int)
    found = np.zeros((len(rows), *shape))
    for part, row in enumerate(rows):
        found[(part, *map(slice, row.shape))] = row
    return found


def _wanted(site: Site) -> bool:
    return site.tensor in ("weights", "mask")


def _weights(recording: Recording, model: Transformer, kind: AttentionKind) -> Float[Tensor, "batch head query key"]:
    """Returns the weights of all layers of a kind side by side, layer by layer."""
    stack, sublayer = kind.where
    layers = model.config.n_encoder_layers if stack == "encoder" else model.config.n_decoder_layers
    return torch.cat([recording[Site(stack, layer, sublayer, "weights")] for layer in range(layers)], dim=1)


@dataclass
class _Sums:
    """The sums of one kind of attention, batch by batch."""

    rows: int = 0
    """Rows that could choose among keys."""
    weight: dict[Pattern, Tensor] = field(default_factory=dict)
    peak: dict[Pattern, Tensor] = field(default_factory=dict)
    even: dict[Pattern, Tensor] = field(default_factory=dict)
    count: dict[Pattern, Tensor] = field(default_factory=dict)
    spread: Tensor = field(default_factory=lambda: torch.zeros(3, 1, dtype=torch.float64))
    """Entropy, evenness and largest weight of each head."""
    entropy: Tensor = field(default_factory=lambda: torch.zeros(5, 1, dtype=torch.float64))
    """Sums by layer: its heads' mean entropy, added up over the rows of a pair and then squared, times the number of
    these rows, and by itself; their number squared; and the entropy of a uniform head."""
    links: Tensor = field(default_factory=lambda: torch.zeros(2, 3, 1, dtype=torch.float64))
    """Right links, found links and aligned words, of rows that write and of rows that read."""
    n_links: int = 0
    distances: Tensor = field(default_factory=lambda: torch.zeros(1, 1, dtype=torch.float64))
    reach: Tensor = field(default_factory=lambda: torch.zeros(1, 0, dtype=torch.float64))
    """Weight by |query - key|; the last line is a uniform head's."""

    def add(
        self,
        kind: AttentionKind,
        weights: Float[Tensor, "batch head query key"],
        batch: Batch,
        gold: Gold,
        punctuation: Bool[Tensor, " vocab"],
        recording: Recording,
    ) -> None:
        """Adds a batch."""
        stack, sublayer = kind.where
        real = batch.source_mask if stack == "encoder" else batch.target_mask
        allowed = recording[Site(stack, 0, sublayer, "mask")][:, 0]
        allowed = allowed.expand(-1, weights.size(2), -1)
        rows = real & (allowed.sum(dim=-1) > 1)
        self.rows += int(rows.sum())
        cells = patterns_of(kind, batch, gold, punctuation, allowed)
        possible = allowed[rows].sum(dim=-1).double()
        chosen = weights.transpose(0, 1)[:, rows].double()  # -> [head row key]
        self._add_patterns(chosen, {name: places[rows] for name, places in cells.items()}, possible)
        entropy = torch.special.entr(chosen).sum(dim=-1)
        spread = torch.stack((entropy, entropy / possible.log(), chosen.amax(dim=-1)))
        self.spread = self.spread + spread.sum(dim=2)
        n_heads = recording[Site(stack, 0, sublayer, "weights")].size(1)
        self._add_entropy(entropy.unflatten(0, (-1, n_heads)).mean(dim=1), rows, possible)
        self.distances = self.distances + summed_distances(chosen)
        if kind != "cross":
            uniform = allowed[rows] / possible[:, None]
            self._add_reach(torch.cat((chosen, uniform[None])), rows.nonzero()[:, 1])
        else:
            found = [count_links(weights, words, gold) for words in (gold.written, gold.read)]
            self.links = self.links + torch.stack(found)
            self.n_links += int(gold.links.sum())

    def _add_patterns(
        self,
        weights: Float[Tensor, "head row key"],
        places: Mapping[Pattern, Bool[Tensor, "row key"]],
        possible: Float[Tensor, " row"],
    ) -> None:
        cells = torch.stack(list(places.values()))  # -> [pattern row key]
        has, sizes = cells.any(dim=-1), cells.sum(dim=-1)
        found = {
            "weight": cells.flatten(1).double() @ weights.flatten(1).T,
            "peak": cells.flatten(1).double() @ _strongest(weights).flatten(1).T,
            "even": (sizes / possible).sum(dim=1),
            "count": has.sum(dim=1),
        }
        for total, values in found.items():
            sums = getattr(self, total)
            for name, value in zip(places, values, strict=True):
                sums[name] = sums.get(name, 0) + value

    def _add_entropy(
        self,
        entropy: Float[Tensor, "layer row"],
        rows: Bool[Tensor, "batch query"],
        possible: Float[Tensor, " row"],
    ) -> None:
        n_rows = rows.sum(dim=1).double()
        of_pair = entropy.new_zeros(len(entropy), len(rows)).index_add(1, rows.nonzero()[:, 0], entropy)
        found = (
            of_pair.square().sum(dim=1),
            of_pair @ n_rows,
            of_pair.sum(dim=1),
            n_rows.square().sum().expand(len(entropy)),
            possible.log().sum().expand(len(entropy)),
        )
        self.entropy = self.entropy + torch.stack(found)

    def _add_reach(self, weights: Float[Tensor, "head row key"], query: Int[Tensor, " row"]) -> None:
        n_keys = weights.size(2)
        apart = (query[:, None] - torch.arange(n_keys)).abs()
        reach = weights.new_zeros(len(weights), max(n_keys, self.reach.size(1)))
        reach[:, : self.reach.size(1)] += self.reach
        self.reach = reach.index_add(1, apart.flatten(), weights.flatten(1))

    def arrays(self, kind: AttentionKind) -> Iterator[tuple[str, ndarray]]:
        """Yields the sums by their names, as in "cross.weight.previous"."""
        for name, value in vars(self).items():
            if not isinstance(value, dict):
                yield f"{kind}.{name}", np.asarray(value, dtype=float)
                continue
            for pattern, sums in value.items():
                yield f"{kind}.{name}.{pattern}", np.asarray(sums, dtype=float)

    @classmethod
    def read(cls, kind: AttentionKind, arrays: Mapping[str, ndarray]) -> "_Sums":
        """Returns the sums that `arrays` wrote, added up or not."""
        found = cls()
        for full_name, value in arrays.items():
            of, _, name = full_name.partition(".")
            name, _, pattern = name.partition(".")
            if of == kind and pattern:
                getattr(found, name)[pattern] = torch.tensor(value)
            elif of == kind:
                setattr(found, name, torch.tensor(value) if value.ndim else int(value))
        return found

    def mean(self, sums: Mapping[Pattern, Tensor], head: int | None = None) -> dict[Pattern, float]:
        """Divides sums by the number of rows that have such a key; patterns that no row has are left out."""
        return {
            name: float((value if head is None else value[head]) / self.count[name])
            for name, value in sums.items()
            if self.count[name] > 0
        }

    def profiles(self, kind: AttentionKind, model: Transformer) -> list[Profile]:
        """Returns the profiles of the heads of this kind."""
        places = [at for at in heads_of(model) if at.kind == kind]
        rows = max(self.rows, 1)
        return [
            Profile(
                at=at,
                weight=self.mean(self.weight, head),
                peak=self.mean(self.peak, head),
                entropy=float(self.spread[0, head]) / rows,
                evenness=float(self.spread[1, head]) / rows,
                largest=float(self.spread[2, head]) / rows,
                written=self._alignment(0, head),
                read=self._alignment(1, head),
            )
            for head, at in enumerate(places)
        ]

    def layer_entropy(self, n_pairs: int) -> Float[ndarray, "layer 3"]:
        """Returns the mean entropy of each layer, its standard error and the entropy of a uniform head."""
        squares, products, total, squared_rows, uniform = self.entropy
        n_rows = max(self.rows, 1)
        mean = total / n_rows
        residuals = (squares - 2 * mean * products + mean**2 * squared_rows).clamp(min=0)  # of pairs, squared
        factor = n_pairs / (n_pairs - 1) if n_pairs > 1 else math.nan
        return torch.stack((mean, (factor * residuals).sqrt() / n_rows, uniform / n_rows), dim=1).numpy()

    def _alignment(self, rows: int, head: int) -> Alignment | None:
        if not self.n_links:
            return None
        right, found, aligned = self.links[rows, :, head].tolist()
        return Alignment(error_rate=1 - 2 * right / (found + self.n_links), accuracy=right / aligned)


def count_links(
    weights: Float[Tensor, "batch head query key"], rows: Float[Tensor, "batch query target_word"], gold: Gold
) -> Float[Tensor, "3 head"]:
    """Returns right links, found links and aligned words, for each head.

    Between words: summed over the tokens of a source word, averaged over those of a target word (Clark et al., 4.1).
    """
    averaged = rows / rows.sum(dim=1, keepdim=True).clamp(min=1)
    between = averaged.double().transpose(1, 2)[:, None] @ weights.double() @ gold.source.double()[:, None]
    aligned = gold.links.any(dim=-1)  # -> [batch target_word]
    counted = (rows.sum(dim=1) > 0) & aligned.any(dim=-1, keepdim=True)  # a pair without gold links says nothing
    found = counted[:, None] & (between.sum(dim=-1) > 0)
    right = (_strongest(between) * gold.links[:, None]).sum(dim=-1) * found
    return torch.stack((right.sum(dim=(0, 2)), found.sum(dim=(0, 2)), aligned.sum().expand(weights.size(1)))).double()


def _strongest(weights: Float[Tensor, "*row key"]) -> Float[Tensor, "*row key"]:
    """Returns 1 at the largest weight of each row and 0 elsewhere; several that are equal share the 1."""
    equal = weights >= (1 - TIE) * weights.amax(dim=-1, keepdim=True)
    return equal.double() / equal.sum(dim=-1, keepdim=True)
