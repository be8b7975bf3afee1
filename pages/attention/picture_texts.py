"""The sentences around a picture of attention: whose values it shows, what was done to them, what that hides."""

from collections.abc import Mapping

from pages.shared import wording
from pages.shared.context import Decoded, PageContext
from transformer.analysis.attention.aggregation import Marks
from transformer.analysis.attention.silenced_heads import heads_replaced, residuals, silenced
from transformer.interventions import Intervention
from transformer.interventions.names import plural
from transformer.lab import AttentionKind, Inspection
from transformer.views.attention.entropy import AttentionEntropy
from transformer.views.attention.heads import Bertviz, BertvizData
from transformer.views.attention.matrices import AttentionRollout, HeadMatrix, Matrix, hidden_share
from transformer.views.attention.matrix_data import MatrixData

MERGED = "Values to a word are summed over its pieces; values from a word are averaged over its pieces."
NORMS = "The length of what each entry adds to the block's output (Kobayashi et al., 2020)."
WEIGHTS_OFF = (
    "This {part} is off: its weights are still computed, as drawn in grey, but its output is set to zero, so what it "
    "attends to goes no further."
)
NORMS_OFF = "This {part} is off: its output is set to zero, so it contributes nothing and every norm is 0."
WEIGHTS_AT_MEAN = (
    "This head is at its mean: its weights are still computed, as drawn in grey, but its output is its mean over the "
    "validation set at every position, whatever it attends to."
)
NORMS_AT_MEAN = (
    "This head is at its mean over the validation set: what it attends to contributes nothing, so norms are 0."
)
NORMS_COPIED = "A switch copied another sentence's values into this block; where it did, norms are 0."
WEIGHTS_COPIED = (
    "A switch copied another sentence's values into this block: where it did, what is attended to here goes no further."
)
_INSIDE_ATTENTION = ("q", "k", "v", "heads", "output")
"""The tensors of an attention block: copied values show in its weights, or make them idle."""


def title(picture: Matrix, context: PageContext) -> str:
    """Returns whose values a matrix shows."""
    if isinstance(picture, AttentionEntropy):
        return "every layer and head"
    if isinstance(picture, AttentionRollout):
        return f"from the input through layer {picture.layer}"
    if context.view.combine == "one":
        return f"layer {picture.layer} · head {picture.heads[0]}"
    heads = picture.heads
    everything = len(heads) == context.lab.model.config.n_heads
    whose = "all heads" if everything else f"{'head' if len(heads) == 1 else 'heads'} {', '.join(map(str, heads))}"
    return f"layer {picture.layer} · {'mean' if picture.how == 'mean' else 'largest'} of {whose}"


def off_text(picture: Matrix, data: MatrixData, context: Decoded) -> str:
    """Returns why nothing of a matrix goes any further; empty where something does."""
    if not data.off or not isinstance(picture, HeadMatrix):
        return ""
    off = [at_zero for head, at_zero in _zeroed(picture, context).items() if head in picture.heads]
    if all(off):
        return " · **off**"
    return " · **off or at their mean**" if any(off) else f" · **at {'its' if len(off) == 1 else 'their'} mean**"


def example_text(picture: Matrix, data: MatrixData, context: Decoded) -> str:
    """Returns one row of a head's weights in words, that of the pronoun if there is one; empty where no row looks at a
    word."""
    if not isinstance(picture, HeadMatrix) or picture.shows != "weights" or len(picture.heads) > 1 or data.off:
        return ""
    step = wording.pronoun_step(context.inspection)
    asked = {"it"} if picture.kind == AttentionKind.ENCODER_SELF else {"il", "elle"}
    rows = [row for row, label in enumerate(data.rows.labels) if step is not None and wording.bare(label) in asked]
    for row in (*rows, *range(len(data.rows.labels))):
        column = int(data.values[row].argmax())
        if data.values[row, column] > 0 and not data.rows.special[row] and not data.columns.special[column]:
            looks, seen = (wording.token(side.typed[i]) for side, i in ((data.rows, row), (data.columns, column)))
            return f" · for example, {looks} looks most at {seen} ({data.values[row, column]:.2f})"
    return ""


def cache_text(context: Decoded) -> str:
    """Returns a note where the decoder's own attention is that of one whole pass."""
    if context.view.kind == "decoder_self" and not context.inspection.cached:
        return " · from the last whole pass, because the cache cannot be used"
    return ""


