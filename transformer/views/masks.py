"""The figures of Masks: a batch, the masks of one of its sentences, the leak, teacher forcing, an empty row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.mask_leakage import (
    SIDES,
    EmptyRow,
    Forcing,
    Leak,
    Reading,
    is_forcing_honest,
    see_empty_row,
    shares_of,
)
from transformer.analysis.attention.mask_leakage_checks import check_empty_row, check_forcing, check_reading
from transformer.analysis.attention.mask_reference import hides
from transformer.analysis.checks import Check, agree
from transformer.analysis.figure_checks import check_padding_is_invisible, mask_by_rule
from transformer.figures.attention.masks import Part, batch_figure, forcing_figure, leak_figure, masks_figure
from transformer.figures.export import matrix_figure
from transformer.figures.tables import matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.mask_rules import MASK_RULES, MaskRule

OFF = " (off)"
"""Behind the name of a mask that is switched off."""
READINGS = ("all masks on", "as switched")
FORCED = (
    "one pass against decoding step by step",
    "another last token, this model's masks",
    "another last token, no causal mask",
)


@dataclass(frozen=True)
class BatchData:
    """A batch as it goes into the encoder."""

    ids: Int[ndarray, "sentence position"]
    real: Bool[ndarray, "sentence position"]
    """False where there is only padding."""
    tokens: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BatchTokens:
    """The sentences of a batch, one below the other, and the padding that makes them equally long."""

    name = "batch"
    explained = (
        "Several sentences go through the model at once, as the rows of one rectangle. Shorter ones are filled up with "
        "\\<pad> (struck through), which means nothing and must not be looked at: that is what the padding mask is "
        "for."
    )

    def data(self, lab: Lab, leak: Leak) -> BatchData:
        """The token ids and which of them are no padding."""
        tokens = tuple(tuple(lab.tokenizer.piece(token) for token in row) for row in leak.source.tolist())
        return BatchData(leak.source, leak.source != lab.model.config.pad_id, tokens, leak.texts)

    def figure(self, data: BatchData, *, dark: bool = False) -> go.Figure:
        """Tokens as a grid; padding is struck."""
        return batch_figure(data.tokens, data.real, dark)

    def tables(self, data: BatchData) -> tuple[DataFrame, ...]:
        columns = [f"position {i}" for i in range(data.ids.shape[1])]
        return (matrix_table("token ids", data.ids, numbered(data.texts), columns),)

    def checks(self, lab: Lab, leak: Leak, data: BatchData) -> Iterator[Check]:
        """Encodes each sentence again, by itself."""
        pad, eos, width = lab.model.config.pad_id, lab.model.config.eos_id, data.ids.shape[1]
        rows = [[*lab.tokenizer.encode(text), eos] for text in leak.texts]
        padded = [[*ids, *[pad] * (width - len(ids))] for ids in rows]
        how = "read token by token"
        yield agree("Each row is its sentence, an end mark, then padding", data.ids, padded, 0, how)
        real = [[position < len(ids) for position in range(width)] for ids in rows]
        yield agree(
            "Padding begins where the sentence has ended", data.real, real, 0, "tokens of each sentence counted"
        )


@dataclass(frozen=True)
class MasksData:
    """The masks over one sentence of a batch."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    parts: tuple[Part, ...]
    applied: Bool[ndarray, "query key"]
    """The mask of the recorded pass: all parts together."""
    missing: tuple[Part, ...] = ()
    """The masks that this attention usually has and that the model lacks."""

    @property
    def is_combination(self) -> bool:
        """True if the parts together are what the pass applied."""
        return np.array_equal(self.applied, np.logical_and.reduce([part.mask for part in self.parts]))


