"""Measures what masks hide by switching them off, on a batch of sentences of different lengths."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.config import AnyModelConfig
from transformer.decoding.greedy import greedy, teacher_forced_log_probs
from transformer.interventions import DisableMask, Intervention, compile_interventions
from transformer.model.attention import explicit_attention
from transformer.model.kinds import AttentionKind
from transformer.model.mask_rules import MASK_RULES, MaskRule
from transformer.model.masks import ahead
from transformer.model.taps import Recorder, Recording, Site, chain
from transformer.model.transformer import Transformer

Sources = Int[Tensor, "batch source"]
Targets = Int[Tensor, "batch target"]
SIDES = {
    AttentionKind.ENCODER_SELF: ("source", "source"),
    AttentionKind.CROSS: ("target", "source"),
    AttentionKind.DECODER_SELF: ("target", "target"),
}
"""The queries and the keys of each attention, by the fields of a leak."""


@dataclass(frozen=True)
class Share:
    """The attention of one kind that falls on what one mask hides."""

    kind: AttentionKind
    rule: MaskRule | None
    """None: on padding."""

    def __str__(self) -> str:
        return f"{'on padding' if self.rule is None else self.rule.share}, {self.kind.phrase}"

    def is_hidden(self, config: AnyModelConfig) -> bool:
        """Tells whether a model of these settings has the mask, so that the share is 0 with all masks on."""
        return self.rule is None or self.rule.holds(config)


def shares_of(config: AnyModelConfig) -> tuple[Share, ...]:
    """Returns the shares that are measured in a model: those that its masks hide, and those for which it lacks one."""
    rules = [rule for rule in MASK_RULES if rule.lacking or rule.holds(config)]
    of_rules = (Share(kind, rule) for rule in rules for kind in SIDES if rule.is_on(kind))
    return (*(Share(kind, None) for kind in SIDES), *of_rules)


@dataclass(frozen=True)
class Reading:
    """One way of reading a batch: with its masks, or with some of them off."""

    outputs: tuple[tuple[int, ...], ...]
    """The output of each sentence of the batch, free-running, its end mark included."""
    ended: tuple[bool, ...]
    """False for an output that was cut off before it wrote an end mark."""
    losses: Float[ndarray, " sentence"]
    """Nats per token of the output that the batch gives with all masks, teacher-forced."""
    loss: float
    """The same over the whole batch, every real token counted alike."""
    masks: dict[AttentionKind, Bool[ndarray, "sentence query key"]]
    """The masks of the pass by kind of attention."""
    shares: dict[str, float]
    """Mean share of a real query's attention that fell on what a mask hides, over all layers and heads: for each of
    `shares_of`, by its name. Of a rule only queries count that have real tokens which it hides."""


@dataclass(frozen=True)
class Leak:
    """A batch read with all masks and with some off."""

    source: Int[ndarray, "sentence source"]
    target: Int[ndarray, "sentence target"]
    """The decoder's input: bos, then the output with all masks but its last token, which is only predicted; padded."""
    intact: Reading
    lifted: Reading
    off: tuple[DisableMask, ...] = ()
    """The masks that `lifted` is without."""
    texts: tuple[str, ...] = ()
    """The sentences; empty where only their ids were given."""


@dataclass(frozen=True)
class Forcing:
    """A test of whether a teacher-forced pass saw what it was to predict."""

    from_steps: float
    """Largest difference of any probability between the one pass and decoding step by step."""
    masked_change: float
    """Largest move of an earlier log-probability when the last input token is another one. 0: it is not seen there."""
    unmasked_change: float
    """The same without the causal mask; equal to the other in a model that was trained without one."""


@dataclass(frozen=True)
class EmptyRow:
    """A query that may attend to nothing, in three readings of softmax, and what this project makes of it."""

    plain: Float[ndarray, " key"]
    """Softmax over scores that are all -inf: NaN."""
    floored: Float[ndarray, " key"]
    """Softmax with the lowest finite number instead of -inf: every forbidden key gets the same weight."""
    here: Float[ndarray, " key"]
    """The weights of the model's first encoder layer in a pass where everything was padding."""
    from_bias: float
    """The distance of that block's output from W_O's bias."""
    gradient: float
    """The largest gradient that such a row sends back."""


@torch.no_grad()
def measure_leak(model: Transformer, source: Sources, off: Sequence[DisableMask]) -> Leak:
    """Reads the batch with all masks and without the given ones.

    Without them a free-running output is cut off four tokens past twice its sentence's length with all masks.
    """
    longest = model.config.max_length
    intact = _decode(model, source, (), [longest] * len(source))
    lifted = _decode(model, source, off, [min(longest, 2 * len(out) + 4) for out in intact]) if off else intact
    inputs, target = forced_ids(model, intact)
    readings = [_read(model, source, inputs, target, specs, out) for specs, out in (((), intact), (off, lifted))]
    return Leak(source.numpy(), inputs.numpy(), *readings, off=tuple(off))


def forced_ids(model: Transformer, outputs: Sequence[Sequence[int]]) -> tuple[Targets, Targets]:
    """Returns the decoder's inputs and targets. The end mark is predicted and never read, in any row."""
    pad, bos = model.config.pad_id, model.config.bos_id
    return padded([(bos, *out[:-1]) for out in outputs], pad), padded(outputs, pad)


