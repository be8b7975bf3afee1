"""Beam search: several hypotheses a sentence, the best of all their continuations kept at each step (section 6.1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.config import DecodeConfig, LengthNorm
from transformer.decoding.greedy import FREE, Constraints, NextToken
from transformer.model.seq2seq import Seq2Seq
from transformer.model.taps import Recording, Site, Tap

GOES_ON, ENDED, PRUNED = 0, 1, 2
"""The fates of a candidate: it is extended at the next step, is complete, or is dropped for better ones."""


@dataclass(frozen=True)
class Hypothesis:
    """One output of the search."""

    ids: tuple[int, ...]
    """The tokens written, with eos where it has one."""
    log_prob: float
    """Natural log of its probability: the sum over its tokens, as a teacher-forced pass gives it."""
    score: float
    """`log_prob` divided by the length norm."""
    rows: tuple[int, ...]
    """The row of each step's pass (and recording) from which its token was chosen."""
    ended: bool
    """False if it was cut off at the length limit before eos."""

    @property
    def text_ids(self) -> tuple[int, ...]:
        """The tokens written, without eos."""
        return self.ids[:-1] if self.ended else self.ids


@dataclass(frozen=True)
class BeamStep:
    """One pass over all hypotheses, and what became of their best continuations.

    Sentences whose search is over have left the batch; row `i * size + b` of the pass is beam b of active sentence i.
    """

    index: int
    """0 for the first token after bos."""
    sentences: Int[Tensor, " active"]
    """The rows of the source whose search was still going on."""
    history: Int[Tensor, "active beam written 2"]
    """What each hypothesis had written before this step: the tokens, and the row of the pass that each came from."""
    before: Float[Tensor, "active beam"]
    """The cumulative log-probability of each; -inf for places that hold no hypothesis."""
    row_log_probs: Float[Tensor, "row vocab"]
    """Natural log of the probability of every next token in each row of the pass, as the model gave it."""
    parents: Int[Tensor, "active candidate"]
    """The beam that each candidate continues. Candidates are the best `2 * size` continuations, best first."""
    tokens: Int[Tensor, "active candidate"]
    """The token that it adds."""
    totals: Float[Tensor, "active candidate"]
    """Its cumulative log-probability; -inf where there is no such continuation."""
    divisor: float
    """The length norm of the candidates."""
    fates: Int[Tensor, "active candidate"]
    """GOES_ON, ENDED or PRUNED."""
    finished: tuple[tuple[Hypothesis, ...], ...]
    """The complete hypotheses of every source sentence up to now, the best first, at most `size`. After the
    last step these are the results; those cut off at the length limit stand among them."""
    computed: int
    """Target positions that this step's pass went through the decoder with, in every row."""
    reused: int
    """Earlier target positions whose keys and values came from the cache."""
    recording: Recording | None
    """The wanted sites of this step's pass; `Hypothesis.rows` says which row is whose."""

    @property
    def prefixes(self) -> Int[Tensor, "active beam written"]:
        """The tokens that each hypothesis had written before this step."""
        return self.history[..., 0]

    @property
    def alive(self) -> Bool[Tensor, "active beam"]:
        """False for places that hold no hypothesis: all but one at the first step."""
        return ~self.before.isneginf()

    @property
    def log_probs(self) -> Float[Tensor, "active beam vocab"]:
        """`row_log_probs`, by sentence."""
        return self.row_log_probs.unflatten(0, self.before.shape)

    @property
    def scores(self) -> Float[Tensor, "active candidate"]:
        """`totals` divided by the length norm."""
        return self.totals / self.divisor


def length_norm(length: int, alpha: float, norm: LengthNorm) -> float:
    """Returns the divisor of a hypothesis of this many tokens (eos included); 1 for alpha 0.

    paper: ((5 + length) / 6) ** alpha (Wu et al., 2016, which section 6.1 follows). length: length ** alpha (fairseq,
    transformers, CTranslate2).
    """
    return ((5 + length) / 6 if norm == "paper" else length) ** alpha


def beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    size: int,
    max_length: int,
    alpha: float = 0.6,
    norm: LengthNorm = "paper",
    early_stopping: bool = False,
    constraints: Constraints = FREE,
    tap: Tap | None = None,
    record: Callable[[Site], bool] | None = None,
    cache: bool = True,
) -> Iterator[BeamStep]:
    """Yields the steps of a search with `size` hypotheses a sentence; the last step's `finished` are the results.

    A sentence's search is over when `size` hypotheses have ended and no other can still overtake the worst of them,
    whatever follows; with `early_stopping` as soon as `size` have ended. The cache, constraints and recording
    are as in `greedy`, which a beam of 1 equals that stops early or has alpha 0. ValueError for a size or alpha that
    makes no search.
    """
    DecodeConfig(method="beam", beam=size, alpha=alpha, length_norm=norm)  # refuses what makes no search
    constraints.check(model, max_length)
    config, batch = model.config, source.size(0)
    ask = NextToken(
        model, source, source_mask, max_length=max_length, tap=tap, record=record, cache=cache, per_source=size
    )
    active = torch.arange(batch, device=source.device)
    newest = source.new_full((batch * size,), config.bos_id)
    history = source.new_zeros((batch, size, 0, 2))
    totals = torch.full((batch, size), -torch.inf, device=source.device, dtype=model.projection.weight.dtype)
    totals[:, 0] = 0.0
    pools: list[list[Hypothesis]] = [[] for _ in range(batch)]
    usual = torch.tensor([GOES_ON] * size + [PRUNED] * size, device=source.device)
    firsts = size * active[:, None]
    for index in range(max_length):
        reused = ask.reusable
        logits, recording = ask.logits(newest)
        log_probs = logits.log_softmax(dim=-1)
        written = history[..., 0].flatten(0, 1) if constraints.no_repeat_ngram else None
        allowed = constraints.allowed(log_probs, index, written, pad_id=config.pad_id, eos_id=config.eos_id)
        sums = totals[:, :, None] + allowed.view(*totals.shape, -1)  # -> [active beam vocab]
        best, place = sums.flatten(1).topk(2 * size, dim=1)
        parents = place.div(config.vocab_size, rounding_mode="floor")
        tokens = place.remainder(config.vocab_size)
        divisor = length_norm(index + 1, alpha, norm)
        ends = tokens == config.eos_id
        simple = not bool((ends | best.isneginf()).any())  # nothing ends and no place is dead: the best `size` go on
        fates = usual.expand(active.size(0), -1) if simple else _fates(best, ends, size)
        if index + 1 == max_length or not simple:
            completed = fates != PRUNED if index + 1 == max_length else fates == ENDED
            sentences, *held = (x.cpu() for x in (active, parents, tokens, best, history))  # a GPU is waited for once
            for i, c in completed.nonzero().tolist():
                parent, token, total = (x[i, c].item() for x in held[:3])
                ids, rows = held[3][i, parent].T.tolist()
                new = Hypothesis(
                    (*ids, token),
                    total,
                    total / divisor,
                    (*rows, i * size + parent),
                    ended=token == config.eos_id,
                )
                _keep(pools[int(sentences[i])], new, size)
        yield BeamStep(
            index,
            active,
            history,
            totals,
            log_probs,
            parents,
            tokens,
            best,
            divisor,
            fates,
            tuple(map(tuple, pools)),
            index + 1 - reused,
            reused,
            recording,
        )
        # The best `size` that go on; dead places fill up where there are fewer.
        if not simple:
            chosen = (fates != GOES_ON).int().argsort(dim=1, stable=True)
            best = best.masked_fill(fates != GOES_ON, -torch.inf).gather(1, chosen)
            parents, tokens = parents.gather(1, chosen), tokens.gather(1, chosen)
        totals, kept_tokens = best[:, :size], tokens[:, :size]
        rows = parents[:, :size] + firsts[: active.size(0)]  # -> [active beam], rows of this step's pass
        same_sources = True
        if not simple or any(len(pool) >= size for pool in pools):
            bounds = (totals.amax(dim=1) / length_norm(max_length, alpha, norm)).tolist()
            going = [
                i
                for i, (sentence, bound) in enumerate(zip(active.tolist(), bounds, strict=True))
                if not _over(pools[sentence], bound, size, early_stopping)
            ]
            if not going:
                return
            if not (same_sources := len(going) == active.size(0)):
                kept = torch.tensor(going, device=source.device)
                rows, kept_tokens, totals, active = rows[kept], kept_tokens[kept], totals[kept], active[kept]
        from_rows, newest = rows.flatten(), kept_tokens.flatten()
        ask.rows(from_rows, same_sources=same_sources)
        added = torch.stack((kept_tokens, rows), dim=-1)[:, :, None]  # -> [active beam 1 2]
        history = torch.cat((history.flatten(0, 1)[from_rows].view(*rows.shape, -1, 2), added), dim=2)


def _fates(totals: Tensor, ends: Tensor, size: int) -> Tensor:
    """GOES_ON for the best `size` that do not end, ENDED for those that end and rank among the best `size` of all."""
    fates = torch.where(ends, ENDED, torch.where((~ends).cumsum(dim=1) <= size, GOES_ON, PRUNED))
    fates[:, size:].masked_fill_(ends[:, size:], PRUNED)
    return fates.masked_fill_(totals == -torch.inf, PRUNED)


def _keep(pool: list[Hypothesis], new: Hypothesis, size: int) -> None:
    """Puts a hypothesis in its place among the best `size`."""
    pool.append(new)
    pool.sort(key=lambda hypothesis: -hypothesis.score)
    del pool[size:]


def _over(pool: list[Hypothesis], bound: float, size: int, early_stopping: bool) -> bool:
    """Tells whether a sentence's search is over, given the best score that any of its hypotheses may still reach."""
    if bound == -torch.inf:
        return True
    return len(pool) >= size and (early_stopping or bound <= pool[-1].score)
