"""Table 3, rows B, C and E: narrower keys, depth and width, learned positions. Rows A and D have their own."""

from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from transformer.config import PRESETS, ModelConfig
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor
from transformer.experiments.paper.table_3_rows import FACTORS, METRICS, SEEDS, TASKS, tell, train_on
from transformer.experiments.results import Cell
from transformer.model.attention import MultiHeadAttention

_BASE = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0)
STEPS = (400, 1_600)
"""A training that has only begun, and one after which the base model sorts nearly without errors."""
ALIKE = 0.02
"""Learned positions give nearly identical results if the exact match is at most so far away."""


@dataclass(frozen=True)
class Variation:
    """A model that differs from the base model in one thing."""

    model: ModelConfig
    d_k: int = _BASE.d_head
    """Numbers in each query and key that take part in the score."""


BASE = "base"
VARIATIONS: dict[str, Variation] = {
    BASE: Variation(_BASE),
    "B: d_k 4": Variation(_BASE, d_k=4),
    "B: d_k 2": Variation(_BASE, d_k=2),
    "C: 1 layer": Variation(replace(_BASE, n_encoder_layers=1, n_decoder_layers=1)),
    "C: 3 layers": Variation(replace(_BASE, n_encoder_layers=3, n_decoder_layers=3)),
    "C: d_model 32": Variation(replace(_BASE, d_model=32, d_ff=128), d_k=8),
    "C: d_model 96": Variation(replace(_BASE, d_model=96, d_ff=384), d_k=24),
    "E: learned": Variation(replace(_BASE, positions="learned")),
}
_NARROW, _BIGGER, _POSITIONS = (
    "B: narrower keys hurt",
    "C: bigger models are better",
    "E: learned positions are as good",
)


_CLAIMED = {
    "d_k 4 − 16": (_NARROW, "B: d_k 4", BASE),
    "d_k 2 − 16": (_NARROW, "B: d_k 2", BASE),
    "1 layer − 2": (_BIGGER, "C: 1 layer", BASE),
    "2 layers − 3": (_BIGGER, BASE, "C: 3 layers"),
    "d_model 32 − 64": (_BIGGER, "C: d_model 32", BASE),
    "d_model 64 − 96": (_BIGGER, BASE, "C: d_model 96"),
    "learned − sinusoidal": (_POSITIONS, "E: learned", BASE),
}
"""The loss of one model minus that of another, at least 0; where positions are compared their exact match, alike."""


def _cell(task: str, model: str, steps: int) -> Cell:
    return {"task": task, "model": model, "steps": steps}


def _apart(name: str, task: str, steps: int) -> Comparison:
    """Returns the comparison that is claimed under this name, with one task and so many steps."""
    group, first, second = _CLAIMED[name]
    alike = group == _POSITIONS
    return Comparison(
        name=f"{task}, {steps:,} steps: {name}",
        group=group,
        metric="exact_match" if alike else "validation_loss",
        unit=f"{task}, difference in {'exact match' if alike else 'loss, nats'}",
        first=_cell(task, first, steps),
        second=_cell(task, second, steps),
        least=-ALIKE if alike else 0.0,
        most=ALIKE if alike else float("inf"),
    )


PRIMARY = _apart("d_k 4 − 16", TASKS[0], STEPS[-1])


COMPARISONS = tuple(_apart(name, task, steps) for task in TASKS for steps in reversed(STEPS) for name in _CLAIMED)


class _FirstOfEachHead(nn.Module):
    """Keeps the first d_k rows of each head's weights, times a factor, and sets the others to 0."""

    def __init__(self, n_heads: int, d_head: int, d_k: int, factor: float) -> None:
        super().__init__()
        kept = torch.zeros(n_heads, d_head)
        kept[:, :d_k] = factor
        self.register_buffer("kept", kept.flatten(), persistent=False)

    def forward(self, weights: Float[Tensor, "row ..."]) -> Float[Tensor, "row ..."]:
        return weights * self.kept.view(-1, *[1] * (weights.dim() - 1))


