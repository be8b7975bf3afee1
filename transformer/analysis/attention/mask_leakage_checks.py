"""Checks of what masks hide and of what leaks without them: passes in double precision, cells summed one by one."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from transformer.analysis.attention.mask_leakage import (
    SIDES,
    EmptyRow,
    Forcing,
    Leak,
    Reading,
    Sources,
    padded,
    shares_of,
)
from transformer.analysis.attention.mask_reference import hides
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import MISSED, most_missed
from transformer.decoding.greedy import greedy, log_probs_on_prefixes
from transformer.interventions import DisableMask, Intervention, compile_interventions
from transformer.model.attention import explicit_attention
from transformer.model.kinds import AttentionKind
from transformer.model.precise import in_double
from transformer.model.taps import Recorder, Tap, chain
from transformer.model.transformer import Transformer

_ROUNDING = 1e-4


def check_reading(model: Transformer, leak: Leak, reading: Reading, off: Sequence[Intervention]) -> Iterator[Check]:
    """Checks outputs, loss and attention without these masks by passes in double precision, cell by cell."""
    precise, pad = in_double(model), model.config.pad_id
    recorder = Recorder(lambda site: site.tensor == "weights")
    source, inputs = (torch.tensor(side.tolist()) for side in (leak.source, leak.target))
    tap = chain(compile_interventions(off, precise), recorder)
    with torch.no_grad():
        rows = precise(source, inputs, source != pad, inputs != pad, tap=tap).log_softmax(dim=-1).numpy()
    written = leak.intact.outputs
    losses = [-math.fsum(row[step, token] for step, token in enumerate(ids)) / len(ids)
              for row, ids in zip(rows, written, strict=True)]  # fmt: skip
    which = "without these masks" if off else "with all masks"
    how = f"{len(written)} sentences in one pass in double precision, {which}"
    mean = math.fsum(loss * len(ids) for loss, ids in zip(losses, written, strict=True)) / sum(map(len, written))
    shown = [*reading.losses, reading.loss]
    yield agree(f"The loss of each sentence and of the batch {which}", shown, [*losses, mean], 1e-3, how)
    recorded = [
        (AttentionKind.at(site.stack, site.sublayer or ""), weights.numpy())
        for site, weights in recorder.recording.items()
    ]
    again, n_rows = [], 0
    for share in shares_of(model.config):
        of_kind = [weights for kind, weights in recorded if kind is share.kind]
        fallen = []
        for sentence in range(len(written)):
            asking, asked = (getattr(leak, side)[sentence].tolist() for side in SIDES[share.kind])
            for query, token in enumerate(asking):
                if share.rule is None:
                    hidden = [key for key, other in enumerate(asked) if other == pad]
                else:
                    name, real = share.rule.name, [key for key, other in enumerate(asked) if other != pad]
                    hidden = [key for key in real if hides(name, model.config, query, key)]
                if token != pad and (hidden or share.rule is None):
                    rows = (weights[sentence, :, query] for weights in of_kind)
                    fallen += [float(row[:, hidden].sum(axis=-1).mean()) for row in rows]
        again.append(math.fsum(fallen) / len(fallen) if fallen else 0.0)
        n_rows += len(fallen)
    how = f"the same pass, {n_rows:,} rows of each head summed one by one"
    claim = f"Attention on what masks hide {which}"
    yield agree(claim, list(reading.shares.values()), again, _ROUNDING, how)
    missed = _most_missed(precise, source, reading.outputs, off)
    yield Check(f"Each token of the outputs {which} is the most probable one", missed, _ROUNDING, MISSED)


@torch.no_grad()
def _most_missed(
    precise: Transformer, source: Sources, outputs: Sequence[Sequence[int]], off: Sequence[Intervention]
) -> float:
    """Returns `most_missed` over all outputs of a batch, each token given those before it."""
    pad, tap = precise.config.pad_id, compile_interventions(off, precise)
    rows = log_probs_on_prefixes(precise, source, padded(outputs, pad), source != pad, tap=tap).exp().numpy()
    each = [(row[: len(ids)], row[np.arange(len(ids)), list(ids)]) for row, ids in zip(rows, outputs, strict=True)]
    return max(most_missed(row, own, precise) for row, own in each)


def check_forcing(model: Transformer, source: Sequence[int], shown: Forcing) -> Iterator[Check]:
    """Checks how far one pass and decoding differ, and whether earlier positions see the last token."""
    ids = torch.tensor([list(source)])
    steps = list(greedy(model, ids, max_length=model.config.max_length, cache=False))
    target = [int(step.tokens[0]) for step in steps]
    precise = in_double(model)
    unmask = compile_interventions([DisableMask("causal")] if model.config.causal_mask else [], precise)

    def logits(inputs: Sequence[int], tap: Tap | None = None) -> np.ndarray:
        with torch.no_grad():
            return precise(ids, torch.tensor([[model.config.bos_id, *inputs]]), tap=tap)[0].numpy()

    forced = np.exp(_log_softmax(logits(target[:-1])))
    apart = max(
        float(abs(row - step.log_probs[0].double().exp().numpy()).max())
        for row, step in zip(forced, steps, strict=True)
    )
    how = "one pass in double precision against decoding without a cache"
    yield agree("The largest difference between one pass and decoding", shown.from_steps, apart, _ROUNDING, how)
    inputs = target[:-1] if len(target) > 1 else target
    other = next(i for i in range(4, model.config.vocab_size) if i != inputs[-1])
    pairs = [
        [_log_softmax(logits([*inputs[:-1], last], tap)) for last in (inputs[-1], other)] for tap in (None, unmask)
    ]
    again = [float(abs(a - b)[:-1].max()) for a, b in pairs]
    yield agree(
        "The largest move of earlier log-probabilities by another last token",
        [shown.masked_change, shown.unmasked_change],
        again,
        _ROUNDING * max(10.0, float(abs(pairs[1][0]).max())),
        "with this model's masks and without a causal one, in double precision",
    )
    moved = 0.0
    for token in range(4, min(12, model.config.vocab_size)):
        before, after = logits(inputs), logits([*inputs[:-1], token])
        moved = max(moved, float(abs(before[:-1] - after[:-1]).max()))
    if model.config.causal_mask:
        how = "up to eight other tokens in the last place; the largest move of any earlier logit"
        yield Check("No other last token moves an earlier position", moved, 0.0, how)
    else:
        how = "the same with eight tokens in the last place; 0 where earlier logits move as the text says"
        yield Check(
            "Another last token moves earlier positions", float(moved == 0 or shown.masked_change == 0), 0.0, how
        )


def check_empty_row(model: Transformer, source: Sequence[int], row: EmptyRow) -> Iterator[Check]:
    """Checks the three readings of softmax by its definition, and that the block's output is W_O's bias."""
    n = len(source)
    with np.errstate(invalid="ignore"):
        endless = np.exp(np.full(n, -np.inf))
        plain = endless / endless.sum()
    yield agree("With −∞ everywhere softmax is 0 / 0", row.plain, plain, 0, f"{n} times e^−∞, divided by their sum")
    yield agree("With the lowest number it spreads evenly", row.floored, [1 / n] * n, 1e-6, f"1/{n} for each key")
    yield agree("Here every weight is 0", row.here, [0.0] * n, 0, f"{n} keys")
    recorder = Recorder(lambda site: str(site) == "encoder.0.self.output")
    ids = torch.tensor([list(source)])
    with torch.no_grad():
        in_double(model).encode(ids, torch.zeros_like(ids, dtype=torch.bool), tap=recorder)
    output = recorder.recording["encoder.0.self.output"][0].numpy()
    bias = model.get_parameter("encoder.layers.0.self_attention.output.bias").detach().double().numpy()
    how = "the pass run again in double precision, all positions"
    yield agree("The block's output is W_O's bias", output, np.broadcast_to(bias, output.shape), 1e-6, how)
    yield agree("The distance of the output from that bias", row.from_bias, abs(output - bias).max(), 1e-6, how)
    q, k, v = (torch.randn(1, 1, n, model.config.d_head, dtype=torch.float64) for _ in range(3))
    nothing = torch.zeros(1, 1, n, n, dtype=torch.bool)
    moved = (explicit_attention(q + 1, k, v, nothing) - explicit_attention(q, k, v, nothing)).abs().max()
    how = "queries moved by one; how far what the row passes on moved"
    yield agree("No gradient comes back through the row", row.gradient, float(moved), 0, how)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    high = logits.max(axis=-1, keepdims=True)
    return logits - high - np.log(np.exp(logits - high).sum(axis=-1, keepdims=True))