def matrix_text(picture: Matrix, data: MatrixData, context: Decoded) -> list[str]:
    """Returns the sentences below the title: what was merged, left out and hidden, and what the switches mean."""
    if isinstance(picture, AttentionEntropy):
        said = [
            "The entropy of each row of weights: 0 where it attends to one key alone, at most the logarithm of how "
            f"many keys it may see, here up to {picture.top(data):.3g} {picture.unit}."
        ]
        if picture.marks != "shown":
            said.append("Start and end marks are left out only as rows; they still count as keys.")
        return said
    norms = isinstance(picture, HeadMatrix) and picture.shows == "norms"
    said = [NORMS] if norms else []
    if isinstance(picture, AttentionRollout):
        said.append(_rollout_text(picture, data, context))
    if picture.words:
        said.append(MERGED)
    said += _marks_text(picture.marks, data.on_marks)
    if picture.threshold:
        _, share = hidden_share(picture, data)
        named = f"{picture.least(data):.3g}" + (f" ({picture.threshold:g} of the largest)" if norms else "")
        said.append(_threshold_text(named, share))
    return said + (_switches_text(picture, data, context) if isinstance(picture, HeadMatrix) else [])


def bertviz_text(picture: Bertviz, data: BertvizData, context: PageContext) -> list[str]:
    """Returns what was done to the weights that bertviz draws, or which choices the neuron view cannot follow."""
    if picture.picture == "neuron":
        return _ignored_text(context)
    said = [MERGED] if picture.words else []
    said += _marks_text(picture.marks, data.on_marks)
    if data.hidden is not None:
        said.append(_threshold_text(f"{picture.threshold:g}", data.hidden))
    return said


def _ignored_text(context: PageContext) -> list[str]:
    view = context.view
    ignored = {
        "words are not merged": view.words,
        "start and end marks stay": view.specials != "shown",
        "weak entries stay": bool(view.threshold),
    }
    if not any(ignored.values()):
        return []
    return [
        f"Here {', '.join(said for said, holds in ignored.items() if holds)}: each query and key belongs to one "
        "token, so a merged word has neither, and the softmax is over all keys, so leaving some out would draw a "
        "softmax that was never computed."
    ]


def _marks_text(marks: Marks, share: float | None) -> list[str]:
    if share is None:
        return []
    said = f"Start and end marks are left out: they held {_percent(share)} of the other tokens' rows."
    if marks == "renormalised":
        return [f"{said} The rest of each row is rescaled to sum to 1."]
    return [f"{said} The rest is not rescaled."]


def _threshold_text(threshold: str, share: float) -> str:
    return f"Entries below {threshold} are not drawn: this hides {_percent(share)} of what is shown here."


def _percent(share: float) -> str:
    if share == 0:
        return "nothing"
    return f"{share:.1%}" if share >= 0.0005 else "less than 0.1%"


def _zeroed(picture: HeadMatrix, context: Decoded) -> Mapping[int, bool]:
    """Returns, for each head of the layer, whether it is set to zero."""
    return dict(enumerate(heads_replaced(context.inspection, picture.kind, ("zero",))[picture.layer].tolist()))


def _switches_text(picture: HeadMatrix, data: MatrixData, context: Decoded) -> list[str]:
    seen, layer, norms = context.inspection, picture.layer, picture.shows == "norms"
    zeroed = _zeroed(picture, context)
    if data.off and context.view.combine == "one":
        if not zeroed[picture.heads[0]]:
            return [NORMS_AT_MEAN if norms else WEIGHTS_AT_MEAN]
        part = "block" if _is_block_off(seen, AttentionKind(picture.kind), layer) else "head"
        return [(NORMS_OFF if norms else WEIGHTS_OFF).format(part=part)]
    replaced = heads_replaced(seen, picture.kind, ("zero", "mean"))[layer]
    off = [head for head in picture.heads if replaced[head]]
    if not off:
        copied = NORMS_COPIED if norms else WEIGHTS_COPIED
        return [copied] if _is_copied_into(picture, seen) else []
    named = f"{'head' if len(off) == 1 else 'heads'} {', '.join(map(str, off))} {'is' if len(off) == 1 else 'are'} off"
    if not all(zeroed[head] for head in off):
        named += " or at the mean"
    if norms:
        return [f"Of these, {named} and {'is' if len(off) == 1 else 'are'} counted with norms of 0."]
    return [f"Of these, {named}: the weights are still computed and counted here, but go no further."]