@dataclass(frozen=True, kw_only=True)
class SentenceMasks:
    """The padding mask and the causal mask of one sentence of a batch, and the mask that they combine into."""

    kind: KindName
    row: int
    """The sentence, counted from 0."""
    name = "masks-{kind}-sentence{row}"
    explained = (
        "Each row is a token that asks, each column one that it may ask if the cell is filled. A crossed-out cell is "
        "hidden: −∞ is added to its score, so that its weight is exactly 0. The padding mask hides the places that "
        "only make the sentences of a batch equally long, the causal mask those that come later; the last picture is "
        "what they leave together."
    )
    equation = r"A = \mathrm{softmax}(S + M)"

    def data(self, lab: Lab, leak: Leak) -> MasksData:
        """The masks of the sentence, each by itself, and the one that was applied."""
        queries, keys = self._sides(leak)
        config, off, kind = lab.transformer.config, {spec.mask for spec in leak.off}, AttentionKind(self.kind)
        every = np.ones((len(queries), len(keys)), dtype=bool)
        padding_off = _padding_of(kind) in off
        padding = every if padding_off else np.tile(keys != config.pad_id, (len(queries), 1))
        title = "padding: none here" if padding.all() and not padding_off else ""
        parts = [Part(_named("padding", padding_off), padding, "padding: no token stands here", title)]
        missing = []
        for rule in _rules_on(kind):
            ahead = np.arange(len(keys)) - np.arange(len(queries))[:, None]
            if rule.holds(config):
                mask = every if rule.name in off else rule.allows(ahead, config)
                parts.append(Part(_named(rule.name, rule.name in off), mask, rule.hidden))
            elif rule.lacking:
                mask = rule.allows(ahead, config)
                missing.append(Part(rule.name, mask, rule.lacking, f"{rule.name}: it has none"))
        labels = [tuple(lab.tokenizer.piece(token) for token in side.tolist()) for side in (queries, keys)]
        return MasksData(labels[0], labels[1], tuple(parts), leak.lifted.masks[kind][self.row], tuple(missing))

    def figure(self, data: MasksData, *, dark: bool = False) -> go.Figure:
        """The masks side by side, then their combination, then what the model lacks."""
        return masks_figure(data.parts, data.queries, data.keys, missing=data.missing, kind=self.kind, dark=dark)

    def tables(self, data: MasksData) -> tuple[DataFrame, ...]:
        """Each mask, and the one that was applied."""
        labels = numbered(data.queries), numbered(data.keys)
        masks = {part.name: part.mask for part in data.parts} | {"applied": data.applied}
        masks |= {f"{part.name}, which it lacks": part.mask for part in data.missing}
        return tuple(matrix_table(name, mask.astype(int), *labels) for name, mask in masks.items())

    def checks(self, lab: Lab, leak: Leak, data: MasksData) -> Iterator[Check]:
        """Applies the rules to every query and key again."""
        queries, keys = (side.tolist() for side in self._sides(leak))
        config, kind, off = lab.transformer.config, AttentionKind(self.kind), {spec.mask for spec in leak.off}
        names = {_padding_of(kind), *(rule.name for rule in _rules_on(kind))}
        how = "tokens looked at one by one"
        for part in data.parts:
            shown = part.name.removesuffix(OFF)
            own = _padding_of(kind) if shown == "padding" else shown
            again = mask_by_rule(config, kind, queries, keys, off={*names - {own}, *off})
            yield agree(f"The {shown} mask is what its rule says", part.mask, again, 0, how)
        for part in data.missing:
            again = [[not hides(part.name, config, i, j) for j in range(len(keys))] for i in range(len(queries))]
            yield agree(f"The {part.name} mask that it lacks is what its rule says", part.mask, again, 0, how)
        again = mask_by_rule(config, kind, queries, keys, off=off)
        yield agree("The pass applied all rules together", data.applied, again, 0, how)

    def _sides(self, leak: Leak) -> tuple[Int[ndarray, " query"], Int[ndarray, " key"]]:
        """The ids of queries and keys; ValueError where there is no such sentence."""
        if not 0 <= self.row < len(leak.source):
            raise ValueError(f"there is no sentence {self.row}: the batch has sentences 0 to {len(leak.source) - 1}")
        queries, keys = (getattr(leak, side)[self.row] for side in SIDES[AttentionKind(self.kind)])
        return queries, keys