@torch.no_grad()
def is_forcing_honest(model: Transformer, source: Sequence[int]) -> Forcing:
    """Compares the teacher-forced pass over a sentence's own output with its decoding and with another last token."""
    ids = torch.tensor([source])
    steps = list(greedy(model, ids, max_length=model.config.max_length))
    target = torch.stack([step.tokens for step in steps], dim=1)
    forced = teacher_forced_log_probs(model, ids, target)
    deviation = (forced[0].exp() - torch.cat([step.log_probs for step in steps]).exp()).abs().max()
    longer = torch.cat((target, target[:, -1:]), dim=1) if target.size(1) < 2 else target
    other = longer.clone()
    other[0, -2] = next(i for i in range(4, model.config.vocab_size) if i != int(longer[0, -2]))
    unmask = compile_interventions([DisableMask("causal")] if model.config.causal_mask else [], model)

    def change(tap: object) -> float:
        before, after = (teacher_forced_log_probs(model, ids, out, tap=tap)[:, :-1] for out in (longer, other))  # type: ignore[arg-type]
        return float((before - after).abs().max())

    return Forcing(float(deviation), change(None), change(unmask))


def see_empty_row(model: Transformer, source: Sequence[int]) -> EmptyRow:
    """Measures attention where every token counts as padding."""
    ids, recorder = torch.tensor([source]), Recorder()
    with torch.no_grad():
        model.encode(ids, torch.zeros_like(ids, dtype=torch.bool), tap=recorder)
    recording: Recording = recorder.recording
    scores = recording["encoder.0.self.scores"][0, 0, 0]
    bias = model.get_parameter("encoder.layers.0.self_attention.output.bias").detach()
    nothing = torch.zeros_like(scores, dtype=torch.bool)
    q = recording["encoder.0.self.q"][:, :1].clone().requires_grad_()
    k, v = (recording[f"encoder.0.self.{name}"][:, :1] for name in "kv")
    out = explicit_attention(q, k, v, nothing.expand(1, 1, len(scores), len(scores)))
    (gradient,) = torch.autograd.grad(out.sum(), q)
    return EmptyRow(
        plain=scores.masked_fill(~nothing, -torch.inf).softmax(dim=-1).numpy(),
        floored=scores.masked_fill(~nothing, torch.finfo(scores.dtype).min).softmax(dim=-1).numpy(),
        here=recording["encoder.0.self.weights"][0, 0, 0].numpy(),
        from_bias=float((recording["encoder.0.self.output"] - bias).abs().max()),
        gradient=float(gradient.abs().max()),
    )


def _decode(
    model: Transformer, source: Sources, off: Sequence[Intervention], limits: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    steps = [s.tokens for s in greedy(model, source, max_length=max(limits), tap=compile_interventions(off, model))]
    rows = torch.stack(steps, dim=1).tolist()
    written = (tuple(token for token in row if token != model.config.pad_id) for row in rows)
    return tuple(row[:limit] for row, limit in zip(written, limits, strict=True))


def _read(
    model: Transformer,
    source: Sources,
    inputs: Targets,
    target: Targets,
    off: Sequence[Intervention],
    outputs: tuple[tuple[int, ...], ...],
) -> Reading:
    recorder = Recorder(lambda site: site.tensor in ("weights", "mask"))
    tap = chain(compile_interventions(off, model), recorder)
    log_probs = model(source, inputs, tap=tap).log_softmax(dim=-1).double()
    pad = model.config.pad_id
    real_of = {"source": source != pad, "target": inputs != pad}
    lost = -log_probs.gather(2, target[..., None])[..., 0] * real_of["target"]
    n_tokens = real_of["target"].sum(dim=1)
    weights = {kind: _mean_weights(recorder.recording, kind) for kind in SIDES}
    masks = {kind: _first_mask(recorder.recording, kind).expand_as(weights[kind]).numpy() for kind in SIDES}
    shares = {}
    for share in shares_of(model.config):
        of_kind, (queries, keys) = weights[share.kind], (real_of[side] for side in SIDES[share.kind])
        if share.rule is None:
            hidden = ~keys[:, None]
        else:
            hidden = keys[:, None] & ~share.rule.allows(ahead(*of_kind.shape[1:]), model.config)
            queries = queries & hidden.any(dim=-1)
        fallen = (of_kind * hidden).sum(dim=-1)[queries]
        shares[str(share)] = float(fallen.mean()) if len(fallen) else 0.0
    return Reading(
        outputs,
        tuple(out[-1] == model.config.eos_id for out in outputs),
        (lost.sum(dim=1) / n_tokens).numpy(),
        float(lost.sum() / n_tokens.sum()),
        masks,
        shares,
    )


def _mean_weights(recording: Recording, kind: AttentionKind) -> Float[Tensor, "batch query key"]:
    found = [recording[site] for site in recording if _is(site, kind, "weights")]
    return torch.stack(found).double().mean(dim=(0, 2))


def _first_mask(recording: Recording, kind: AttentionKind) -> Bool[Tensor, "batch query key"]:
    return next(recording[site] for site in recording if _is(site, kind, "mask"))[:, 0]


def _is(site: Site, kind: AttentionKind, tensor: str) -> bool:
    return site.tensor == tensor and (site.stack, site.sublayer) == kind.where


def padded(rows: Sequence[Sequence[int]], pad: int) -> Targets:
    """Returns rows of ids as one batch."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])
