"""Choosing a translation token by token: what every method shares, and greedy decoding; each is a generator of steps.

Constraints hold for every method: forced tokens, a least length, no repeated n-gram. The key/value cache is used where
it is right. Each step may be recorded; recording never changes the output beyond the rounding between the two attention
paths. Not here: sampling.py, beam.py.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.decoding.cached_steps import StepDecoder
from transformer.decoding.captured_steps import CapturedSteps, captures
from transformer.decoding.carried_steps import CarriedSteps
from transformer.decoding.plain_steps import PlainSteps, serves
from transformer.model.seq2seq import CarriesState, Seq2Seq
from transformer.model.taps import Recorder, Recording, Site, Tap, chain
from transformer.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Rules on what must or may not be written, whatever the model says. The same for every row of a batch."""

    forced: Mapping[int, int] = field(default_factory=dict)
    """The token that must stand at a step, by step; 0 is the first after bos. Goes before every other constraint."""
    min_length: int = 0
    """The fewest tokens of an output, the end token included."""
    no_repeat_ngram: int = 0
    """No n tokens in a row are written twice; 0 allows it."""

    def check(self, model: Seq2Seq, max_length: int) -> None:
        """Refuses what this model cannot write within `max_length` tokens."""
        longest, config = model.config.max_length, model.config
        if not 1 <= max_length <= longest:
            raise ValueError(f"max_length ({max_length}) must lie between 1 and the model's {longest}")
        if not 0 <= self.min_length <= max_length:
            raise ValueError(f"min_length ({self.min_length}) must lie between 0 and max_length ({max_length})")
        if self.no_repeat_ngram < 0:
            raise ValueError(f"no_repeat_ngram ({self.no_repeat_ngram}) must not be negative")
        for step, token in self.forced.items():
            if not 0 <= step < max_length:
                raise ValueError(f"a token is forced at step {step}, but there are only steps 0 to {max_length - 1}")
            if not 0 <= token < config.vocab_size:
                raise ValueError(f"the forced token {token} is not in the vocabulary of {config.vocab_size:,}")
            if token == config.pad_id:
                raise ValueError(f"the forced token {token} fills sentences and cannot be written")

    def allowed(
        self,
        scores: Float[Tensor, "batch vocab"],
        index: int,
        written: Int[Tensor, "batch length"] | None,
        *,
        pad_id: int,
        eos_id: int,
    ) -> Float[Tensor, "batch vocab"]:
        """Logits or log-probabilities of the token at a step, -inf where it may not stand.

        `written` holds the tokens before it (no bos), which only `no_repeat_ngram` reads. Padding is no token to write:
        later steps would not see it, and readers take it for the end. A row in which nothing is left may end.
        """
        if index in self.forced:
            allowed = torch.full_like(scores, -torch.inf)
            allowed[:, self.forced[index]] = scores[:, self.forced[index]]
            return allowed
        barred = (pad_id, eos_id) if index + 1 < self.min_length else (pad_id,)
        allowed = scores.masked_fill(_barred(barred, scores.size(1), scores.device), -torch.inf)
        if 0 < self.no_repeat_ngram <= index:
            assert written is not None, "what was written must be known"
            windows = written.unfold(1, self.no_repeat_ngram, 1)  # -> [batch window n]
            tail = written[:, index - self.no_repeat_ngram + 1 :]
            seen = (windows[:, :, :-1] == tail[:, None]).all(dim=-1)
            banned = torch.zeros_like(scores).scatter_add(1, windows[:, :, -1], seen.to(scores.dtype)) > 0
            allowed[banned] = -torch.inf
            stuck = allowed.isneginf().all(dim=-1)
            allowed[stuck, eos_id] = scores[stuck, eos_id]
        return allowed


@lru_cache(maxsize=64)
def _barred(tokens: tuple[int, ...], vocab_size: int, device: torch.device) -> Bool[Tensor, " vocab"]:
    """True at these tokens."""
    with torch.inference_mode(False):
        return torch.zeros(vocab_size, dtype=torch.bool, device=device).index_fill_(
            0, torch.tensor(tokens, device=device), True
        )


FREE = Constraints()
"""Nothing is forced or forbidden but padding."""


