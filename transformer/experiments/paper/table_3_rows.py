"""Shared parts of the experiments on rows of Table 3: two tasks, how a model is trained on one, what is told of it."""

from collections.abc import Callable

from transformer.config import ModelConfig, TrainConfig
from transformer.experiments.experiment import Factor, Metric
from transformer.experiments.results import Results
from transformer.experiments.training import train_briefly
from transformer.model.families import AnyModel

TASKS = ("sort", "addition")
"""One that every tiny model soon learns, and one that takes longer."""
SEEDS = (5, 6, 7, 8, 9)
"""None of those that were tried before the deciding comparisons were named."""
FACTORS = {
    "task": Factor(name="task", label="task", explained="what is learned"),
    "steps": Factor(name="steps", label="steps", explained="how long the training is"),
}
METRICS = (
    Metric(name="validation_loss", label="validation loss, nats", explained="the loss on unseen examples at the end"),
    Metric(name="exact_match", label="exact match", explained="share of unseen examples with no symbol wrong"),
)


def train_on(
    task: str,
    model: ModelConfig,
    steps: int,
    *,
    seed: int,
    name: str,
    alter: Callable[[AnyModel], object] | None = None,
) -> dict[str, float]:
    """Returns the loss and the exact match, on unseen examples, of a model trained without label smoothing.

    With label smoothing of 0.1 the loss could not fall below 0.1 nats, where differences say how closely a model
    smooths, not what it has learned. `alter`: see `train_briefly`.
    """
    train = TrainConfig(
        max_steps=steps,
        batch_tokens=256,
        learning_rate=3e-3,
        warmup_steps=50,
        schedule="cosine",
        label_smoothing=0.0,
    )
    found = train_briefly(task, model, train, seed=seed, run=f"{task} {name} {steps} steps", every=steps, alter=alter)
    return {metric: found[metric] for metric in ("validation_loss", "exact_match")}


def tell(results: Results, factor: str) -> str:
    """Returns a sentence with the exact match and the loss at each level of a factor after the longest training."""
    steps, told = max(map(int, results.levels("steps"))), []
    for task in map(str, results.levels("task")):
        of_task = []
        for level in results.levels(factor):
            cell = {"task": task, factor: level, "steps": steps}
            share, loss = (results.mean(metric, **cell) for metric in ("exact_match", "validation_loss"))
            of_task.append(f"{100 * share:.0f} % with {level} (loss {loss:#.2g})")
        told.append(f"on {task} {', '.join(of_task)}")
    return f"Exact match by {factor} after {steps:,} steps: {'; '.join(told)}."
