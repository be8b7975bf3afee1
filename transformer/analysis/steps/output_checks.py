"""Checks of whole outputs: branches, searches, samples, and references read teacher-forced and free-running.

Everything is read again in double precision, on the explicit path and without a cache; searches, samples and outputs
are followed in plain loops.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.lengths import Z95
from transformer.analysis.steps.checks import sampling_reference
from transformer.analysis.steps.exposure_bias import MIN_COUNT, AtPosition, ReferenceLosses
from transformer.analysis.steps.samples import Sample, Sampling
from transformer.interventions import Intervention, compile_interventions
from transformer.model.precise import in_double
from transformer.model.taps import Recorder, Recording, chain
from transformer.model.transformer import Transformer
from transformer.text.pairs import Pair
from transformer.text.tokenizer import Tokenizer

CLOSE = 2e-3
"""The largest deviation of a log-probability in float32 from one in double precision."""
TIE = 1e-4
"""The difference of log-probabilities below which either may be ranked first."""
AGAIN = "read again in double precision, on the explicit path, without a cache"


class SlowReader:
    """A copy of a model in double precision that reads every prefix of a source's output from its beginning."""

    def __init__(self, model: Transformer, switches: Sequence[Intervention]) -> None:
        self.eos, self.pad, self.max_length = model.config.eos_id, model.config.pad_id, model.config.max_length
        self._precise = in_double(model)
        self._tap = compile_interventions(switches, self._precise) or Recorder(lambda site: False)
        self._one_pass = not self._precise.needs_recomputation(self._tap)

    @torch.no_grad()
    def next_log_probs(
        self, source: Sequence[int], prefixes: Sequence[Sequence[int]]
    ) -> Float[ndarray, "prefix vocab"]:
        """Returns the log-probabilities of the token after each of these prefixes (no bos), all equally long."""
        bos = self._precise.config.bos_id
        ids = torch.tensor([[bos, *prefix] for prefix in prefixes])
        logits = self._precise(torch.tensor([list(source)]).expand(len(ids), -1), ids, tap=self._tap)
        return logits[:, -1].log_softmax(dim=-1).numpy()

    @torch.no_grad()
    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> Float[ndarray, "step vocab"]:
        """Returns what each token of an output was chosen from, given the tokens before it and no others."""
        if not self._one_pass:
            return np.concatenate([self.next_log_probs(source, [target[:step]]) for step in range(len(target))])
        ids = torch.tensor([[self._precise.config.bos_id, *target[:-1]]])
        return self._precise(torch.tensor([list(source)]), ids, tap=self._tap)[0].log_softmax(dim=-1).numpy()

    @torch.no_grad()
    def recording(self, source: Sequence[int], target: Sequence[int]) -> Recording:
        """Returns everything in the decoder while it reads an output, in one pass."""
        recorder = Recorder(lambda site: site.stack == "decoder")
        ids = torch.tensor([[self._precise.config.bos_id, *target[:-1]]])
        self._precise(torch.tensor([list(source)]), ids, tap=chain(self._tap, recorder))
        return recorder.recording

    def greedy(self, source: Sequence[int], most: int) -> list[int]:
        """Returns the most probable token after token, up to an end mark or `most` tokens."""
        written: list[int] = []
        while len(written) < most and written[-1:] != [self.eos]:
            row = self.next_log_probs(source, [written])[0]
            row[self.pad] = -math.inf
            written.append(int(row.argmax()))
        return written


def check_labels(tokenizer: Tokenizer, ids: Sequence[int], tokens: Sequence[str]) -> Check:
    """Checks that tokens are written as the tokenizer writes these ids."""
    wrong = sum(tokenizer.piece(token) != label for token, label in zip(ids, tokens, strict=True))
    return Check("Every label is that of its token", float(wrong), 0.0, f"{len(ids)} labels compared; wrong ones")


def check_written(
    reader: SlowReader,
    source: Sequence[int],
    target: Sequence[int],
    forced: Sequence[tuple[int, int]],
    probabilities: Float[ndarray, " step"],
    log_prob: float,
) -> Iterator[Check]:
    """Checks an output's probabilities and their sum, and that every token is the most probable or was forced."""
    rows = reader.log_probs(source, target)
    own = rows[np.arange(len(target)), list(target)]
    claim = "Each token's probability is the model's, given the tokens before it"
    yield agree(claim, probabilities, np.exp(own), 1e-4, f"the output {AGAIN}")
    yield agree("The output's log-probability is their sum", log_prob, math.fsum(own), 1e-2, "logarithms summed")
    rows[:, reader.pad] = -math.inf
    gaps = rows.max(axis=1) - own
    wrong = sum(
        (step, token) not in forced if gap > TIE else False
        for step, (token, gap) in enumerate(zip(target, gaps.tolist(), strict=True))
    )
    how = f"{len(target)} tokens compared with all others, {len(forced)} forced; neither forced nor most probable"
    yield Check("Every token is the most probable one, or was forced", float(wrong), 0.0, how)
    lost = sum(step < len(target) and target[step] != token for step, token in forced)
    yield Check("Forced tokens stand where they were forced", float(lost), 0.0, "compared one by one; wrong ones")


