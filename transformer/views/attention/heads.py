"""All layers and heads of one kind of attention: as small matrices, and as bertviz draws them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.aggregation import Marks, below, leave_out, merge_words, renormalise
from transformer.analysis.attention.matrix_checks import put_together
from transformer.analysis.attention.silenced_heads import heads_replaced
from transformer.analysis.attention.vectors import Vectors, record_vectors
from transformer.analysis.attention.weight_checks import check_recorded, recorded_rows
from transformer.analysis.checks import Check, agree, check_decoding
from transformer.figures import bertviz
from transformer.figures.export import overview_figure
from transformer.figures.tables import head_tables
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.model.mask_rules import limits_of
from transformer.model.score_forms import SCORE_FORMS
from transformer.views.attention.matrix_checks import check_replaced
from transformer.views.attention.matrix_data import NOTHING_LEFT, groups, sides

_ROUNDING = 1e-4
"""A smaller difference of a weight is not due to an intervention."""
_DECIMALS = 5.1e-5
"""bertviz is given four decimals of each number."""


@dataclass(frozen=True)
class AllHeadsData:
    """The weights of every head of every layer."""

    weights: Float[ndarray, "layer head query key"]
    mask: Bool[ndarray, "layer query key"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    off: Bool[ndarray, "layer head"]
    """True for heads whose output, or whose block's output, is set to zero."""
    at_mean: Bool[ndarray, "layer head"]


@dataclass(frozen=True, kw_only=True)
class AllHeads:
    """Every head of every layer as a small matrix."""

    kind: KindName
    name = "{kind}-all-heads"
    explained = (
        "Each small matrix is a head; a row of them is a layer. Inside, each row is a token that asks and each column "
        "one that is asked; the stronger the colour, the greater the weight. Compare the patterns: where two heads "
        "look alike, they gather the same tokens, though each of them makes something else of what it gathers."
    )

    def data(self, lab: Lab, seen: Inspection) -> AllHeadsData:
        """The recorded weights, and which heads are switched off."""
        attention = seen.attention(self.kind)
        off = heads_replaced(seen, self.kind, ("zero",))
        at_mean = heads_replaced(seen, self.kind, ("mean",)) & ~off
        return AllHeadsData(attention.weights, attention.mask, attention.queries, attention.keys, off, at_mean)

    def figure(self, data: AllHeadsData, *, dark: bool = False) -> go.Figure:
        """The matrices, layers as rows."""
        off, at_mean = _places(data.off), _places(data.at_mean)
        return overview_figure(data.weights, kind=self.kind, mask=data.mask, off=off, at_mean=at_mean, dark=dark)

    def tables(self, data: AllHeadsData) -> tuple[DataFrame, ...]:
        """A table for each head."""
        return head_tables(data.weights, data.queries, data.keys)

    def checks(self, lab: Lab, seen: Inspection, data: AllHeadsData) -> Iterator[Check]:
        """Decodes again, with nothing recorded and with q, k and masks recorded."""
        yield from check_decoding(
            lab.model,
            source=seen.source_ids,
            target=seen.target_ids,
            log_probs=seen.log_probs,
            switches=seen.interventions,
        )
        for kind in seen.attentions:
            yield from check_recorded(lab.model, seen, kind)
        own = seen.attention(self.kind)
        yield agree(
            "The drawn weights are the recorded ones", data.weights, own.weights, 0, f"{own.weights.size:,} weights"
        )
        yield agree("The masked cells are those of the pass", data.mask, own.mask, 0, f"{own.mask.size:,} places")
        yield from check_replaced(lab, seen, self.kind, data.off, data.at_mean)


