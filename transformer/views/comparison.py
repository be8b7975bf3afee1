"""The figures of Two at once: two outputs aligned, a head of each side with their difference, and heads matched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.weight_checks import Recomputed, recomputed_attention
from transformer.analysis.checks import Check, agree
from transformer.analysis.comparison.checks import check_alignment, check_matching, check_written
from transformer.analysis.comparison.common_tokens import Along, common_positions, cut, whole_alignment
from transformer.analysis.comparison.head_matching import Matching, Place, Read, match_heads
from transformer.figures.attention.comparison import aligned_figure
from transformer.figures.attention.matrix import difference_figure, for_column, head_heatmap
from transformer.figures.heads.tables import matching_figure
from transformer.figures.tables import column_table, matrix_table, numbered
from transformer.inspection.inspection import Attention, Inspection
from transformer.inspection.token_alignment import Aligned, align
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.views.view import OF_FIGURE

Side = Literal["left", "right"]
How = Literal["own", "forced", "aligned"]
"""Both sides' own decodings, both reading the left output, or own decodings of which some positions align."""
_RECOMPUTED = "decoded again, and computed from queries, keys and mask in double precision"
NAMES: tuple[Side, Side] = ("left", "right")


@dataclass(frozen=True)
class OutputsData:
    """Two outputs."""

    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    probabilities: tuple[Float[ndarray, " _"], Float[ndarray, " _"]]
    """The probability of each token when it was written."""
    aligned: Aligned

    @property
    def written(self) -> tuple[tuple[Sequence[str], Sequence[float]], ...]:
        """The tokens of each output, and the probability of each token."""
        return tuple((tokens, p.tolist()) for tokens, p in zip(self.tokens, self.probabilities, strict=True))

    @property
    def differing(self) -> Aligned:
        """The places at which their tokens differ."""
        a, b = self.tokens
        return tuple((i, j) for i, j in self.aligned if i is None or j is None or a[i] != b[j])

    def tables(self, names: Sequence[str]) -> tuple[DataFrame, ...]:
        """Returns the probabilities of both."""
        sides = zip(names, self.tokens, self.probabilities, strict=True)
        return tuple(column_table(name, numbered(tokens), {"probability": p}) for name, tokens, p in sides)

    def checks(self, names: Sequence[str], labs: Sequence[Lab], decoded: Sequence[Inspection]) -> Iterator[Check]:
        """Reads both outputs again in double precision, and counts their edits again."""
        for name, lab, seen, shown in zip(names, labs, decoded, self.probabilities, strict=True):
            yield from check_written(name.capitalize(), lab.model, seen, shown)
        yield check_alignment("No alignment of the two has fewer edits", *self.tokens, self.aligned)


@dataclass(frozen=True, kw_only=True)
class OutputPair:
    """Two outputs side by side, aligned by the fewest edits."""

    labels: tuple[str, str] = field(default=NAMES, metadata=OF_FIGURE)
    name = "outputs"
    explained = (
        "Two outputs, aligned by the fewest edits: tokens that belong together stand side by side. What differs is "
        "framed. The number at a token is the probability with which its own model wrote it."
    )

    def data(self, first: Lab, left: Inspection, second: Lab, right: Inspection) -> OutputsData:
        """Tokens, probabilities and the alignment."""
        tokens = left.target_tokens, right.target_tokens
        return OutputsData(tokens, (left.probabilities, right.probabilities), align(*tokens))

    def figure(self, data: OutputsData, *, dark: bool = False) -> go.Figure:
        """Both outputs down the page; what differs is framed."""
        return aligned_figure(data.tokens, data.probabilities, data.aligned, names=self.labels, dark=dark)

    def tables(self, data: OutputsData) -> tuple[DataFrame, ...]:
        return data.tables(NAMES)

    def checks(
        self, first: Lab, left: Inspection, second: Lab, right: Inspection, data: OutputsData
    ) -> Iterator[Check]:
        """Reads both outputs again in double precision, and counts their edits again."""
        yield from data.checks(NAMES, (first, second), (left, right))


@dataclass(frozen=True)
class HeadData:
    """One head of one side."""

    weights: Float[ndarray, "query key"]
    mask: Bool[ndarray, "query key"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True)
