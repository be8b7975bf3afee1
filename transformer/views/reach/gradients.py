"""The gradient's reach: how strongly what a model writes depends on source tokens near and far, for several models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.reach.input_gradient_checks import check_differences, check_means, gradients_again
from transformer.analysis.reach.input_gradients import Ids, each_pair, farthest, mean_by_distance, untrained
from transformer.figures import theme
from transformer.figures.heatmap import Side, square_matrix
from transformer.figures.labels import hover_label
from transformer.figures.lines import line
from transformer.figures.tables import matrix_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.model.families import AnyModel
from transformer.model.precise import in_double
from transformer.model.seq2seq import attention_layers

Weights = Literal["initial", "trained"]
_ALONE = "RNN, one vector"
_KINDS = {"rnn": "RNN with attention", "conv": "Convolutional", "transformer": "Transformer"}
_DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class ReachData:
    """Mean lengths of gradients, from distance 0 on."""

    models: tuple[str, ...]
    """Their kinds, with their names where there are several of one kind."""
    norm: Float[ndarray, "model distance"]
    """NaN where no token is so far away."""
    count: Int[ndarray, "model distance"]
    """Pairs of a source token and an output token at each distance."""


class _Reach:
    """The figure and the tables of both views."""

    weights: Weights

    def figure(self, data: ReachData, *, dark: bool = False) -> go.Figure:
        """Draws a line for each model over a logarithmic scale."""
        traces = []
        for index, (name, norm, count) in enumerate(zip(data.models, data.norm, data.count, strict=True)):
            there = np.flatnonzero(count)
            says = f"{hover_label(name)}<br>%{{x}} steps: %{{y:.3g}}<br>%{{customdata}} pairs of tokens<extra></extra>"
            drawn = line(
                there,
                norm[there],
                theme.run_colour(index, dark),
                name=name,
                dash=_DASHES[index % len(_DASHES)],
                mode="lines+markers",
                hovertemplate=says,
                customdata=count[there],
            )
            traces.append(drawn)
        colours = theme.palette(dark)
        return theme.figure(
            traces,
            dark,
            xaxis={"title": {"text": "steps from reading the token to writing the output"}},
            yaxis={
                "title": {"text": "mean length of the gradient"}, "type": "log", "dtick": 1, "showgrid": True,
                "gridcolor": colours.line, "exponentformat": "power",
            },
            height=380,
            showlegend=True,
            hovermode="closest",
            margin={"l": 64, "r": 12, "t": 56, "b": 48},
        )  # fmt: skip

    def tables(self, data: ReachData) -> tuple[DataFrame, ...]:
        """Returns means and counts, a row for each model."""
        rows, columns = list(data.models), [f"distance {d}" for d in range(data.norm.shape[1])]
        return (
            matrix_table("mean length of the gradient", data.norm, rows, columns),
            matrix_table("pairs of tokens", data.count, rows, columns),
        )

    def _measured(self, labs: Sequence[Lab], pairs: Sequence[Sequence[tuple[Ids, Ids]]]) -> ReachData:
        """Returns the means of each model over its pairs."""
        longest = max(map(farthest, pairs))
        found = [
            mean_by_distance(_model(lab, self.weights), own, longest) for lab, own in zip(labs, pairs, strict=True)
        ]
        norm, count = np.stack([each.norm for each in found]), np.stack([each.count for each in found])
        return ReachData(_names(labs), norm, count)

    def _checked(
        self, labs: Sequence[Lab], pairs: Sequence[Sequence[tuple[Ids, Ids]]], data: ReachData
    ) -> Iterator[Check]:
        for lab, name, own, norm, count in zip(labs, data.models, pairs, data.norm, data.count, strict=True):
            yield from check_means(_model(lab, self.weights), own, name, norm=norm, count=count)


@dataclass(frozen=True, kw_only=True)
class SentenceReach(_Reach):
    """The gradient of each token of an output at each token of the sentence, by the steps between them."""

    weights: Weights = "trained"
    name = "gradient-{weights}"

    def data(self, labs: tuple[Lab, ...], seen: tuple[Inspection, ...]) -> ReachData:
        """Takes the gradients while each model reads its own output, and averages them at each distance."""
        return self._measured(labs, _written(labs, seen))

    def checks(self, labs: tuple[Lab, ...], seen: tuple[Inspection, ...], data: ReachData) -> Iterator[Check]:
        """Takes the gradients again in double precision, and some by finite differences."""
        yield from self._checked(labs, _written(labs, seen), data)


@dataclass(frozen=True, kw_only=True)
class MeanReach(_Reach):
    """The same over many pairs, while each model reads the right output."""

    weights: Weights = "trained"
    name = "mean-gradient-{weights}"

    def data(self, labs: tuple[Lab, ...], sample: PairSample) -> ReachData:
        """Takes the gradients over all pairs, and averages them at each distance."""
        return self._measured(labs, _read(labs, sample))

    def checks(self, labs: tuple[Lab, ...], sample: PairSample, data: ReachData) -> Iterator[Check]:
        """Takes the gradients again pair by pair in double precision, and some by finite differences."""
        yield from self._checked(labs, _read(labs, sample), data)


@dataclass(frozen=True)
class MapData:
    """One model's gradients on a sentence."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    """The tokens of the output, each with the gradient of its own logit."""
    norm: Float[ndarray, "target source"]


