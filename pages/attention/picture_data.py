"""What a picture of the Attention page draws: from a recorded decoding and a view to one labelled matrix, and the
sentences that say what was done to it. No Streamlit here.

Pieces are merged into words first, in each head, then heads combined, then special tokens left out, then weak cells:
a weight between words that is the largest of several heads is one head's own, and so at most 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from pages.attention.picture_rollout import TITLES, CannotDraw, rolled_out
from pages.attention.picture_sides import Side, groups, sides
from pages.shared.context import sublayers_off
from pages.shared.url.view_state import View
from transformer.analysis.attention.aggregation import (
    below,
    combine_heads,
    leave_out,
    merge_masks,
    merge_words,
    renormalise,
    strongest_head,
)
from transformer.analysis.attention.entropy import row_entropy
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.lab import Attention, Inspection, Lab

MERGED_SAID = "Values to a word are summed over its pieces, those from a word averaged over its pieces."


@dataclass(frozen=True)
class Source:
    """What a picture is made of."""

    lab: Lab
    inspection: Inspection
    view: View
    layer: int
    head: int
    off: frozenset[tuple[int, int]] = frozenset()
    """(layer, head) of the heads whose output a switch put something else in place of: zero, or their mean; and all
    heads of a block that is off."""
    norms: Float[ndarray, "layer head query key"] | None = None
    """Norms of the contributions, where they are to be drawn."""

    @property
    def heads_off(self) -> frozenset[tuple[int, int]]:
        """Those of them that are at zero."""
        stack, sublayer = self.view.kind.where
        off, sublayers = self.view.heads_off, self.sublayers_off
        return frozenset(at for at in self.off if at[0] in sublayers or at[1] in off(stack, at[0], sublayer))

    @property
    def sublayers_off(self) -> frozenset[int]:
        """Layers whose whole block a switch set to zero."""
        return sublayers_off(self.view)

    @property
    def attention(self) -> Attention:
        return self.inspection.attention(self.view.kind)

    @property
    def heads(self) -> tuple[int, ...]:
        """The heads that the picture combines."""
        everything = tuple(range(self.attention.weights.shape[1]))
        return (self.head,) if self.view.combine == "one" else self.view.over or everything

    def sides(self, *, words: bool) -> tuple[Side, Side]:
        """Rows and columns before anything is left out."""
        return sides(self.lab, self.inspection, self.view.kind, words=words)


@dataclass(frozen=True)
class Drawing:
    """One matrix, ready to be drawn."""

    values: Float[ndarray, "row column"]
    rows: Side
    columns: Side
    titles: tuple[str, str]
    quantity: str
    """What a value is: "weight", "rollout"."""
    what: str
    """Whose values they are, for the caption."""
    top: float = 1.0
    """The value at the end of the scale."""
    said: tuple[str, ...] = ()
    """What was done to it, with what that hides."""
    mask: Bool[ndarray, "row column"] | None = None
    least: float = 0.0
    """Values below it are not drawn."""
    weak: Bool[ndarray, "row column"] | None = None
    """Which these are; None without such a threshold."""
    weak_label: str = ""
    targets: Int[ndarray, "row column 4"] | None = None
    """The layer, head, query and key that a click on each cell takes apart; None: nothing can be taken apart."""
    largest: Float[ndarray, "row column"] | None = None
    """What each value could be at most, in `unit`."""
    unit: str = ""
    off: bool = False
    """Whether nothing of any head in it goes any further."""
    names: tuple[str, str] = ("query", "key")
    column_notes: tuple[str, ...] | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """What stands at both ends of its lines, above and below."""
        return f"{self.names[1]}s", "queries" if self.names[0] == "query" else f"{self.names[0]}s"


def drawing(source: Source) -> Drawing:
    """The matrix that the view asks for; CannotDraw where there is none."""
    match source.view.show:
        case "weights" | "norms":
            return _of_heads(source)
        case "rollout":
            return _of_rollout(source)
        case "entropy":
            return _of_entropy(source)


def all_heads(source: Source) -> tuple[Float[ndarray, "layer head row column"], Side, Side, tuple[str, ...]]:
    """The weights of every head merged, cut and thresholded as the view asks, for pictures of many heads."""
    view, weights, said = source.view, source.attention.weights, []
    rows, columns = source.sides(words=view.words)
    if view.words:
        weights = merge_words(weights, groups(rows), groups(columns))
        said.append(MERGED_SAID)
    if view.specials != "shown":
        n_layers, n_heads, _, n_columns = weights.shape
        gone = rows.special * (n_layers * n_heads)
        kept, share = leave_out(weights.reshape(-1, n_columns), gone, columns.special)
        rows, columns = rows.without_special(), columns.without_special()
        kept = renormalise(kept) if view.specials == "renormalised" else kept
        weights = _something(kept.reshape(n_layers, n_heads, len(rows.labels), len(columns.labels)))
        said.append(_specials_said(view, share))
    if view.threshold:
        weak, share = below(weights, view.threshold)
        weights = np.where(weak, np.float32(0), weights)
        said.append(_threshold_said(f"{view.threshold:g}", share))
    return weights, rows, columns, tuple(said)


def _of_heads(source: Source) -> Drawing:
    view, attention, heads = source.view, source.attention, source.heads
    by_norm = view.show == "norms"
    layer = (source.norms if by_norm and source.norms is not None else attention.weights)[source.layer]
    rows, columns = source.sides(words=view.words)
    mask, merged = attention.mask[source.layer], layer
    if view.words:
        by = groups(rows), groups(columns)
        merged, mask = merge_words(layer, *by), merge_masks(mask, *by)
    made = Drawing(
        values=combine_heads(merged, heads, "max" if view.combine == "max" else "mean"),
        rows=rows,
        columns=columns,
        titles=AXIS_TITLES[view.kind],
        quantity="‖α v W_O‖" if by_norm else "weight",
        what=_heads_named(source),
        said=(MERGED_SAID,) * view.words,
        mask=mask,
        targets=_targets(source, layer, strongest_head(merged, heads), rows, columns),
        off=all((source.layer, head) in source.off for head in heads),
    )
    made = _without_marks(view, made)
    top = float(made.values.max(initial=0.0))
    return _thresholded(view, replace(made, top=top or 1.0) if by_norm or top > 1 else made)


def _of_rollout(source: Source) -> Drawing:
    view = source.view
    rolled = rolled_out(source.inspection, view.kind, source.layer, residual=source.lab.model.config.residual)
    rows, columns = source.sides(words=view.words)
    values, mask = rolled.values, rolled.mask
    if view.words:
        by = groups(rows), groups(columns)
        values, mask = merge_words(values, *by), None if mask is None else merge_masks(mask, *by)
    made = Drawing(
        values=values,
        rows=rows,
        columns=columns,
        titles=TITLES[view.kind],
        quantity="rollout",
        what=f"from the input through layer {source.layer}",
        said=(rolled.said, *(MERGED_SAID,) * view.words),
        mask=mask,
        names=("position", "input"),
    )
    made = _without_marks(view, made)
    return _thresholded(view, replace(made, top=float(made.values.max(initial=0.0)) or 1.0))


def _of_entropy(source: Source) -> Drawing:
    view, attention = source.view, source.attention
    found = row_entropy(attention.weights, attention.mask, view.unit)
    n_layers, n_heads, n_rows = found.values.shape
    layer, head = np.divmod(np.arange(n_layers * n_heads), n_heads)
    row = np.broadcast_to(np.arange(n_rows)[:, None], (n_rows, len(layer)))
    strongest = attention.weights.argmax(axis=-1).reshape(-1, n_rows).T  # [layer head query] -> [query layer*head]
    largest = found.largest[layer].T.astype(np.float32)
    top = float(largest.max(initial=0.0))
    rows, _ = source.sides(words=False)
    kept = [not (mark and view.specials != "shown") for mark in rows.special]
    said = (
        "The entropy of each row of weights: 0 where it looks at one key alone, at most the logarithm of how many keys "
        f"it may see, here up to {top:.3g} {view.unit}."
    )
    marks = "Start and end marks are left out as rows alone: as keys they count."
    return Drawing(
        values=_something(found.values.reshape(-1, n_rows).T.astype(np.float32)[kept]),
        rows=rows if all(kept) else rows.without_special(),
        columns=Side(
            tuple(f"{a}·{b}" for a, b in zip(layer, head, strict=True)),
            tuple((index,) for index in range(len(layer))),
            (False,) * len(layer),
        ),
        titles=(AXIS_TITLES[view.kind][0], "layer · head"),
        quantity="entropy",
        what="every layer and head",
        top=top or 1.0,
        said=(said, *[marks] * (view.specials != "shown")),
        targets=np.stack(
            (np.broadcast_to(layer, row.shape), np.broadcast_to(head, row.shape), row, strongest), axis=-1
        )[kept],
        largest=largest[kept],
        unit=view.unit,
        names=("query", "layer · head"),
        column_notes=("",) * len(layer),
    )


def _without_marks(view: View, made: Drawing) -> Drawing:
    """The same with special tokens left out, as the view asks."""
    if view.specials == "shown":
        return made
    rows, columns = ~np.array(made.rows.special), ~np.array(made.columns.special)
    values, share = leave_out(made.values, made.rows.special, made.columns.special)
    return replace(
        made,
        values=_something(renormalise(values) if view.specials == "renormalised" else values),
        rows=made.rows.without_special(),
        columns=made.columns.without_special(),
        mask=None if made.mask is None else made.mask[rows][:, columns],
        targets=None if made.targets is None else made.targets[rows][:, columns],
        said=(*made.said, _specials_said(view, share)),
    )


def _something(values: ndarray) -> ndarray:
    if not values.size:
        raise CannotDraw("Without the start and end marks nothing is left to draw.")
    return values


def _targets(
    source: Source,
    layer: Float[ndarray, "head query key"],
    strongest: Int[ndarray, "row column"],
    rows: Side,
    columns: Side,
) -> Int[ndarray, "row column 4"]:
    """For each cell its strongest head, and of the pieces it stands for those with that head's largest value."""
    if not source.view.words:
        query, key = np.mgrid[: len(rows.labels), : len(columns.labels)]
        return np.stack((np.full_like(query, source.layer), strongest, query, key), axis=-1)
    found = np.zeros((*strongest.shape, 4), dtype=strongest.dtype)
    for (row, column), head in np.ndenumerate(strongest):
        from_, to = rows.positions[row], columns.positions[column]
        part = layer[head][np.ix_(from_, to)]
        at = np.unravel_index(int(part.argmax()), part.shape)
        found[row, column] = source.layer, head, from_[at[0]], to[at[1]]
    return found