class CommonData:
    """Both heads with the same tokens at rows and columns."""

    left: Float[ndarray, "query key"]
    right: Float[ndarray, "query key"]
    difference: Float[ndarray, "query key"]
    """Right minus left."""
    mask: Bool[ndarray, "query key"]
    """The entries that either pass allowed."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    how: How
    rows: Along = ()
    """The positions that are kept of aligned ones."""
    columns: Along = ()


@dataclass(frozen=True)
class HeadPairData:
    """A head of each side, and both on common tokens."""

    left: HeadData
    right: HeadData
    common: CommonData | None
    problem: str = ""
    """Why there is no difference; empty where there is one."""


@dataclass(frozen=True, kw_only=True)
class HeadPair:
    """A head of each side, and their difference on the tokens that both have."""

    kind: KindName
    left: Place
    """(layer, head)."""
    right: Place
    shows: Literal["left", "right", "difference"] = field(default="difference", metadata=OF_FIGURE)

    @property
    def name(self) -> str:
        """The last part of the names of its files."""
        places = "-".join(f"layer{layer}-head{head}" for layer, head in (self.left, self.right))
        return f"{self.shows}-{self.kind}-{places}"

    def data(self, first: Lab, left: Inspection, second: Lab, right: Inspection) -> HeadPairData:
        """Both heads, and where their decodings have common tokens, these tokens' weights subtracted."""
        mine, theirs = left.attention(self.kind), right.attention(self.kind)
        heads = _head(mine, self.left), _head(theirs, self.right)
        try:
            how, rows, columns = _how(first, left, second, right, self.kind)
            a, b = _on_common_tokens(first, left, second, right, self.kind, how, rows, columns)
        except ValueError as error:
            return HeadPairData(*heads, None, str(error))
        before, after = a.weights[self.left], b.weights[self.right]
        mask = a.mask[self.left[0]] | b.mask[self.right[0]]
        common = CommonData(before, after, after - before, mask, a.queries, a.keys, how, rows, columns)
        return HeadPairData(*heads, common)

    def figure(self, data: HeadPairData, *, dark: bool = False) -> go.Figure:
        """One of the heads, or right minus left."""
        if self.shows == "difference":
            common = data.common
            if common is None:
                raise ValueError(data.problem)
            arrays = common.left, common.right, common.queries, common.keys
            return difference_figure(*arrays, kind=self.kind, mask=common.mask, names=NAMES, dark=dark)
        head = data.left if self.shows == "left" else data.right
        figure = head_heatmap(head.weights, head.queries, head.keys, kind=self.kind, mask=head.mask, dark=dark)
        return for_column(figure, len(head.queries), len(head.keys))

    def tables(self, data: HeadPairData) -> tuple[DataFrame, ...]:
        """The weights of a head, or those of both on common tokens and their difference."""
        if self.shows != "difference":
            head = data.left if self.shows == "left" else data.right
            return (matrix_table("weight", head.weights, numbered(head.queries), numbered(head.keys)),)
        common = data.common
        if common is None:
            raise ValueError(data.problem)
        named = {"left": common.left, "right": common.right, "right minus left": common.difference}
        labels = numbered(common.queries), numbered(common.keys)
        return tuple(matrix_table(name, values, *labels) for name, values in named.items())

    def checks(
        self, first: Lab, left: Inspection, second: Lab, right: Inspection, data: HeadPairData
    ) -> Iterator[Check]:
        """Decodes both again and computes their weights from queries, keys and masks; then aligns and subtracts."""
        sides = (("Left", first, left, self.left, data.left), ("Right", second, right, self.right, data.right))
        for name, lab, seen, place, shown in sides:
            again = _attention_again(lab, seen, None, self.kind)
            yield again.check(f"{name}: the weights of this head", shown.weights, again.weights[place], _RECOMPUTED)
            yield agree(f"{name}: the mask of the pass", shown.mask, again.mask[place[0]], 0, "decoded again")
        if data.common is not None:
            yield from self._common_checks(first, left, second, right, data, data.common)

    def _common_checks(
        self, first: Lab, left: Inspection, second: Lab, right: Inspection, data: HeadPairData, common: CommonData
    ) -> Iterator[Check]:
        """Aligns the tokens again, and computes both sides' weights on the common ones again."""
        if common.how == "aligned":
            for what, along, a, b in (
                ("Rows", common.rows, data.left.queries, data.right.queries),
                ("Columns", common.columns, data.left.keys, data.right.keys),
            ):
                whole = whole_alignment(along, len(a), len(b))
                yield check_alignment(f"{what} are aligned by the fewest edits", a, b, whole)
        on = left if common.how == "forced" else None
        sides = ((first, left, self.left, common.left), (second, right, self.right, common.right))
        masks = []
        for side, (lab, seen, place, shown) in enumerate(sides):
            again = _attention_again(lab, seen, on, self.kind)
            masks.append(_cells(again.mask[place[0]], side, common))
            claim = f"{NAMES[side].capitalize()}: the weights on common tokens"
            yield again.check(claim, shown, _cells(again.weights[place], side, common), _RECOMPUTED)
        claim = "The figure shows right minus left"
        yield agree(claim, common.difference, common.right - common.left, 1e-6, "subtracted again")
        yield agree("An entry is hidden where both passes hid it", common.mask, masks[0] | masks[1], 0, "decoded again")