def _is_block_off(seen: Inspection, kind: AttentionKind, layer: int) -> bool:
    specs = [spec for spec in seen.interventions if spec.acts_in(*kind.where)]
    return any(
        (spec.replaced.tensor, spec.replaced.by) == ("output", "zero")
        for spec in specs
        if spec.replaced is not None and spec.address is not None and spec.address.layer == layer
    )


def _is_copied_into(picture: HeadMatrix, seen: Inspection) -> bool:
    """Returns whether a switch replaces what these heads gathered with another sentence's context or output."""
    replaced = [spec.replaced for spec, at in silenced(seen, picture.kind) if at[0] == picture.layer]
    copied = [r for r in replaced if r is not None and r.by == "copy" and r.tensor in ("heads", "output")]
    return any(r.heads is None or not {*r.heads}.isdisjoint(picture.heads) for r in copied)


def _rollout_text(picture: AttentionRollout, data: MatrixData, context: Decoded) -> str:
    assert data.arrived is not None and data.alive is not None, "a rollout has them"
    seen, kind, layer = context.inspection, AttentionKind(picture.kind), picture.layer
    built_with = context.lab.model.config.residual
    if kind == "cross":
        said = "Through the whole encoder, then the decoder. "
        if data.alive.any():
            own = 1 - data.arrived[data.alive]
            said += (
                f"A row holds what the position received from the sentence; the rest, {own.mean():.1%} on average, it "
                "received from the tokens before it."
            )
        through = dict.fromkeys(AttentionKind, layer + 1)
        through[AttentionKind.ENCODER_SELF] = len(seen.encoder_self.weights)
        return f"{said}{_empty_text(data)}{_counted_text(seen, through)}"
    kept = residuals(seen, kind, built_with)[: layer + 1]
    if any(kept):
        said = "A layer counts as half the mean of its heads and half the residual."
        if not all(kept):
            said += " Where its residual is off it counts as the mean alone."
    else:
        said = "A layer counts as the mean of its heads."
    n_alive, n_rows = int(data.alive.sum()), len(data.alive)
    if n_alive == n_rows:
        said += " Rows sum to 1."
    elif n_alive:
        said += f" {n_alive} of {n_rows} rows sum to 1."
    said += f"{_empty_text(data)}{_counted_text(seen, {kind: layer + 1})}"
    if kind == "decoder_self" and not all(residuals(seen, "cross", built_with)[:layer]):
        said += " Cross-attention in the layers below, which has no residual, counts as if it passed on what arrived "
        "there."
    return said


def _empty_text(data: MatrixData) -> str:
    assert data.alive is not None, "a rollout has it"
    n_rows, empty = len(data.alive), int((~data.alive).sum())
    if not empty:
        return ""
    if empty == n_rows:
        return f" All {empty} {plural(empty, 'row')} are 0: nothing arrives there."
    return f" {empty} of {n_rows} rows {'is' if empty == 1 else 'are'} 0: nothing arrives there."


def _counted_text(seen: Inspection, through: Mapping[AttentionKind, int]) -> str:
    """Returns how a rollout through so many layers of each kind counts the visitor's switches, and what it ignores."""
    gone = [spec for kind, n in through.items() for spec, (layer, *_) in silenced(seen, kind) if layer < n]
    copied = [spec for spec in gone if _is_copy(spec)]
    said = " Heads that are off or at their mean count as zero." if len(gone) > len(copied) else ""
    if copied:
        said += " Values copied from another sentence count as zero: nothing of this sentence arrives through them."
    scaled = [spec.address for kind in through for spec in seen.interventions if _scales(spec, kind)]
    layers = {kind.where[0]: n for kind, n in through.items()}
    if any(at is not None and (at.layer or 0) < layers[at.stack] for at in scaled):
        said += " Scaled heads are multiplied by their factor."
    others = [spec.address for spec in seen.interventions if _is_copy(spec) and not _is_followed(spec)]
    if any(at is not None and (at.layer or 0) < layers.get(at.stack, 0) for at in others):
        said += " Values copied in other places count as this sentence's own."
    return said


def _scales(spec: Intervention, kind: AttentionKind) -> bool:
    return bool(spec.head_factors) and spec.acts_in(*kind.where)


def _is_copy(spec: Intervention) -> bool:
    return spec.replaced is not None and spec.replaced.by == "copy"


def _is_followed(spec: Intervention) -> bool:
    """Returns whether a rollout counts what was copied there, or only begins after it."""
    assert spec.address is not None and spec.replaced is not None, "it is a copy"
    sublayer = spec.address.sublayer
    return sublayer == "final" or (sublayer in ("self", "cross") and spec.replaced.tensor in _INSIDE_ATTENTION)