def narrow_keys(model: nn.Module, d_k: int) -> None:
    """Lets d_k numbers of each query and key take part in every score, as if the others were not there.

    Values keep their width, as in row B. Scores stay divided by √d_k: what is divided by the root of the full width is
    multiplied by the rest.
    """
    for attention in [module for module in model.modules() if isinstance(module, MultiHeadAttention)]:
        d_head = attention.query.out_features // attention.n_heads
        for linear, factor in ((attention.query, (d_head / d_k) ** 0.5), (attention.key, 1.0)):
            for name in ("weight", "bias"):
                kept = _FirstOfEachHead(attention.n_heads, d_head, d_k, factor)
                parametrize.register_parametrization(linear, name, kept)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains the variation."""
    variation = VARIATIONS[name := str(cell["model"])]
    alter = partial(narrow_keys, d_k=variation.d_k) if variation.d_k < variation.model.d_head else None
    return train_on(str(cell["task"]), variation.model, int(cell["steps"]), seed=seed, name=name, alter=alter)


EXPERIMENT = Experiment(
    name="table-3",
    title="Table 3, small",
    question="What do narrower keys, depth, width and learned positions change?",
    claim=(
        "Row B: “reducing the attention key size d_k hurts model quality” (25.8 BLEU with 64; 25.4 with 32, 25.1 with "
        "16). Row C: “as expected, bigger models are better” (2 layers 23.7, 4 layers 25.3, 8 layers 25.5). Row E: "
        "learned positions give “nearly identical results” (25.7)."
    ),
    section="Section 6.2, Table 3, rows B, C and E",
    setting=(
        "Tiny models (2 + 2 layers, d_model 64, 4 heads, d_k 16) learn to sort strings, and others to add numbers "
        "of up to three digits, with Adam and without label smoothing. Each variation differs from the base in one "
        "thing, and data, steps and learning rate are the same. d_ff stays four times d_model. "
        "Row A is the experiment on the number of heads, row D that on dropout and label smoothing; the Positions page "
        "holds the larger study of positions, with five kinds and longer strings than in training."
    ),
    factors=(
        FACTORS["task"],
        Factor(name="model", label="variation", explained="the row of the table and what is changed"),
        FACTORS["steps"],
    ),
    metrics=METRICS,
    budgets=(
        Budget(
            name="full",
            says="eight models, two tasks, 400 and 1,600 steps, 5 seeds",
            levels={"task": TASKS, "model": tuple(VARIATIONS), "steps": STEPS},
            seeds=SEEDS,
        ),
        Budget(
            name="small",
            says="row B alone, sorting, 1,600 steps, 3 seeds",
            levels={"task": TASKS[:1], "model": (BASE, "B: d_k 4", "B: d_k 2"), "steps": STEPS[-1:]},
            seeds=SEEDS[:3],
        ),
    ),
    charts=(
        Chart(title="Final loss", metric="validation_loss", x="model", by="task"),
        Chart(title="Exact match", metric="exact_match", x="model", by="task"),
    ),
    rule=(
        "Row B decides: on sorting, after 1,600 steps, the loss must be higher with d_k 4 than with 16. It should be "
        "higher too with d_k 2; with 1 layer than with 2, and with 2 than with 3; with d_model 32 than with 64, and "
        f"with 64 than with 96; with learned positions the exact match should lie within {100 * ALIKE:g} points of "
        "that with sinusoids. All this should hold for addition, and after 400 steps. Differences are between models "
        "of the same seed."
    ),
    objections={
        "Sorting does not need wide keys.": (
            "It may not: 4 numbers are enough to tell 20 symbols apart. The paper's keys tell thousands of words "
            "apart, so its finding and this one need not contradict each other. Addition asks for more, and is "
            "measured beside it."
        ),
        "A wide model may want another learning rate than a narrow one.": (
            "It may; all have the same here. Row B, which decides, changes no width but that of the keys."
        ),
        "A short training says how fast a model learns, not how good it becomes.": (
            "It does. That is why sorting decides after 1,600 steps, when the base model has learned it; the same "
            "after 400 shows what speed alone would have said. Addition is harder: after 1,600 steps it is speed still."
        ),
    },
    change_of_mind=(
        "A task with thousands of words, which keys must tell apart. Larger models: at this size one thing more or "
        "less is a large part of all there is."
    ),
    named_first=True,
    competence=Competence(
        metric="exact_match", least=0.5, arms={name: _cell(TASKS[0], name, STEPS[-1]) for name in (BASE, "B: d_k 4")}
    ),
    measure=measure,
    judge=judge_by(COMPARISONS, partial(tell, factor="model"), primary=PRIMARY.name),
    again=again_by(COMPARISONS),
)