@dataclass(frozen=True)
class BertvizData:
    """The input of a drawing of bertviz."""

    weights: Float[ndarray, "layer head row column"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    off: Bool[ndarray, "layer head"]
    at_mean: Bool[ndarray, "layer head"]
    on_marks: float | None = None
    """The share of the other tokens' rows that lay on start and end marks, where these are left out."""
    hidden: float | None = None
    """The share of what is shown that a threshold hides."""
    q: Float[ndarray, "layer head query d_head"] | None = None
    """The neuron view's vectors."""
    k: Float[ndarray, "layer head key d_head"] | None = None
    causal: bool = False
    """True where the neuron view leaves out the keys after a query."""
    said: str = ""
    """Sentences on where the neuron view's softmax is not that of the scores it draws."""


@dataclass(frozen=True, kw_only=True)
class Bertviz:
    """One of bertviz's views: lines of a layer's heads, of all heads, or one head's q and k neuron by neuron."""

    kind: KindName
    picture: Literal["head", "model", "neuron"] = "head"
    layer: int = 0
    """The layer and the head that are shown first."""
    head: int = 0
    query: int | None = None
    """The query that the neuron view unfolds first; None: its last one."""
    words: bool = False
    marks: Marks = "shown"
    threshold: float = 0.0

    note = "figure.html is the document; numbers there have four decimals, here all"
    name = "{kind}-bertviz-{picture}"

    def data(self, lab: Lab, seen: Inspection) -> BertvizData:
        """The weights of every head merged, cut and thresholded; the neuron view takes them as they are."""
        attention = seen.attention(self.kind)
        off = heads_replaced(seen, self.kind, ("zero",))
        replaced = {"off": off, "at_mean": heads_replaced(seen, self.kind, ("mean",)) & ~off}
        if self.picture == "neuron":
            vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, *AttentionKind(self.kind).where)
            return BertvizData(
                attention.weights,
                attention.queries,
                attention.keys,
                **replaced,
                q=vectors.q,
                k=vectors.k,
                causal=_is_causal(self.kind, seen),
                said=" ".join(softmax_differences(lab, seen, self.kind, vectors)),
            )
        weights, on_marks, hidden = attention.weights, None, None
        rows, columns = sides(lab, seen, self.kind, words=self.words)
        if self.words:
            weights = merge_words(weights, groups(rows), groups(columns))
        if self.marks != "shown":
            n_layers, n_heads, _, n_columns = weights.shape
            gone = rows.special * (n_layers * n_heads)
            kept, on_marks = leave_out(weights.reshape(-1, n_columns), gone, columns.special)
            rows, columns = rows.without_special(), columns.without_special()
            if not kept.size:
                raise ValueError(NOTHING_LEFT)
            kept = renormalise(kept) if self.marks == "renormalised" else kept
            weights = kept.reshape(n_layers, n_heads, len(rows.labels), len(columns.labels))
        if self.threshold:
            weak, hidden = below(weights, self.threshold)
            weights = np.where(weak, np.float32(0), weights)
        return BertvizData(weights, rows.labels, columns.labels, **replaced, on_marks=on_marks, hidden=hidden)

    def document(self, data: BertvizData, *, dark: bool = False) -> str:
        """Returns bertviz's drawing as a page of its own."""
        return self._drawing(data, dark).html

    def height(self, data: BertvizData) -> int:
        """Returns the height of the drawing in pixels."""
        return self._drawing(data, False).height

    def _drawing(self, data: BertvizData, dark: bool) -> bertviz.View:
        shown = bertviz.Shown(
            data.weights,
            data.queries,
            data.keys,
            layer=self.layer,
            head=self.head,
            off=frozenset(_places(data.off)),
            at_mean=frozenset(_places(data.at_mean)),
            said=data.said,
        )
        if self.picture == "neuron":
            assert data.q is not None and data.k is not None, "the neuron view has vectors"
            return bertviz.neuron_view(shown, data.q, data.k, row=self.query, causal=data.causal, dark=dark)
        draw = bertviz.model_view if self.picture == "model" else bertviz.head_view
        return draw(shown, dark=dark)

    def figure(self, data: BertvizData, *, dark: bool = False) -> go.Figure:
        """The same weights as small matrices."""
        off, at_mean = _places(data.off), _places(data.at_mean)
        return overview_figure(data.weights, kind=self.kind, off=off, at_mean=at_mean, dark=dark)

    def tables(self, data: BertvizData) -> tuple[DataFrame, ...]:
        """A table for each head; of the neuron view also its q and k."""
        tables = head_tables(data.weights, data.queries, data.keys)
        if data.q is None or data.k is None:
            return tables
        dimensions = [str(index) for index in range(data.q.shape[-1])]
        tables += head_tables(data.q, data.queries, dimensions, name=" q")
        return tables + head_tables(data.k, data.keys, dimensions, name=" k")

    def checks(self, lab: Lab, seen: Inspection, data: BertvizData) -> Iterator[Check]:
        """Computes the weights again, puts them together again, and reads the drawing's numbers back."""
        yield from check_recorded(lab.model, seen, self.kind)
        yield from self._check_weights(lab, seen, data)
        drawing = self._drawing(data, False)
        found = drawing.attention()
        drawn, parameters = np.asarray(found["attn"]), drawing.parameters()
        layers = parameters.get("layer_names", parameters.get("include_layers"))
        rows, columns = drawn.shape[2:]
        how = f"{drawn.size:,} numbers read back out of the drawing, which has four decimals of each"
        weights = np.nan_to_num(data.weights[layers][:, :, :rows, :columns])
        yield agree("bertviz draws these weights", drawn, weights, _DECIMALS, how)
        yield from check_replaced(lab, seen, self.kind, data.off, data.at_mean)
        if data.q is not None and data.k is not None:
            layers_again = recorded_rows(lab.model, seen, self.kind)
            queries = np.array([[row.q for row in rows] for rows in layers_again]).swapaxes(1, 2)
            yield agree("The queries are those of the pass", data.q, queries, 0, "recorded again")
            keys = [rows[-1].k for rows in layers_again]
            yield agree("The keys are those of the pass", data.k, keys, 0, "recorded again")
            q, k = data.q[layers][:, :, :rows], data.k[layers][:, :, :columns]
            yield agree("bertviz draws these queries", found["queries"], q, _DECIMALS, "read back likewise")
            yield agree("bertviz draws these keys", found["keys"], k, _DECIMALS, "read back likewise")
        masks = seen.attention(self.kind).mask
        sees_later = any(np.flatnonzero(row).max(initial=0) > i for layer in masks for i, row in enumerate(layer))
        wanted = self.picture == "neuron" and self.kind == "decoder_self" and not sees_later
        yield agree("Keys after a query are left out where none is seen", data.causal, wanted, 0, "rows looked at")

    def _check_weights(self, lab: Lab, seen: Inspection, data: BertvizData) -> Iterator[Check]:
        own = seen.attention(self.kind).weights
        words, marks = (False, "shown") if self.picture == "neuron" else (self.words, self.marks)
        plain = {"largest": False, "rescaled": False}
        rows, columns = sides(lab, seen, self.kind, words=words)
        kept = [side.without_special() if marks != "shown" else side for side in (rows, columns)]
        again, whole, shown = np.zeros(data.weights.shape), 0.0, 0.0
        for at in np.ndindex(own.shape[:2]):
            whole += float(put_together(own[at][None], kept[0].positions, columns.positions, **plain).sum())
            again[at] = put_together(own[at][None], kept[0].positions, kept[1].positions, **plain)
            shown += float(again[at].sum())
            if marks == "renormalised":
                again[at] = put_together(own[at][None], *(s.positions for s in kept), largest=False, rescaled=True)
        if data.on_marks is not None:
            share = (whole - shown) / whole if whole else 0.0
            yield agree("The share of rows that lay on marks", data.on_marks, share, 1e-5, "all columns summed again")
        weak = again < (self.threshold if self.picture != "neuron" else 0.0)
        if data.hidden is not None:
            share = float(again[weak].sum() / again.sum()) if again.sum() else 0.0
            yield agree("The share that a threshold hides", data.hidden, share, 1e-5, "hidden values summed again")
        how = f"{again.size:,} values put together again, one by one"
        yield agree("The weights of every head", data.weights, np.where(weak, 0.0, again), 1e-5, how)