@dataclass(frozen=True)
class LeakData:
    """The attention on hidden cells, and the loss, with all masks (reading 0) and as switched (reading 1)."""

    names: tuple[str, ...]
    """The places that masks hide and attention may fall on without them: "on padding, cross-attention"."""
    shares: Float[ndarray, "reading share"]
    """The share of attention on each of these."""
    loss: Float[ndarray, " reading"]
    """Nats per token of the output with all masks, teacher-forced."""
    losses: Float[ndarray, "reading sentence"]
    """The same for each sentence."""
    outputs: tuple[tuple[tuple[int, ...], ...], ...]
    """The output of each sentence in each reading, decoded step by step."""
    written: tuple[tuple[str, ...], ...]
    """The same in words."""
    ended: Bool[ndarray, "reading sentence"]
    """False for an output that was cut off before it wrote an end mark."""

    @property
    def changed(self) -> tuple[int, ...]:
        """The sentences that come out differently."""
        return tuple(i for i, (before, after) in enumerate(zip(*self.outputs, strict=True)) if before != after)


@dataclass(frozen=True, kw_only=True)
class MaskLeak:
    """The leak through the masks that are off."""

    name = "leak"
    explained = (
        "What gets through where a mask is off. Attention on padding is lost on tokens that mean nothing; attention on "
        "later tokens lets the decoder see what it is about to write. With all masks on, each of these shares is "
        "exactly 0."
    )
    note = "the loss is the first number of each row"

    def data(self, lab: Lab, leak: Leak) -> LeakData:
        """Attention on hidden cells, losses and outputs, before and after."""
        both, eos = (leak.intact, leak.lifted), lab.model.config.eos_id
        words = [
            tuple(lab.tokenizer.decode([token for token in out if token != eos]) for out in reading.outputs)
            for reading in both
        ]
        return LeakData(
            names=tuple(leak.intact.shares),
            shares=np.array([list(reading.shares.values()) for reading in both]),
            loss=np.array([reading.loss for reading in both]),
            losses=np.stack([reading.losses for reading in both]),
            outputs=tuple(reading.outputs for reading in both),
            written=tuple(words),
            ended=np.array([reading.ended for reading in both]),
        )

    def figure(self, data: LeakData, *, dark: bool = False) -> go.Figure:
        """The shares of attention as points."""
        return leak_figure(data.names, *data.shares.tolist(), dark=dark)

    def tables(self, data: LeakData) -> tuple[DataFrame, ...]:
        """Losses and shares of both readings."""
        values = np.column_stack((data.loss, data.shares))
        sentences = [f"sentence {i}" for i in range(data.losses.shape[1])]
        return (
            matrix_table("leak", values, READINGS, ["loss, nats per token", *data.names]),
            matrix_table("loss of each sentence, nats per token", data.losses, READINGS, sentences),
        )

    def checks(self, lab: Lab, leak: Leak, data: LeakData) -> Iterator[Check]:
        """Reads the batch again in double precision, sentence by sentence and cell by cell."""
        model, pad = lab.model, lab.model.config.pad_id
        intact, lifted = (_reading_shown(leak, data, index) for index in (0, 1))
        source = [[token for token in row if token != pad] for row in leak.source.tolist()]
        written = [list(output) for output in data.outputs[0]]
        shares = zip(shares_of(lab.transformer.config), data.shares[0].tolist(), strict=True)
        hidden = [value for share, value in shares if share.is_hidden(lab.transformer.config)]
        yield from check_padding_is_invisible(model, source, written, intact.losses)
        claim = "With all masks no attention falls on what they hide"
        yield agree(claim, hidden, [0.0] * len(hidden), 0, "all layers, heads and queries")
        shown = replace(leak, intact=intact, lifted=lifted)
        yield from check_reading(model, shown, intact, ())
        if leak.off:
            yield from check_reading(model, shown, lifted, leak.off)
        else:
            yield _same_twice(data)
        ends = [[out[-1] == model.config.eos_id for out in outputs] for outputs in data.outputs]
        yield agree("Outputs marked as ended have an end mark", data.ended, ends, 0, "their last tokens read")


