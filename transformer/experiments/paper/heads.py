"""Table 3, row A: the number of heads at equal compute, on two tasks."""

from dataclasses import replace
from functools import partial

from transformer.config import PRESETS
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor
from transformer.experiments.paper.table_3_rows import FACTORS, METRICS, SEEDS, TASKS, tell, train_on
from transformer.experiments.results import Cell

HEADS = (1, 4, 8, 16, 32)
"""The numbers of heads in the paper's table."""
USUAL = 8
"""The number of heads that the paper's model has."""
STEPS = (400, 3_200)
"""A training that has only begun, and one after which a model with the usual number of heads sorts without errors."""
_SEVERAL, _TOO_MANY = "Several heads are better than one", "Too many are worse"


def _cell(task: str, heads: int, steps: int) -> Cell:
    return {"task": task, "heads": heads, "steps": steps}


def _apart(first: int, second: int, task: str, steps: int) -> Comparison:
    """Returns what must be at least 0: the loss with one number of heads minus that with another."""
    return Comparison(
        name=f"{task}, {steps:,} steps: {first} − {second}",
        group=_SEVERAL if first < second else _TOO_MANY,
        metric="validation_loss",
        unit=f"{task}, difference in loss, nats",
        first=_cell(task, first, steps),
        second=_cell(task, second, steps),
        least=0.0,
    )


PRIMARY = _apart(1, USUAL, TASKS[0], STEPS[-1])
COMPARISONS = tuple(
    _apart(*pair, task, steps)
    for task in TASKS
    for steps in reversed(STEPS)
    for pair in ((1, USUAL), (HEADS[-1], USUAL))
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a tiny model with so many heads."""
    model = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0, n_heads=int(cell["heads"]))
    name = f"{model.n_heads} of {model.d_model // model.n_heads}"
    return train_on(str(cell["task"]), model, int(cell["steps"]), seed=seed, name=name)


EXPERIMENT = Experiment(
    name="heads",
    title="Number of heads",
    question="Are several attention heads better than one of the same total width?",
    claim=(
        "Table 3, row A varies the number of heads and keeps the amount of computation: one head is 0.9 BLEU worse "
        "than the best setting, and quality drops with too many heads too (8: 25.8, 1: 24.9, 32: 25.4)."
    ),
    section="Section 6.2, Table 3, row A",
    setting=(
        "Tiny models (2 + 2 layers, d_model 64) learn to sort strings, and others to add numbers of up to three "
        "digits, with Adam and without label smoothing. Heads share the width: 1 head of 64 numbers, 4 of 16, and so "
        "on to 32 of 2, so all have the same number of weights and need the same computation. The paper's models have "
        "d_model 512 and translate."
    ),
    factors=(
        FACTORS["task"],
        Factor(name="heads", label="heads", explained="how many of them share the width"),
        FACTORS["steps"],
    ),
    metrics=METRICS,
    budgets=(
        Budget(
            name="full",
            says="1 to 32 heads, two tasks, 400 and 3,200 steps, 5 seeds",
            levels={"task": TASKS, "heads": HEADS, "steps": STEPS},
            seeds=SEEDS,
        ),
        Budget(
            name="small",
            says="1, 8 and 32 heads, sorting, 3,200 steps, 3 seeds",
            levels={"task": TASKS[:1], "heads": (1, USUAL, HEADS[-1]), "steps": STEPS[-1:]},
            seeds=SEEDS[:3],
        ),
    ),
    charts=(
        Chart(title="Exact match", metric="exact_match", x="heads", by="task", log_x=True),
        Chart(title="Final loss", metric="validation_loss", x="heads", by="task", log_x=True),
    ),
    rule=(
        "This decides: on sorting, after 3,200 steps, the loss with 8 heads must lie below that with one, for models "
        "of the same seed. Besides, it should lie below that with 32, which is the other half of the claim; both "
        "should hold for addition, and after 400 steps."
    ),
    objections={
        "One head may only be slower.": (
            "That is why sorting decides after 3,200 steps, when the models have learned it. The chart after 400 steps "
            "shows what a judgement of speed would have said. Addition is harder, and 3,200 steps may not be enough."
        ),
        "Heads of two numbers are no heads.": (
            "They are the smallest that share this width 32 times; the paper's 32 heads have 16 numbers each. What "
            "becomes too many depends on the width, so only the direction is tested, not the number."
        ),
    },
    change_of_mind=(
        "A task with more kinds of looks: sorting asks each head for little more than one. A larger model, where 8 "
        "heads are 64 numbers wide each instead of 8."
    ),
    named_first=True,
    competence=Competence(
        metric="exact_match",
        least=0.5,
        arms={f"heads: {n}": _cell(TASKS[0], n, STEPS[-1]) for n in (1, USUAL)},
    ),
    measure=measure,
    judge=judge_by(COMPARISONS, partial(tell, factor="heads"), primary=PRIMARY.name),
    again=again_by(COMPARISONS),
)
