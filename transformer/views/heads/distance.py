"""Attention distance: the distance between query and key, weighted by attention, for every head of self-attention."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.attention.mask_reference import may_see
from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.survey import Survey, survey_of
from transformer.analysis.heads.survey_checks import drawn_part
from transformer.data.batches import pair_batches
from transformer.figures import theme
from transformer.figures.heads.labels import Sublayer, head_name
from transformer.figures.tables import matrix_table
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind
from transformer.model.taps import Recorder
from transformer.text.pairs import Pair
from transformer.views.view import OF_FIGURE

_COLUMNS = ("mean", "spread", "mean of a uniform head", "spread of a uniform head")
_GAP = 1.0
"""The room between two layers, in heads."""
_PIXELS, _PIXELS_OF_NAME = 15, 104
"""The smallest width of a head and of a layer's name."""


@dataclass(frozen=True)
class DistanceData:
    """Distances in tokens."""

    heads: tuple[str, ...]
    """The addresses of the heads of self-attention, as in "decoder.1.self.2"."""
    tokens: Float[ndarray, "head 4"]
    """Mean and standard deviation of each head, then those of a uniform head on the same rows."""


@dataclass(frozen=True, kw_only=True)
class AttentionDistance:
    """The mean and spread of |query - key|, weighted by attention, for each head of self-attention.

    The mean attention distance of Dosovitskiy et al. (2021, figure 7), in tokens. Cross-attention has none: its queries
    and keys are places in two different sentences.
    """

    chosen: str = field(default="", metadata=OF_FIGURE)
    """The address of the head that is ringed."""
    name = "attention-distance"
    explained = (
        "How far away each head looks: the distance between the token that looks and the token looked at, averaged "
        "with the attention weights. A head at 1 looks at its neighbours; the dotted line is where a head would be "
        "that looks at all tokens alike. Cross-attention has no such distance: it looks into another sentence."
    )

    def data(self, lab: Lab, sample: PairSample, found: Survey) -> DistanceData:
        """Takes the share of each head's weight at each distance, then mean and standard deviation."""
        heads, tokens = [], []
        for kind, reach in found.reach.items():
            share = reach / reach.sum(axis=1, keepdims=True)
            apart = np.arange(reach.shape[1])
            mean = share @ apart
            spread = np.sqrt((share * (apart - mean[:, None]) ** 2).sum(axis=1))
            *of_heads, uniform = zip(mean, spread, strict=True)
            heads += [str(profile.at) for profile in found.of_kind(kind)]
            tokens += [own + uniform for own in of_heads]
        return DistanceData(tuple(heads), np.array(tokens))

    def figure(self, data: DistanceData, *, dark: bool = False) -> go.Figure:
        """Draws a dot for each head with its spread to both sides, and a dotted line for a uniform head."""
        colours, fig = theme.palette(dark), theme.figure((), dark)
        sublayers = [Sublayer.of(head) for head in data.heads]
        rows = list(dict.fromkeys(sublayers))
        x = [place + _GAP * rows.index(sublayer) for place, sublayer in enumerate(sublayers)]
        for row in rows:
            own = [place for place, sublayer in enumerate(sublayers) if sublayer == row]
            left, right, colour = x[own[0]], x[own[-1]], theme.kind_colour(row.kind, dark)
            mean, spread, uniform, uniform_spread = data.tokens[own].T
            fig.add_scatter(
                x=[left - 0.45, right + 0.45],
                y=uniform[[0, -1]],
                mode="lines",
                line={"color": colours.quiet, "width": 1.5, "dash": "dot"},
                hovertemplate=f"a uniform head: %{{y:.2f}} ± {uniform_spread[0]:.2f} tokens<extra></extra>",
            )
            ring = 2 * np.array([data.heads[place] == self.chosen for place in own])
            fig.add_scatter(
                x=[x[place] for place in own],
                y=mean,
                error_y={"array": spread, "arrayminus": np.minimum(spread, mean), "width": 0, "thickness": 1.5},
                mode="markers",
                marker={
                    "color": colour,
                    "opacity": 1,
                    "size": 9 + 2 * ring,
                    "line": {"color": colours.text, "width": ring},
                },
                customdata=[(head_name(data.heads[place]), data.tokens[place, 1]) for place in own],
                hovertemplate="<b>%{customdata[0]}</b><br>%{y:.2f} ± %{customdata[1]:.2f} tokens<extra></extra>",
            )
            below = {"yref": "paper", "y": 0, "yshift": -24, "yanchor": "top", "showarrow": False}
            fig.add_annotation(text=row.name, x=(left + right) / 2, font={"color": colour}, **below)
        numbers = [head.rpartition(".")[2] for head in data.heads]
        fig.update_xaxes(tickvals=x, ticktext=numbers, tickangle=0, tickfont={"size": 12, "color": colours.quiet})
        fig.update_xaxes(ticks="", range=[-1, x[-1] + 1], title=None)
        fig.update_yaxes(title_text="distance, tokens", rangemode="tozero", showgrid=True, gridcolor=colours.line)
        fig.update_layout(height=340, showlegend=False, hovermode="closest", margin={"l": 52, "r": 8, "t": 12, "b": 52})
        widest = max(_PIXELS * len(x), _PIXELS_OF_NAME * len(rows))
        return fig.update_layout(meta={"smallest_width": 60 + widest})

    def tables(self, data: DistanceData) -> tuple[DataFrame, ...]:
        """Returns the numbers, a row for each head."""
        return (matrix_table("distance in tokens", data.tokens, [head_name(head) for head in data.heads], _COLUMNS),)

    def checks(self, lab: Lab, sample: PairSample, found: Survey, data: DistanceData) -> Iterator[Check]:
        """Adds up distances and their squares over the queries of each sentence."""
        part, pairs, which = drawn_part(found, sample)
        how = f"{which} read again; each cut out of its batch and its queries gone through in turn"
        sums = _by_sentences(lab, pairs)
        others = survey_of(lab.model, {name: np.delete(rows, part, axis=0) for name, rows in found.sums.items()})
        for kind, reach in others.reach.items():
            powers = np.arange(reach.shape[1])[:, None] ** np.arange(3)
            *heads, uniform = reach @ powers
            for profile, own in zip(found.of_kind(kind), heads, strict=True):
                sums[str(profile.at)] += own
            for block in {str(profile.at).rpartition(".")[0] for profile in found.of_kind(kind)}:
                sums[f"{block}.uniform"] += uniform
        wanted = {name: (b / a, np.sqrt(c / a - (b / a) ** 2)) for name, (a, b, c) in sums.items()}
        again = [[*wanted[head], *wanted[_uniform(head)]] for head in data.heads]
        yield agree(
            "Distances are those in each sentence by itself", data.tokens, again, 1e-4 / len(found.sums["pairs"]), how
        )