@dataclass(frozen=True)
class Step:
    """One token for each row of the batch, and what the pass that chose it computed.

    Rows that had ended before have left the batch: the pass went over `rows` alone.
    """

    index: int
    """0 for the first token after bos."""
    tokens: Int[Tensor, " batch"]
    """The chosen ids; pad in rows that had ended before."""
    finished: Bool[Tensor, " batch"]
    """Rows that have written eos, this step included."""
    rows: Int[Tensor, " row"]
    """The rows of the source that this step's pass went over; row i of a recording is that of source row `rows[i]`."""
    row_logits: Float[Tensor, "row vocab"]
    """The logits of every token in these rows, as the model gave them: tokens are forbidden or reshaped afterwards."""
    pad_id: int
    computed: int
    """Target positions that this step's pass went through the decoder with."""
    reused: int
    """Earlier target positions whose keys and values came from the cache."""
    recording: Recording | None
    """The wanted sites of this step's pass, interventions included; the first step also holds the encoder's pass."""

    @cached_property
    def row_log_probs(self) -> Float[Tensor, "row vocab"]:
        """Natural log of the probability of every token in these rows."""
        return self.row_logits.log_softmax(dim=-1)

    @property
    def log_probs(self) -> Float[Tensor, "batch vocab"]:
        """`row_log_probs` for every row of the batch; one that had ended before writes pad for certain."""
        if len(self.rows) == len(self.tokens):
            return self.row_log_probs
        everywhere = self.row_logits.new_full((len(self.tokens), self.row_logits.size(1)), -torch.inf)
        everywhere[:, self.pad_id] = 0.0
        everywhere[self.rows] = self.row_log_probs
        return everywhere


def greedy(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    max_length: int,
    constraints: Constraints = FREE,
    tap: Tap | None = None,
    record: Callable[[Site], bool] | None = None,
    cache: bool = True,
) -> Iterator[Step]:
    """Yields the most probable allowed token of each row until all have written eos, or max_length tokens.

    `record` says which sites each step keeps (None: nothing). The cache is left out where model or tap make it wrong;
    each step then passes the whole prefix again. Raises ValueError for a max_length past the model's or constraints
    that it cannot meet.
    """

    def choose(allowed: Tensor) -> Tensor:
        return allowed.max(dim=-1).indices  # twice as fast as argmax on a CPU

    return token_by_token(
        model,
        source,
        source_mask,
        choose,
        max_length=max_length,
        constraints=constraints,
        tap=tap,
        record=record,
        cache=cache,
    )


def token_by_token(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None,
    choose: Callable[[Tensor], Tensor],
    *,
    max_length: int,
    constraints: Constraints,
    tap: Tap | None,
    record: Callable[[Site], bool] | None,
    cache: bool,
) -> Iterator[Step]:
    """The steps of a method that keeps one output a row.

    `choose` turns logits [row vocab], -inf where a constraint forbids, into the tokens that it chose.
    """
    constraints.check(model, max_length)
    pad, eos = model.config.pad_id, model.config.eos_id
    search = NextToken(model, source, source_mask, max_length=max_length, tap=tap, record=record, cache=cache)
    n_rows = source.size(0)
    rows = torch.arange(n_rows, device=source.device)
    finished = torch.zeros(n_rows, dtype=torch.bool, device=source.device)
    written = source.new_empty(n_rows, 0) if constraints.no_repeat_ngram else None
    chosen = source.new_full((n_rows,), model.config.bos_id)
    for index in range(max_length):
        reused = search.reusable
        logits, recording = search.logits(chosen)
        chosen = choose(constraints.allowed(logits, index, written, pad_id=pad, eos_id=eos))
        ended = chosen == eos
        if rows.size(0) == n_rows:
            tokens, finished = chosen, ended
        else:
            tokens = source.new_full((n_rows,), pad).scatter(0, rows, chosen)
            finished = finished.scatter(0, rows, ended)
        yield Step(index, tokens, finished, rows, logits, pad, index + 1 - reused, reused, recording)
        written = None if written is None else torch.cat((written, chosen[:, None]), dim=1)
        if eos in chosen.tolist():
            kept = (~ended).nonzero()[:, 0]
            if not kept.size(0):
                return
            rows, chosen = rows[kept], chosen[kept]
            written = None if written is None else written[kept]
            search.rows(kept)