def check_changes(before: Sequence[str], after: Sequence[str], changed: Bool[ndarray, " step"]) -> Check:
    """Checks that the marks are those of an alignment with the fewest edits that keeps as many tokens as any such."""
    fewest, most_kept = _fewest_edits(before, after)
    edits, kept = _fewest_edits(before, after, changed.tolist())
    apart = edits - fewest + abs(most_kept - kept)
    how = f"edits counted with these {int(changed.sum())} marks and without; more edits, and tokens needlessly marked"
    return Check("The fewest edits change the marked tokens, and no others", apart, 0.0, how)


def _fewest_edits(
    before: Sequence[str], after: Sequence[str], changed: Sequence[bool] | None = None
) -> tuple[float, float]:
    """Returns the fewest substitutions, insertions and deletions between two outputs, and the most tokens they keep.

    With `changed` they keep the tokens of `after` that it does not mark, and no others; infinite where that cannot be.
    """
    # Row by row as in Wagner and Fischer (1974): for each beginning of `before`, edits, and minus the tokens kept.
    counted = [(float(i), 0.0) for i in range(len(before) + 1)]
    for j, token in enumerate(after):
        may_change, may_stay = changed is None or changed[j], changed is None or not changed[j]
        above, counted = counted, [(counted[0][0] + 1 if may_change else math.inf, 0.0)]
        for i, own in enumerate(before):
            ways = [(counted[i][0] + 1, counted[i][1])]
            if may_change:
                ways += [(edits + 1, kept) for edits, kept in (above[i], above[i + 1])]
            if may_stay and own == token:
                ways.append((above[i][0], above[i][1] - 1))
            counted.append(min(ways))
    edits, kept = counted[-1]
    return edits, -kept


def check_samples(
    reader: SlowReader,
    source: Sequence[int],
    samples: Sequence[Sample],
    sampling: Sampling,
    *,
    n: int,
    seed: int,
    whose: str = "",
) -> Iterator[Check]:
    """Checks the log-probability of every output, and counts samples drawn again in a plain loop."""
    totals = []
    for sample in samples:
        rows = reader.log_probs(source, sample.ids)
        totals.append(math.fsum(rows[np.arange(len(sample.ids)), list(sample.ids)]))
    claim = f"{whose}An output's log-probability is the sum over its tokens, each given those before it"
    how = f"{len(samples)} outputs {AGAIN}"
    yield agree(claim, [sample.log_prob for sample in samples], totals, 1e-2, how)
    counted = sum(sample.count for sample in samples)
    yield agree(f"{whose}All samples are counted", counted, n, 0, "counts summed")
    again = Counter(_drawn_again(reader, source, sampling, n=n, seed=seed))
    shown = {sample.ids: sample.count for sample in samples}
    differ = sum(abs(again[ids] - shown.get(ids, 0)) for ids in again.keys() | shown.keys()) / 2
    how = f"{n} samples drawn again from the same seed, {AGAIN}; those that differ, of which rounding explains one"
    yield Check(f"{whose}The count of each output", differ, 1.0, how)


def _drawn_again(
    reader: SlowReader, source: Sequence[int], sampling: Sampling, *, n: int, seed: int
) -> list[tuple[int, ...]]:
    """Draws samples with the same random numbers: all that are under way draw together, in their order."""
    generator = torch.Generator().manual_seed(seed)
    written: list[list[int]] = [[] for _ in range(n)]
    going = list(range(n))
    while going and len(written[going[0]]) < reader.max_length:
        different = sorted({tuple(written[row]) for row in going})
        rows = dict(zip(different, reader.next_log_probs(source, different), strict=True))
        chances = {prefix: sampling_reference(row, sampling, reader.pad).chances for prefix, row in rows.items()}
        odds = torch.from_numpy(np.stack([chances[tuple(written[row])] for row in going])).float()
        for row, token in zip(going, torch.multinomial(odds, 1, generator=generator)[:, 0].tolist(), strict=True):
            written[row].append(token)
        going = [row for row in going if written[row][-1] != reader.eos]
    return [tuple(row) for row in written]