@dataclass(frozen=True, kw_only=True)
class GradientMap:
    """The length of the gradient of each output token at each token of the sentence, for one of the models."""

    model: int = 0
    """Its place among the models."""
    weights: Weights = "trained"
    name = "gradient-map-{weights}"
    explained = (
        "A row for each token of the output, a column for each token of the sentence. A cell says how strongly the "
        "row's token depends on the column's: the length of the gradient of its logit at that token's embedding. In a "
        "recurrent model the dependence has to pass through every step in between; attention has a direct way."
    )

    def data(self, labs: tuple[Lab, ...], seen: tuple[Inspection, ...]) -> MapData:
        """Takes the gradients while the model reads its own output."""
        lab, (pair,) = labs[self.model], _written(labs, seen)[self.model]
        ((_, norm),) = each_pair(_model(lab, self.weights), [pair])
        end = lab.tokenizer.piece(lab.model.config.eos_id)
        targets = (*seen[self.model].target_tokens[: len(pair[1])], end)
        return MapData(seen[self.model].source_tokens, targets, norm)

    def figure(self, data: MapData, *, dark: bool = False) -> go.Figure:
        """Draws a row of cells for each output token."""
        texts = [
            [
                f"{hover_label(written)} ← {hover_label(read)}: {value:.3g}"
                for read, value in zip(data.sources, row, strict=True)
            ]
            for written, row in zip(data.targets, data.norm.tolist(), strict=True)
        ]
        return square_matrix(
            data.norm,
            texts,
            Side.of_tokens(data.targets, "output", dark),
            Side.of_tokens(data.sources, "sentence", dark),
            scale=theme.sequential(dark),
            limits=(0.0, float(data.norm.max()) or 1.0),
            legend="length of the gradient",
            dark=dark,
        )

    def tables(self, data: MapData) -> tuple[DataFrame, ...]:
        """Returns the lengths, a row for each output token."""
        return (matrix_table("length of the gradient", data.norm, numbered(data.targets), numbered(data.sources)),)

    def checks(self, labs: tuple[Lab, ...], seen: tuple[Inspection, ...], data: MapData) -> Iterator[Check]:
        """Takes the gradients again in double precision, and some by finite differences."""
        lab, (pair,) = labs[self.model], _written(labs, seen)[self.model]
        precise = in_double(_model(lab, self.weights))
        with np.errstate(divide="ignore"):
            shown, again = np.log(data.norm), np.log(gradients_again(precise, *pair))
        how = "a row for each output token in double precision; the logarithms compared"
        yield agree("These are the lengths of the gradients", shown, again, 1e-2, how)
        yield check_differences(precise, *pair, _names([lab])[0])


def _names(labs: Sequence[Lab]) -> tuple[str, ...]:
    """Returns the kind of each model, with its name where another one is of the same kind."""
    kinds = [_ALONE if not attention_layers(lab.model) else _KINDS[lab.model.config.family] for lab in labs]
    return tuple(
        kind if kinds.count(kind) == 1 else f"{kind}: {lab.name}" for kind, lab in zip(kinds, labs, strict=True)
    )


def _model(lab: Lab, weights: Weights) -> AnyModel:
    """Returns the model, or one of the same settings with random weights."""
    return lab.model if weights == "trained" else untrained(lab.model, lab.checkpoint.settings.train.seed)


def _written(labs: Sequence[Lab], seen: Sequence[Inspection]) -> list[list[tuple[Ids, Ids]]]:
    """Returns the sentence and each model's output, without end marks: an output that was cut off is read as if it had
    ended."""
    found = []
    for lab, each in zip(labs, seen, strict=True):
        target = each.target_ids[:-1] if each.ended else each.target_ids
        found.append([(each.source_ids[:-1], target[: lab.model.config.max_length - 1])])
    return found


def _read(labs: Sequence[Lab], sample: PairSample) -> list[list[tuple[Ids, Ids]]]:
    """Returns the pairs as each model's tokenizer cuts them."""
    return [
        [(tuple(lab.tokenizer.encode(pair.source)), tuple(lab.tokenizer.encode_target(pair.target)))
         for pair in sample.pairs]
        for lab in labs
    ]  # fmt: skip
