"""The entropy of attention against the layer: how widely the heads of each layer spread their weights."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.survey import Survey
from transformer.analysis.heads.survey_checks import check_entropy
from transformer.experiments.intervals import FEWEST, t_quantile
from transformer.experiments.recount import student
from transformer.figures import theme
from transformer.figures.axes import hover
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.figures.lines import line, points
from transformer.figures.tables import column_table, matrix_table
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName
from transformer.views.view import OF_FIGURE

_COLUMNS = ("mean", "half of the 95 % interval", "entropy of a uniform head")
_APART, _WIDTH = 0.26, 0.2
"""The distance between two kinds of attention in a layer, and the width of each; a layer is 1 wide."""
_PIXELS = 110
"""The smallest width of a layer."""


@dataclass(frozen=True)
class LayerEntropyData:
    """Entropies in nats."""

    heads: tuple[str, ...]
    """The addresses of all heads, as in "decoder.1.self.2"."""
    of_heads: Float[ndarray, " head"]
    """Mean entropy of each head's rows."""
    sublayers: tuple[str, ...]
    """The addresses of the attention sublayers, as in "decoder.1.self"."""
    of_layers: Float[ndarray, "sublayer 3"]
    """Mean over all heads and rows of a sublayer, half of its 95 % interval, and the entropy of a uniform head."""


@dataclass(frozen=True, kw_only=True)
class LayerEntropy:
    """The mean entropy of attention against the layer, for each kind of attention, with 95 % intervals over pairs."""

    chosen: str = field(default="", metadata=OF_FIGURE)
    """The address of the head that is ringed."""
    name = "layer-entropy"
    explained = (
        "How widely attention is spread, layer by layer: 0 where every query looks at one token, and at the dotted "
        "line where it looks at all tokens alike. Each small dot is a head, each large one the mean of its layer. The "
        "bar is the 95 % interval of that mean: how far it would move if the model read other sentences like these."
    )

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> LayerEntropyData:
        """Takes the mean of each head and of each layer, and Student's interval over the pairs."""
        blocks = [(kind, layer) for kind, own in found.layer_entropy.items() for layer in range(len(own))]
        mean, error, uniform = np.concatenate(list(found.layer_entropy.values())).T
        half = error * (t_quantile(found.n_pairs - 1) if found.n_pairs >= FEWEST else np.nan)
        return LayerEntropyData(
            heads=tuple(str(profile.at) for profile in found.profiles),
            of_heads=np.array([profile.entropy for profile in found.profiles]),
            sublayers=tuple(f"{kind.stack}.{layer}.{kind.sublayer}" for kind, layer in blocks),
            of_layers=np.stack((mean, half, uniform), axis=1),
        )

    def figure(self, data: LayerEntropyData, *, dark: bool = False) -> go.Figure:
        """Draws a line through the layers for each kind, its heads as small dots, and dotted where a uniform head would
        be."""
        rows = [Sublayer.of(at) for at in data.sublayers]
        kinds: list[KindName] = list(dict.fromkeys(row.kind for row in rows))
        asides = _APART * (np.arange(len(kinds)) - (len(kinds) - 1) / 2)
        traces = [trace for each in zip(kinds, asides, strict=True) for trace in self._traces(data, *each, dark)]
        n_layers = 1 + max(row.layer for row in rows)
        across = {"tickvals": list(range(n_layers)), "range": (-0.5, n_layers - 0.5), "title": {"text": "layer"}}
        up = {"title": {"text": "entropy, nats"}, "rangemode": "tozero", "showgrid": True}
        framed = {"height": 360, "showlegend": True, "margin": {"l": 52, "r": 8, "t": 36, "b": 52}}
        framed |= {"hovermode": "closest", "meta": {"smallest_width": 60 + _PIXELS * n_layers}}
        return theme.figure(traces, dark, xaxis=across, yaxis=up, **framed)

    def _traces(self, data: LayerEntropyData, kind: KindName, aside: float, dark: bool) -> Iterator[dict[str, Any]]:
        """Yields uniform heads, heads and layers of one kind, drawn this far beside the layer's place."""
        colour, text = theme.kind_colour(kind, dark), theme.palette(dark).text
        own, heads = (
            [place for place, at in enumerate(addresses) if Sublayer.of(at).kind == kind]
            for addresses in (data.sublayers, data.heads)
        )
        layers = [Sublayer.of(data.sublayers[at]) for at in own]
        x, (mean, half, uniform) = aside + np.array([layer.layer for layer in layers]), data.of_layers[own].T
        ends = np.add.outer(x, (-_WIDTH / 2, _WIDTH / 2, np.nan)).ravel()
        yield line(ends, np.repeat(uniform, 3), colour, dash="dot", showlegend=False, hoverinfo="skip")
        n_heads = len(heads) // len(own)
        places = np.add.outer(x, _WIDTH * ((np.arange(n_heads) + 0.5) / n_heads - 0.5)).ravel()
        texts = [f"{head_name(data.heads[at])}: {data.of_heads[at]:.3f} nats" for at in heads]
        ring = 2 * np.array([data.heads[at] == self.chosen for at in heads])
        small = {"color": colour, "opacity": 0.5, "size": 6 + ring, "line": {"color": text, "width": ring}}
        yield points(places, data.of_heads[heads], texts, marker=small, cliponaxis=False)
        texts = [
            f"<b>{layer.name}</b><br>mean {_with_interval(*values[:2])}<br>a uniform head: {values[2]:.3f} nats"
            for layer, values in zip(layers, data.of_layers[own], strict=True)
        ]
        large = {"color": colour, "size": 8}
        spread = {"array": half, "arrayminus": np.minimum(half, mean), "thickness": 1.5, "width": 6}
        style = {"mode": "lines+markers", "marker": large, "error_y": spread, "cliponaxis": False}
        yield line(x, mean, colour, name=AttentionKind(kind).short, **style) | hover(texts)

    def tables(self, data: LayerEntropyData) -> tuple[DataFrame, ...]:
        """Returns a row for each layer of a kind, then one for each head."""
        names = [head_name(head) for head in data.heads]
        return (
            matrix_table("layers, nats", data.of_layers, [Sublayer.of(at).name for at in data.sublayers], _COLUMNS),
            column_table("heads, nats", names, {"entropy": data.of_heads}),
        )

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: LayerEntropyData) -> Iterator[Check]:
        """Sums entropies row by row, each pair in a pass of its own, and finds the quantile by integration."""
        n = found.n_pairs
        args = lab.model, sample, lab.tokenizer, found, data.of_heads, data.of_layers
        yield from check_entropy(*args, student(n - 1) if n >= FEWEST else np.nan)


def _with_interval(mean: float, half: float) -> str:
    return f"{mean:.3f} nats" if np.isnan(half) else f"{mean:.3f} ± {half:.3f} nats"