@dataclass(frozen=True, kw_only=True)
class HeadMatching:
    """The distance of every head of one model to every head of the other, and the pairs that are closest in all."""

    kind: KindName
    texts: tuple[str, ...]
    """The sentences on which heads are compared, each with the left model's output."""
    chosen: Place | None = field(default=None, metadata=OF_FIGURE)
    """The head of the left model whose pair is framed boldly."""
    name = "matching-{kind}"
    explained = (
        "Each cell is the distance between one head of the left model (row) and one of the right model (column), "
        "measured on the same tokens: 0 if both look at exactly the same ones, 1 if they never look at the same. "
        "Which head does what depends on the random seed, so the framed cells pair each head with one of the other "
        "model, such that all distances together are as small as possible."
    )

    def data(self, first: Lab, left: Inspection, second: Lab, right: Inspection) -> Matching:
        """All distances, and the best pairing."""
        return match_heads(*self._reads(first, left, second, right))

    def figure(self, data: Matching, *, dark: bool = False) -> go.Figure:
        """The distances as a matrix; pairs are framed."""
        chosen = None if self.chosen is None else data.heads.index(self.chosen)
        given = data.distances, data.heads, data.others, data.partners
        return matching_figure(*given, chosen=chosen, kind=self.kind, names=NAMES, dark=dark)

    def tables(self, data: Matching) -> tuple[DataFrame, ...]:
        rows, columns = (
            [f"{name} layer {layer} head {head}" for layer, head in heads]
            for name, heads in zip(NAMES, (data.heads, data.others), strict=True)
        )
        return (matrix_table("distance", data.distances, rows, columns),)

    def checks(self, first: Lab, left: Inspection, second: Lab, right: Inspection, data: Matching) -> Iterator[Check]:
        """Reads all sentences again, compares heads one pair at a time, and pairs them by another method."""
        yield from check_matching(*self._reads(first, left, second, right), data)

    def _reads(self, first: Lab, left: Inspection, second: Lab, right: Inspection) -> tuple[list[Read], list[Read]]:
        """Returns the attention of both while they read each text and the left model's output of it."""
        if first.tokenizer.vocabulary() != second.tokenizer.vocabulary():
            raise ValueError(
                "heads are matched by what they attend to in the same tokens; these two models cut sentences into "
                "different ones"
            )
        reads: tuple[list[Read], list[Read]] = [], []
        for text in self.texts:
            seen = first.inspect(text, left.interventions)
            for found, lab, side in ((reads[0], first, left), (reads[1], second, right)):
                side.attention(self.kind)  # says what a model lacks
                attention = lab.attention_on(seen, side.interventions)[AttentionKind(self.kind)]
                found.append(Read(attention.weights, attention.mask))
        return reads


def _head(attention: Attention, place: Place) -> HeadData:
    layer, head = place
    n_layers, n_heads = attention.weights.shape[:2]
    if not (0 <= layer < n_layers and 0 <= head < n_heads):
        raise ValueError(f"layer {layer}, head {head} does not exist: there are {n_layers} layers of {n_heads} heads")
    return HeadData(attention.weights[place], attention.mask[layer], attention.queries, attention.keys)


def _how(first: Lab, left: Inspection, second: Lab, right: Inspection, kind: KindName) -> tuple[How, Along, Along]:
    """Returns the way in which two decodings have the same tokens at rows and columns; ValueError for none."""
    mine, theirs = left.attention(kind), right.attention(kind)
    if (mine.queries, mine.keys) == (theirs.queries, theirs.keys):
        return "own", (), ()
    if left.text != right.text:
        rows = common_positions(mine.queries, theirs.queries, "rows")
        return "aligned", rows, common_positions(mine.keys, theirs.keys, "columns")
    if first.tokenizer.vocabulary() != second.tokenizer.vocabulary():
        raise ValueError(
            "these two models cut sentences into different tokens, so a row or a column of one does not stand for one "
            "of the other"
        )
    return "forced", (), ()


def _on_common_tokens(
    first: Lab, left: Inspection, second: Lab, right: Inspection, kind: KindName, how: How, *along: Along
) -> tuple[Attention, Attention]:
    """Returns the attention of both sides with the same tokens at rows and columns."""
    if how == "forced":  # both read what the left one wrote
        read = (lab.attention_on(left, seen.interventions) for lab, seen in ((first, left), (second, right)))
        return tuple(found[AttentionKind(kind)] for found in read)  # type: ignore[return-value]
    mine, theirs = left.attention(kind), right.attention(kind)
    return cut(mine, theirs, *along) if how == "aligned" else (mine, theirs)


def _attention_again(lab: Lab, seen: Inspection, on: Inspection | None, kind: KindName) -> Recomputed:
    """Returns the attention of one kind, computed again, with the output of `on` forced if given."""
    source, forced = seen.source_ids, dict(seen.forced)
    if on is not None:
        source, forced = on.source_ids, dict(enumerate(on.target_ids))
    return recomputed_attention(lab.model, source, seen.interventions, forced, kind)


def _cells(array: ndarray, side: int, common: CommonData) -> ndarray:
    """Returns the entries of a side's array that are compared."""
    if common.how != "aligned":
        return array
    return array[np.ix_([pair[side] for pair in common.rows], [pair[side] for pair in common.columns])]