def _thresholded(view: View, made: Drawing) -> Drawing:
    if not view.threshold:
        return made
    of_largest = view.show == "norms"
    threshold = view.threshold * (made.top if of_largest else 1.0)
    weak, share = below(made.values, threshold)
    named = f"{threshold:.3g}" + f" ({view.threshold:g} of the largest)" * of_largest
    said = _threshold_said(named, share)
    return replace(made, least=threshold, weak=weak, weak_label=f"below {threshold:.3g}", said=(*made.said, said))


def _threshold_said(threshold: str, share: float) -> str:
    return f"Cells below {threshold} are not drawn: {_percent(share)} of what is shown here is hidden by that."


def _specials_said(view: View, share: float) -> str:
    said = f"Start and end marks are left out: {_percent(share)} of the other tokens' rows lay on them."
    if view.specials == "renormalised":
        return f"{said} What is left of each row is scaled to sum to 1."
    return f"{said} Nothing is scaled up for it."


def _percent(share: float) -> str:
    if share == 0:
        return "nothing"
    return f"{share:.1%}" if share >= 0.0005 else "less than 0.1%"


def _heads_named(source: Source) -> str:
    view, heads = source.view, source.heads
    if view.combine == "one":
        return f"layer {source.layer} · head {source.head}"
    everything = len(heads) == source.attention.weights.shape[1]
    whose = "all heads" if everything else f"head{'s' * (len(heads) > 1)} {', '.join(map(str, heads))}"
    return f"layer {source.layer} · {'mean' if view.combine == 'mean' else 'largest'} of {whose}"


def shown_at(made: Drawing, chosen: Sequence[int] | None, *, entropy_of: int | None = None) -> tuple[int, int] | None:
    """The row and column at which a picture shows this query and key; `entropy_of`: in this column instead."""
    if chosen is None:
        return None
    row = made.rows.index_of(chosen[0])
    column = made.columns.index_of(chosen[1]) if entropy_of is None else entropy_of
    return None if row is None or column is None else (row, column)
