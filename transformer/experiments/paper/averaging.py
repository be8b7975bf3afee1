"""Section 6.1: the weights of the last checkpoints, averaged, against the last checkpoint alone."""

from collections import deque
from dataclasses import replace
from functools import lru_cache

from transformer.config import PRESETS, CorpusConfig, TrainConfig
from transformer.experiments.comparisons import Comparison, again_by, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import train_model
from transformer.model.families import AnyModel
from transformer.training.evaluation import evaluate, fitting
from transformer.training.state import Weights, load_weights, mean_weights, weights_of

COUNTS = (1, 5, 10)
EVERY = 10
"""Steps between checkpoints."""
PAIRS = 500
"""Validation strings that are scored."""
COMPARISONS = tuple(
    Comparison(
        name=f"{metric}, {count} averaged",
        group=f"{count} averaged are better than the last",
        metric=name,
        unit=unit,
        first={"task": "sort", "averaged": first},
        second={"task": "sort", "averaged": second},
        least=0.0,
    )
    for count in COUNTS[1:]
    for name, metric, unit, first, second in (
        ("loss", "loss", "loss of the last − loss of the average, nats", 1, count),
        ("exact_match", "exact match", "exact match of the average − that of the last", count, 1),
    )
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a tiny model for `size` steps, once for all counts, and scores the average of its last checkpoints."""
    return _scores(str(cell["task"]), seed, size)[int(cell["averaged"])]


@lru_cache(maxsize=1)
def _scores(task: str, seed: int, steps: int) -> dict[int, dict[str, float]]:
    recent: deque[Weights] = deque(maxlen=max(COUNTS))

    def keep(step: int, model: AnyModel) -> None:
        if (steps - step) % EVERY == 0:
            recent.append(weights_of(model))

    model = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0)
    train = TrainConfig(max_steps=steps, batch_tokens=256, learning_rate=3e-3, warmup_steps=50, schedule="paper")
    trained = train_model(CorpusConfig(name=task), model, train, seed=seed, run=task, on_step=keep)
    pairs = fitting(trained.corpus.validation, trained.tokenizer, model.max_length, PAIRS)
    found = {}
    for count in COUNTS:
        load_weights(trained.model, mean_weights(deque(list(recent)[-count:])))
        scored = evaluate(trained.model, pairs, trained.tokenizer)
        found[count] = {"loss": scored.loss, "exact_match": scored.exact_match}
    return found


def _sentence(results: Results) -> str:
    told = []
    for count in map(int, results.levels("averaged")):
        loss, right = (results.mean(name, averaged=count) for name in ("loss", "exact_match"))
        told.append(f"{count}: {100 * right:.1f} % (loss {loss:.3f})")
    return f"Exact match on sort by the number of last checkpoints that are averaged: {', '.join(told)}."


EXPERIMENT = Experiment(
    name="averaging",
    title="Averaged checkpoints",
    question="Is the average of the last checkpoints a better model than the last one?",
    claim=(
        "“For the base models, we used a single model obtained by averaging the last 5 checkpoints, which were written "
        "at 10-minute intervals. For the big models, we averaged the last 20 checkpoints.” The paper reports no scores "
        "without averaging."
    ),
    section="Section 6.1",
    setting=(
        "Tiny models (2 + 2 layers, d_model 64) learn to sort strings with Adam and the paper's schedule (inverse "
        f"square root). A checkpoint is kept every {EVERY} steps: 5 of them span 10 % of a training of 400 steps, the "
        f"paper's about 6 % of twelve hours. The last 1, 5 and 10 are averaged, weight by weight, and scored on "
        f"{PAIRS} other strings. All three are of one and the same training."
    ),
    factors=(
        Factor(name="task", label="task", explained="what is learned"),
        Factor(name="averaged", label="checkpoints averaged", explained="how many of the last ones"),
    ),
    metrics=(
        Metric(name="loss", label="validation loss, nats", explained="the loss on other strings"),
        Metric(name="exact_match", label="exact match", explained="share of these strings with no symbol wrong"),
    ),
    budgets=(
        Budget(
            name="full",
            says="400 steps, 5 seeds",
            levels={"task": ("sort",), "averaged": COUNTS},
            seeds=(0, 1, 2, 3, 4),
            size=400,
        ),
        Budget(
            name="small",
            says="200 steps, 3 seeds",
            levels={"task": ("sort",), "averaged": COUNTS},
            seeds=(0, 1, 2),
            size=200,
        ),
    ),
    charts=(
        Chart(title="Exact match", metric="exact_match", x="averaged", by="task"),
        Chart(title="Loss", metric="loss", x="averaged", by="task"),
    ),
    rule=(
        "This decides: the average of 5 checkpoints must have a lower loss than the last checkpoint of the same "
        "training. Besides, that of 10 should, and both should have a higher exact match."
    ),
    objections={
        "Is it the average, or the calmer end of a training?": (
            "Both are ways to calm the weights. With the paper's schedule the rate never falls to zero, and averaging "
            "does what a falling rate would do: see what would change our mind."
        ),
        "Five checkpoints are of one training.": (
            "As in the paper. Each average is compared with the last checkpoint of the same training, and the five "
            "trainings are what the interval is over."
        ),
    },
    change_of_mind=(
        "A schedule that falls to zero, as all shipped models use: it calms the weights by itself and leaves averaging "
        "little to do. Checkpoints from further back, which average in a worse model."
    ),
    competence=Competence(
        metric="exact_match",
        least=0.5,
        arms={"last checkpoint": {"task": "sort", "averaged": 1}, "5 averaged": {"task": "sort", "averaged": 5}},
    ),
    measure=measure,
    judge=judge_by(COMPARISONS, _sentence, primary="loss, 5 averaged"),
    again=again_by(COMPARISONS),
)