class NextToken:
    """The model asked again and again for the next token: encodes once, caches where that is right, records.

    Where nobody looks, the plain decoder answers for the models that it serves. Rows may be reordered, dropped and
    repeated between two questions.
    """

    def __init__(
        self,
        model: Seq2Seq,
        source: Int[Tensor, "batch source"],
        source_mask: Bool[Tensor, "batch source"] | None,
        *,
        max_length: int,
        tap: Tap | None,
        record: Callable[[Site], bool] | None,
        cache: bool,
        per_source: int = 1,
    ) -> None:
        """`per_source` rows side by side belong to each source."""
        self._model, self._tap, self._record = model, tap, record
        self._recorder = None if record is None else Recorder(record)
        self._source_mask = source != model.config.pad_id if source_mask is None else source_mask
        self._steps: PlainSteps | CapturedSteps | StepDecoder | CarriedSteps | None = None
        self._prefix: Tensor | None = None
        reusable = cache and not model.training and not model.needs_recomputation(tap)
        if reusable and tap is None and record is None and isinstance(model, Transformer) and serves(model):
            kind = CapturedSteps if captures(model, source.size(0) * per_source, max_length) else PlainSteps
            self._steps = kind(model, source, self._source_mask, capacity=max_length, per_source=per_source)
            return
        with torch.no_grad():
            self._memory = model.encode(source, self._source_mask, tap=chain(tap, self._recorder))
            if per_source > 1:  # each row has a source of its own
                self._memory = self._memory.repeat_interleave(per_source, dim=0)
                self._source_mask = self._source_mask.repeat_interleave(per_source, dim=0)
            read = self._memory, self._source_mask
            if reusable and isinstance(model, Transformer):
                self._steps = StepDecoder(model, *read, capacity=max_length)
            elif reusable and isinstance(model, CarriesState):
                self._steps = CarriedSteps(model, *read, capacity=max_length)
            else:
                self._prefix = source.new_empty(self._memory.size(0), 0)

    @property
    def reusable(self) -> int:
        """Target positions in the cache."""
        return 0 if self._steps is None else self._steps.length

    @torch.no_grad()
    def logits(self, newest: Int[Tensor, " row"]) -> tuple[Float[Tensor, "row vocab"], Recording | None]:
        """Logits of the token after these, which follow those given before (bos is the first), and what was recorded
        since the last question."""
        tap = chain(self._tap, self._recorder)
        if self._steps is not None:
            found = self._steps.logits(newest, tap)
        else:
            assert self._prefix is not None, "a model without a cache passes the whole prefix"
            self._prefix = torch.cat((self._prefix, newest[:, None]), dim=1)
            states = self._model.decode(self._prefix, self._memory, self._source_mask, tap=tap)
            found = self._model.project(states[:, -1], tap=tap)
        recording = None if self._recorder is None else self._recorder.recording
        self._recorder = None if self._record is None else Recorder(self._record)
        return found, recording

    @torch.no_grad()
    def rows(self, kept: Int[Tensor, " row"], *, same_sources: bool = False) -> None:
        """Goes on with these rows. `same_sources`: each stands where another of the same source stood."""
        if self._steps is not None:
            self._steps.rows(kept, same_sources=same_sources)
            return
        assert self._prefix is not None, "a model without a cache passes the whole prefix"
        self._prefix = self._prefix[kept]
        if not same_sources:
            self._memory, self._source_mask = self._memory[kept], self._source_mask[kept]


def translate_ids(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    max_length: int,
) -> list[list[int]]:
    """The greedy output of each row, without eos and padding."""
    return outputs(model, greedy(model, source, source_mask, max_length=max_length))


def outputs(model: Seq2Seq, steps: Iterator[Step]) -> list[list[int]]:
    """Returns what each row wrote, without eos and padding."""
    ends = (model.config.eos_id, model.config.pad_id)
    return [_until(row, ends) for row in torch.stack([step.tokens for step in steps], dim=1).tolist()]


@torch.no_grad()
def teacher_forced_log_probs(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    target: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    tap: Tap | None = None,
) -> Float[Tensor, "batch target vocab"]:
    """Log-probabilities of every token at each position of `target` (no bos), all from one pass.

    Each position is given the tokens of `target` before it; without a causal mask, in model or by tap, those after it
    too, among them the one that it is to predict: see `log_probs_on_prefixes`.
    """
    bos = target.new_full((target.size(0), 1), model.config.bos_id)
    logits = model(source, torch.cat((bos, target[:, :-1]), dim=1), source_mask, tap=tap)
    return logits.log_softmax(dim=-1)


def log_probs_on_prefixes(
    model: Seq2Seq,
    source: Int[Tensor, "batch source"],
    target: Int[Tensor, "batch target"],
    source_mask: Bool[Tensor, "batch source"] | None = None,
    *,
    tap: Tap | None = None,
) -> Float[Tensor, "batch target vocab"]:
    """Log-probabilities of every token at each position of `target` (no bos), given the tokens before it and no others.

    Where model or tap let a position see later ones, each comes from a pass over what stands before it, as in decoding.
    """
    if not model.needs_recomputation(tap):
        return teacher_forced_log_probs(model, source, target, source_mask, tap=tap)
    ends = range(1, target.size(1) + 1)
    rows = [teacher_forced_log_probs(model, source, target[:, :end], source_mask, tap=tap)[:, -1] for end in ends]
    return torch.stack(rows, dim=1)


def _until(ids: list[int], ends: tuple[int, ...]) -> list[int]:
    stop = next((i for i, token in enumerate(ids) if token in ends), len(ids))
    return ids[:stop]
