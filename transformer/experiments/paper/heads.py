"""Table 3, row A: the number of heads at equal compute, on a task of symbols."""

from dataclasses import replace

from transformer.config import PRESETS, TrainConfig
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import train_briefly

TASK = "sort"
HEADS = (1, 2, 4, 8)
COMPARISONS = tuple(
    Comparison(
        name=f"{heads} heads",
        group="Several heads are better than one",
        metric="validation_loss",
        unit="loss with one head − loss with several, nats",
        first={"task": TASK, "heads": 1},
        second={"task": TASK, "heads": heads},
        least=0.0,
    )
    for heads in HEADS[1:]
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a tiny model with so many heads on `sort` for `size` steps."""
    model = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0, n_heads=int(cell["heads"]))
    train = TrainConfig(max_steps=size, batch_tokens=256, learning_rate=3e-3, warmup_steps=50, schedule="cosine")
    run = f"{cell['heads']} of {model.d_model // model.n_heads}"
    found = train_briefly(str(cell["task"]), model, train, seed=seed, run=run, every=size)
    return {name: found[name] for name in ("validation_loss", "exact_match")}


def _sentence(results: Results) -> str:
    told = []
    for heads in map(int, results.levels("heads")):
        share, loss = (results.mean(name, heads=heads) for name in ("exact_match", "validation_loss"))
        told.append(f"{heads}: {100 * share:.0f} % (loss {loss:.3f})")
    return f"Exact match on {TASK} by the number of heads, all models of the same size: {', '.join(told)}."


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
        "Tiny models (2 + 2 layers, d_model 64) learn to sort strings with Adam. Heads share the width: 1 head of 64 "
        "numbers, 2 of 32, 4 of 16, 8 of 8, so all have the same number of weights and need the same computation. The "
        "paper's models have d_model 512 and translate."
    ),
    factors=(
        Factor(name="task", label="task", explained="what is learned"),
        Factor(name="heads", label="heads", explained="how many of them share the width"),
    ),
    metrics=(
        Metric(name="validation_loss", label="validation loss, nats", explained="the loss on other strings at the end"),
        Metric(name="exact_match", label="exact match", explained="share of validation strings with no symbol wrong"),
    ),
    budgets=(
        Budget(
            name="full",
            says="1, 2, 4 and 8 heads, 400 steps, 5 seeds",
            levels={"task": (TASK,), "heads": HEADS},
            seeds=(0, 1, 2, 3, 4),
            size=400,
        ),
        Budget(
            name="small",
            says="1 to 8 heads, 150 steps, 3 seeds",
            levels={"task": (TASK,), "heads": HEADS},
            seeds=(0, 1, 2),
            size=150,
        ),
    ),
    charts=(
        Chart(title="Exact match", metric="exact_match", x="heads", by="task", log_x=True),
        Chart(title="Final loss", metric="validation_loss", x="heads", by="task", log_x=True),
    ),
    rule=(
        "This decides: the final loss with 8 heads must lie below that with one, for models of the same seed. Besides, "
        "that with 2 and with 4 should."
    ),
    objections={
        "The paper says that too many heads hurt, too.": (
            "That half is not tested: 8 is the largest number here, and the best."
        ),
        "The models have not finished learning.": (
            "They have not, and one head may only be slower. A budget in which all converge is not measured yet."
        ),
    },
    change_of_mind=(
        "Another task: sorting asks each head for little more than one kind of look. A larger model, where 8 heads "
        "are 64 numbers wide each instead of 8."
    ),
    competence=Competence(
        metric="exact_match", least=0.5, arms={f"heads: {n}": {"task": TASK, "heads": n} for n in (1, HEADS[-1])}
    ),
    measure=measure,
    judge=judge_by(COMPARISONS, _sentence, primary=f"{HEADS[-1]} heads"),
    again=again_by(COMPARISONS),
)