def softmax_differences(lab: Lab, seen: Inspection, kind: KindName, vectors: Vectors) -> tuple[str, ...]:
    """Returns sentences on where the weights of the pass are not the softmax of the scores of the neuron view."""
    config, attention, causal = lab.model.config, seen.attention(kind), _is_causal(kind, seen)
    score = f"{config.score}, {SCORE_FORMS[config.score].written}"
    specs = [(s, s.address.layer) for s in seen.interventions if s.address and s.address.layer is not None]
    specs = [(s, layer) for s, layer in specs if s.acts_in(*AttentionKind(kind).where)]
    n_queries, n_keys = len(attention.queries), len(attention.keys)
    closed = [
        f"{layer} · {query} · {key}"
        for spec, layer in specs
        for query, key in spec.forbidden
        if query < n_queries and key < (query + 1 if causal else n_keys)
    ]
    overwritten = [
        f"{layer} · {row.head} · {row.query}"
        for spec, layer in specs
        for row in spec.overwritten
        if row.query < n_queries and _is_overwritten(lab, seen, kind, vectors, (layer, row.head, row.query))
    ]
    said = {
        "This model does not divide q · k by √d: its own scores are √d times those drawn here.": (
            not config.scale_scores
        ),
        f"This model's scores are {score}: the products drawn here are not what softmax reads.": config.score != "dot",
        "ALiBi lowers a score by the distance after q · k, which is not drawn here; the softmax has it.": (
            config.positions == "alibi" and kind != "cross"
        ),
        "A switch overwrote rows of weights: there, Softmax shows the values it set, whatever q · k is "
        f"(layer · head · query {', '.join(overwritten)}).": bool(overwritten),
        **{
            f"{limit} Beyond, Softmax is 0, whatever q · k is.": True
            for limit in limits_of(config, AttentionKind(kind), but={m for s in seen.interventions for m in s.lifts})
        },
        "A key that a switch forbids has 0 under Softmax, whatever q · k is "
        f"(layer · query · key {', '.join(closed)}).": bool(closed),
    }
    return tuple(sentence for sentence, holds in said.items() if holds)


def _is_overwritten(lab: Lab, seen: Inspection, kind: KindName, vectors: Vectors, at: tuple[int, int, int]) -> bool:
    """Tells whether a row of weights is not the softmax of its scores: over a single key it always is."""
    layer, head, query = at
    q, k, attention = vectors.q[layer, head, query], vectors.k[layer, head], seen.attention(kind)
    allowed = attention.mask[layer, query]
    if not allowed.any():
        return False
    scores = (k @ q)[allowed].astype(np.float64) / (np.sqrt(len(q)) if lab.model.config.scale_scores else 1)
    softmax = np.exp(scores - scores.max())
    return bool(np.abs(softmax / softmax.sum() - attention.weights[layer, head, query][allowed]).max() > _ROUNDING)


def _is_causal(kind: KindName, seen: Inspection) -> bool:
    return kind == "decoder_self" and not np.triu(seen.attention(kind).mask, k=1).any()


def _places(heads: Bool[ndarray, "layer head"]) -> list[tuple[int, int]]:
    return [(layer, head) for layer, head in np.argwhere(heads).tolist()]
