"""The figures of branches: the model's own output, and those on which a token was forced."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Bool, Float
from numpy import ndarray
from pandas import DataFrame

from transformer.analysis.checks import Check, agree
from transformer.analysis.steps.branches import branch_changes, prefix_tree
from transformer.analysis.steps.output_checks import SlowReader, check_changes, check_labels, check_written
from transformer.figures.steps.branches import TreeToken, branches_figure, two_branches_figure
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import column_table, numbered
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.steps.candidates import WITHOUT


@dataclass(frozen=True)
class BranchData:
    """One decoding of the sentence."""

    name: str
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    probabilities: Float[ndarray, " step"]
    changed: Bool[ndarray, " step"]
    """Marks the tokens that the fewest edits change from the model's own output; for that one, from the one without
    switches."""
    forced: tuple[tuple[int, int], ...]
    """Steps at which a token was forced, each with its id."""
    log_prob: float
    """Natural log of the output's probability."""
    ended: bool
    """False where it was cut off before an end mark."""

    @property
    def unreached(self) -> int | None:
        """The first step at which a token was to be forced that the output did not reach."""
        return next((step for step, _ in self.forced if step >= len(self.ids)), None)


BranchesData = tuple[BranchData, ...]


class _Outputs:
    """The data, tables and checks of some outputs of a sentence; subclasses draw them."""

    def data(self, lab: Lab, branches: Sequence[Inspection]) -> BranchesData:
        """Names the outputs and marks the tokens in which they differ."""
        own = _own(branches)
        changed = branch_changes(branches, own)
        found = []
        for index in self._chosen(len(branches)):
            branch, name = branches[index], WITHOUT if index < own else "output"
            if index > own:
                step, token = branch.forced[-1]
                name = f"branch {index - own}: {lab.tokenizer.piece(token).strip('▁')} at step {step}"
            ids = list(branch.target_ids)
            log_probs = branch.log_probs[np.arange(len(ids)), ids].astype(np.float64)
            found.append(
                BranchData(
                    name=name,
                    ids=branch.target_ids,
                    tokens=branch.target_tokens,
                    probabilities=np.exp(log_probs),
                    changed=changed[index, : len(ids)],
                    forced=branch.forced,
                    log_prob=float(log_probs.sum()),
                    ended=branch.ended,
                )
            )
        return tuple(found)

    def tables(self, data: BranchesData) -> tuple[DataFrame, ...]:
        """The probabilities of each output."""
        named = zip(numbered([branch.name for branch in data]), data, strict=True)
        return tuple(
            column_table(name, numbered(branch.tokens), {"probability": branch.probabilities}) for name, branch in named
        )

    def checks(self, lab: Lab, branches: Sequence[Inspection], data: BranchesData) -> Iterator[Check]:
        """Reads every output again, in double precision."""
        own = _own(branches)
        for index, shown in zip(self._chosen(len(branches)), data, strict=True):
            branch, before = branches[index], branches[0 if index <= own else own]
            reader = SlowReader(lab.model, branch.interventions)
            output = shown.ids, shown.forced, shown.probabilities, shown.log_prob
            yield from check_written(reader, branch.source_ids, *output)
            claim = f"{shown.name}: these tokens were forced".capitalize()
            yield agree(claim, np.ravel(shown.forced), np.ravel(branch.forced), 0, "steps and ids compared")
            yield check_labels(lab.tokenizer, shown.ids, shown.tokens)
            yield check_changes(before.target_tokens, shown.tokens, shown.changed)
            ended = shown.ids[-1] == lab.model.config.eos_id
            yield agree("It ended where it wrote an end mark", shown.ended, ended, 0, "its last token looked at")

    def _chosen(self, n: int) -> Sequence[int]:
        """Returns the indices of the outputs that are shown, among `n`."""
        return range(n)


@dataclass(frozen=True, kw_only=True)
class BranchLines(_Outputs):
    """The outputs one below the other; tokens that differ from the model's own output are coloured."""

    name = "branches"
    explained = (
        "The model's own output and, where you forced another token, what it wrote after that. What differs from its "
        "own output is coloured. The number under a token is its probability when it was written: a forced token can "
        "have a very small one."
    )

    def figure(self, data: BranchesData, *, dark: bool = False) -> go.Figure:
        """A row for each output."""
        changed = np.zeros((len(data), max(len(branch.ids) for branch in data)), dtype=bool)
        for row, branch in zip(changed, data, strict=True):
            row[: len(branch.ids)] = branch.changed
        names, tokens = [branch.name for branch in data], [branch.tokens for branch in data]
        return outputs_figure(
            tokens, names, changed, probabilities=[branch.probabilities for branch in data], dark=dark
        )


@dataclass(frozen=True, kw_only=True)
class BranchTree(_Outputs):
    """The outputs as one tree that grows to the right; what they share is drawn once."""

    walked: int = 0
    """The branch that is drawn in the accent colour."""
    name = "branch-tree"
    explained = (
        "All outputs as one tree that grows to the right. As long as two outputs agree they share one way; it forks at "
        "the step where another token was forced. Whether the ways come together again in what they say shows how much "
        "one token decides."
    )

    def figure(self, data: BranchesData, *, dark: bool = False) -> go.Figure:
        """A column a step, a row an output."""
        nodes = []
        for node in prefix_tree([branch.ids for branch in data]):
            first, share = data[node.outputs[0]], float(data[node.outputs[0]].probabilities[node.step])
            forced = any(node.step in dict(data[index].forced) for index in node.outputs)
            names = ", ".join(data[index].name for index in node.outputs)
            nodes.append(
                TreeToken(
                    node.step,
                    first.tokens[node.step],
                    node.row,
                    node.parent,
                    f"{share:.2f} !" if forced else f"{share:.2f}",
                    share,
                    self.walked in node.outputs,
                    f"probability {share:.6g}{', forced' if forced else ''}. {names}",
                )
            )
        return branches_figure(nodes, dark=dark)


@dataclass(frozen=True, kw_only=True)
class BranchPair(_Outputs):
    """Two of the outputs step by step: the probability of each token when it was written."""

    first: int
    second: int
    name = "branches-{first}-{second}"
    explained = (
        "Two outputs step by step: the probability of each token when it was written. Where a bar drops, the model was "
        "unsure after the words before it. After a forced token it often becomes sure again, because what follows fits "
        "the words already written."
    )

    def figure(self, data: BranchesData, *, dark: bool = False) -> go.Figure:
        """Bars side by side."""
        names, tokens = [branch.name for branch in data], [branch.tokens for branch in data]
        return two_branches_figure(names, tokens, [branch.probabilities for branch in data], dark=dark)

    def _chosen(self, n: int) -> Sequence[int]:
        """Returns the two; ValueError where there is no such branch."""
        if not all(0 <= index < n for index in (self.first, self.second)):
            raise ValueError(f"there are branches 0 to {n - 1}, not {self.first} and {self.second}")
        return self.first, self.second


def _own(branches: Sequence[Inspection]) -> int:
    """Returns the index of the model's own output: 1 where the first was decoded without the others' switches."""
    return int(branches[0].interventions != branches[-1].interventions)