@torch.no_grad()
def _by_sentences(lab: Lab, pairs: Sequence[Pair]) -> dict[str, Float[ndarray, "3"]]:
    """Returns weight, distance and squared distance added up for each head by its address, and for a uniform head of
    each block."""
    sums: dict[str, ndarray] = defaultdict(lambda: np.zeros(3))
    config = lab.model.config
    for rows, batch in pair_batches(pairs, lab.tokenizer, 700, max_length=config.max_length):
        recorder = Recorder(lambda site: site.tensor == "weights" and site.sublayer == "self")
        lab.model(batch.source, batch.target_in, batch.source_mask, batch.target_mask, tap=recorder)
        recorded = [(site, weights.double().numpy()) for site, weights in recorder.recording.items()]
        for place, pair in enumerate(pairs[row] for row in rows):
            lengths = {
                "encoder": len(lab.tokenizer.encode(pair.source)) + 1,
                "decoder": len(lab.tokenizer.encode_target(pair.target)) + 1,
            }
            for site, weights in recorded:
                n, kind = lengths[site.stack], AttentionKind.at(site.stack, "self")
                for query in range(n):
                    keys = [key for key in range(n) if may_see(config, kind, query, key)]
                    if len(keys) < 2:
                        continue
                    apart = np.array([abs(query - key) for key in keys])
                    powers = np.stack((apart**0, apart, apart**2), axis=1)
                    block = f"{site.stack}.{site.layer}.self"
                    sums[f"{block}.uniform"] += powers.mean(axis=0)
                    for head, row in enumerate(weights[place, :, query][:, keys] @ powers):
                        sums[f"{block}.{head}"] += row
    return sums


def _uniform(head: str) -> str:
    return f"{head.rpartition('.')[0]}.uniform"