def check_greedy(reader: SlowReader, source: Sequence[int], written: Sequence[int], whose: str = "") -> Iterator[Check]:
    """Checks that an output is the most probable token after token, up to its end."""
    rows = reader.log_probs(source, written)
    rows[:, reader.pad] = -math.inf
    gap = float((rows.max(axis=1) - rows[np.arange(len(written)), list(written)]).max())
    yield Check(f"{whose}The model's own words are its most probable", gap, TIE, "nats below the best, at most")
    ends = written[-1] == reader.eos or len(written) == reader.max_length
    yield Check(
        f"{whose}They go on to an end mark or the length limit",
        float(not ends),
        0.0,
        "the last one looked at; 1 where they do not",
    )


def check_reference_losses(
    reader: SlowReader, source: Sequence[int], shown: ReferenceLosses, whose: str = ""
) -> Iterator[Check]:
    """Checks a reference's losses, after its own words and after what the model wrote."""
    ids, written = list(shown.reference), list(shown.written)
    rows = reader.log_probs(source, ids)
    claim = f"{whose}Teacher-forced, a token's loss is −ln p after the reference's words"
    yield agree(claim, shown.forced_loss, -rows[np.arange(len(ids)), ids], CLOSE, f"the reference {AGAIN}")
    rows[:, reader.pad] = -math.inf
    if len(shown.likeliest) != len(ids):
        yield Check("Every position has a most probable token", math.inf, 0.0, f"{len(shown.likeliest)} of {len(ids)}")
        return
    gap = float((rows.max(axis=1) - rows[np.arange(len(ids)), list(shown.likeliest)]).max())
    yield Check(
        f"{whose}The most probable tokens are the model's", gap, TIE, "compared with all others; nats below the best"
    )
    free = reader.log_probs(source, written)
    again = np.full(len(ids), np.nan)
    length = min(len(ids), len(free))
    again[:length] = -free[np.arange(length), ids[:length]]
    claim = f"{whose}Free-running, it is −ln p after the model's own words"
    yield agree(claim, shown.free_loss, again, CLOSE, f"the model's own output {AGAIN}")
    yield from check_greedy(reader, source, written, whose)


def check_exposure(
    reader: SlowReader, pairs: Sequence[Pair], tokenizer: Tokenizer, shown: Sequence[AtPosition]
) -> Iterator[Check]:
    """Checks exposure bias at every position: pairs are read one by one, and each output is written in a plain loop."""
    forced_hits: dict[int, list[bool]] = {}
    free_hits: dict[int, list[bool]] = {}
    losses: dict[int, list[tuple[float, float]]] = {}
    for pair in pairs:
        source = [*tokenizer.encode(pair.source), reader.eos]
        reference = [*tokenizer.encode_target(pair.target), reader.eos]
        forced = reader.log_probs(source, reference)
        written = reader.greedy(source, len(reference))
        free = reader.log_probs(source, written)
        forced[:, reader.pad] = -math.inf
        for position, token in enumerate(reference):
            right = int(forced[position].argmax()) == token
            forced_hits.setdefault(position, []).append(right)
            # A word after the end of the model's own output is never right.
            goes_on = position < len(written)
            free_hits.setdefault(position, []).append(goes_on and written[position] == token)
            if goes_on:
                pair_of = -float(forced[position, token]), -float(free[position, token])
                losses.setdefault(position, []).append(pair_of)
    kept = [position for position in sorted(losses) if len(forced_hits[position]) >= MIN_COUNT]
    how = f"{len(pairs)} pairs {AGAIN}, one by one"
    yield agree("Every position that enough pairs have is shown", [at.position for at in shown], kept, 0, how)
    if [at.position for at in shown] != kept:
        return
    again = [_statistics(forced_hits[at], free_hits[at], losses[at]) for at in kept]
    for column, (name, claim, tolerance) in enumerate(_EXPOSURE):
        yield agree(claim, [getattr(at, name) for at in shown], [each[column] for each in again], tolerance, how)


_EXPOSURE = (
    ("count", "The number of references at each position", 0.0),
    ("going", "The number of outputs that go on at it", 0.0),
    ("forced_right", "The number of right tokens after the reference's words", 0.0),
    ("free_right", "The number of right tokens after the model's own words", 0.0),
    ("forced_loss", "The mean loss after the reference's words", CLOSE),
    ("bias", "Exposure bias at each position", CLOSE),
    ("bias_error", "Half its 95 % interval", CLOSE),
)


def _statistics(forced: Sequence[bool], free: Sequence[bool], losses: Sequence[tuple[float, float]]) -> tuple:
    n = len(losses)
    gaps = [after_own - after_right for after_right, after_own in losses]
    mean = math.fsum(gaps) / n
    spread = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / (n - 1)) if n > 1 else math.nan
    loss = math.fsum(after_right for after_right, _ in losses) / n
    return len(forced), n, sum(forced), sum(free), loss, mean, Z95 * spread / math.sqrt(n)