@dataclass(frozen=True, kw_only=True)
class TeacherForcing:
    """A test of whether a teacher-forced pass over a sentence's own output sees what it has to predict."""

    name = "teacher-forcing"
    explained = (
        "In training the whole right answer is fed to the decoder at once. Could it cheat? The first bar compares that "
        "one pass with decoding step by step. For the others the last token is replaced by another one: how far does "
        "any earlier prediction move? With the causal mask by exactly 0, because no position sees what comes after it."
    )

    def data(self, lab: Lab, seen: Inspection) -> Forcing:
        """One pass against decoding, and how far another last token reaches back."""
        return is_forcing_honest(lab.model, seen.source_ids)

    def figure(self, data: Forcing, *, dark: bool = False) -> go.Figure:
        """The three numbers as bars."""
        return forcing_figure(FORCED, _forced(data), dark=dark)

    def tables(self, data: Forcing) -> tuple[DataFrame, ...]:
        return (matrix_table("largest difference", np.array([_forced(data)]).T, FORCED, ["largest difference"]),)

    def checks(self, lab: Lab, seen: Inspection, data: Forcing) -> Iterator[Check]:
        """Decodes again without a cache, and runs the passes again in double precision."""
        yield from check_forcing(lab.model, seen.source_ids, data)


@dataclass(frozen=True)
class EmptyRowData:
    """Attention in a row that may attend to nothing."""

    tokens: tuple[str, ...]
    row: EmptyRow


@dataclass(frozen=True, kw_only=True)
class EmptyAttentionRow:
    """A query that may attend to nothing, in three readings of softmax."""

    name = "empty-row"
    explained = (
        "If a mask hides every key of a query, softmax has nothing to share out: plain softmax gives *not a number*. A "
        "large negative number in place of −∞ spreads the weight evenly over tokens that should be hidden. Here such a "
        "row is set to 0, so that nothing is gathered and training stays sound."
    )

    def data(self, lab: Lab, seen: Inspection) -> EmptyRowData:
        """The first row of the first encoder layer where every token is taken for padding."""
        return EmptyRowData(seen.source_tokens, see_empty_row(lab.transformer, seen.source_ids))

    def figure(self, data: EmptyRowData, *, dark: bool = False) -> go.Figure:
        """A row for each reading."""
        titles = ("reading", "key")
        return matrix_figure(_weights(data), _SOFTMAXES, data.tokens, kind="encoder_self", titles=titles, dark=dark)

    def tables(self, data: EmptyRowData) -> tuple[DataFrame, ...]:
        """The weights in each reading."""
        measured = np.array([[data.row.from_bias], [data.row.gradient]])
        names = ("distance of the output from W_O's bias", "largest gradient")
        return (
            matrix_table("weight", _weights(data), _SOFTMAXES, numbered(data.tokens)),
            matrix_table("measured", measured, names, ["value"]),
        )

    def checks(self, lab: Lab, seen: Inspection, data: EmptyRowData) -> Iterator[Check]:
        """Computes softmax by its definition, and the pass again in double precision."""
        yield from check_empty_row(lab.model, seen.source_ids, data.row)


_SOFTMAXES = ("softmax with -inf", "with the lowest finite number", "in this project")


def _weights(data: EmptyRowData) -> Float[ndarray, "softmax key"]:
    return np.stack([data.row.plain, data.row.floored, data.row.here])


def _forced(data: Forcing) -> list[float]:
    return [data.from_steps, data.masked_change, data.unmasked_change]


def _rules_on(kind: AttentionKind) -> tuple[MaskRule, ...]:
    return tuple(rule for rule in MASK_RULES if rule.is_on(kind))


def _padding_of(kind: AttentionKind) -> str:
    """Returns the name of the mask that hides padding from this kind of attention."""
    return "cross" if kind is AttentionKind.CROSS else "padding"


def _named(mask: str, off: bool) -> str:
    return f"{mask}{OFF}" if off else mask


def _reading_shown(leak: Leak, data: LeakData, index: int) -> Reading:
    """A reading with the numbers that are shown of it."""
    return replace(
        (leak.intact, leak.lifted)[index],
        outputs=data.outputs[index],
        losses=data.losses[index],
        loss=float(data.loss[index]),
        shares=dict(zip(data.names, data.shares[index].tolist(), strict=True)),
    )


def _same_twice(data: LeakData) -> Check:
    """Tests that both readings are equal where no mask is off."""
    one, other = ([*data.shares[i], data.loss[i], *data.losses[i], *_flat(data.outputs[i])] for i in (0, 1))
    return agree("Without a switch both readings are the same", other, one, 0, "every number of them")


def _flat(outputs: Sequence[Sequence[int]]) -> list[int]:
    return [number for output in outputs for number in (len(output), *output)]
