"""Section 5.3: is the warm-up of the learning rate needed? With and without it, for both places of the layer norm."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean

from transformer.config import PRESETS, TrainConfig
from transformer.experiments.comparisons import Comparison, again_by, findings_of
from transformer.experiments.experiment import Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Outcome, Verdict, finding, outcomes_of
from transformer.experiments.recount import column
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import train_briefly

NORMS = ("post", "pre")
RATES = (0.001, 0.003, 0.01)
WITH, WITHOUT = "warm-up", "none"
STEPS_UP = 100
"""Steps of the warm-up."""
_NAMES = {"post": "post-norm, as in the paper", "pre": "pre-norm"}
_UNIT = "loss without warm-up − loss with it, nats"
PRIMARY = "post-norm, each at its best rate"
COMPARISONS = tuple(
    Comparison(
        name=f"{norm}-norm, rate {rate:g}",
        group=_NAMES[norm],
        metric="validation_loss",
        unit=_UNIT,
        first={"norm": norm, "rate": rate, "start": WITHOUT},
        second={"norm": norm, "rate": rate, "start": WITH},
        least=0.0,
    )
    for norm, rate in product(NORMS, RATES)
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a tiny model on `reverse` for `size` steps."""
    model = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0, norm=str(cell["norm"]))  # type: ignore[arg-type]
    train = TrainConfig(
        max_steps=size,
        batch_tokens=256,
        schedule="constant",
        learning_rate=float(cell["rate"]),
        warmup_steps=STEPS_UP if cell["start"] == WITH else 0,
    )
    run = f"{cell['norm']}-norm rate {cell['rate']:g} {cell['start']}"
    found = train_briefly("reverse", model, train, seed=seed, run=run, every=size)
    return {name: found[name] for name in ("validation_loss", "exact_match", "diverged")}


def judge(results: Results) -> Verdict:
    """Compares both starts at the best rate of each, then at every rate."""
    best = t_interval(_at_the_best_rates(results))
    findings = (
        finding(PRIMARY, best, group=_NAMES["post"], unit=_UNIT, least=0.0),
        *findings_of(COMPARISONS, results),
    )
    outcomes = outcomes_of(findings, PRIMARY)
    return Verdict(findings=findings, primary=PRIMARY, sentence=_sentence(results, outcomes))


def _at_the_best_rates(results: Results) -> list[float]:
    """Returns the loss without warm-up minus the loss with it for each seed, both at the rate whose mean loss over the
    other seeds is the least: no start is judged at a rate that suits the other, nor by the seed that chose it."""
    losses = {
        (start, rate): results.by_seed("validation_loss", norm="post", rate=rate, start=start)
        for start in (WITH, WITHOUT)
        for rate in results.levels("rate")
    }

    def best(start: str, seed: int) -> float:
        own = [held for (its, _), held in losses.items() if its == start and seed in held and len(held) > 1]
        return min(own, key=lambda held: fmean(loss for other, loss in held.items() if other != seed))[seed]

    seeds = [seed for seed in results.seeds if all(seed in held for held in losses.values())]
    return [best(WITHOUT, seed) - best(WITH, seed) for seed in seeds] if len(seeds) > 1 else []


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    rates = sorted({row["rate"] for row in rows})
    seeds = sorted({row["seed"] for row in rows})
    chosen: dict[str, dict[int, float]] = {WITH: {}, WITHOUT: {}}
    for start, at in chosen.items():
        by_rate = [column(rows, "validation_loss", norm="post", rate=rate, start=start) for rate in rates]
        for seed in seeds:
            sums = [
                (sum(loss for s, loss in each.items() if s != seed), each[seed]) for each in by_rate if seed in each
            ]
            if len(sums) == len(rates):
                at[seed] = sorted(sums)[0][1]
    gaps = [loss - chosen[WITH][seed] for seed, loss in chosen[WITHOUT].items() if seed in chosen[WITH]]
    return {PRIMARY: gaps if len(gaps) > 1 else []} | again_by(COMPARISONS)(rows)


def _sentence(results: Results, outcomes: Mapping[str, Outcome]) -> str:
    told = []
    for start in (WITH, WITHOUT):
        rows = [row for row in results.rows if row.has(start=start)]
        if rows:
            diverged = sum(row.values["diverged"] > 0 for row in rows)
            learned = sum(row.values["exact_match"] for row in rows) / len(rows)
            name = "with warm-up" if start == WITH else "without"
            told.append(
                f"{name}, {diverged} of {len(rows)} trainings diverged and exact match is {100 * learned:.0f} %"
            )
    helped = [name for name, outcome in outcomes.items() if outcome is Outcome.HOLDS]
    harmed = [name for name, outcome in outcomes.items() if outcome is Outcome.FAILS]
    said = f"On average over all settings: {'; '.join(told)}. "
    said += (
        f"Warm-up clearly lowers the final loss at: {'; '.join(helped)}. " if helped else "It clearly helps nowhere. "
    )
    return said + (f"It clearly raises it at: {'; '.join(harmed)}." if harmed else "It clearly harms nowhere.")


EXPERIMENT = Experiment(
    name="warm-up",
    title="Warm-up",
    question="Does raising the learning rate slowly at first help, and does it matter where the layer norm stands?",
    claim=(
        "The learning rate rises linearly for the first 4,000 of 100,000 steps and then falls with the root of the "
        "step (equation 3). The paper uses this for all its models, with the layer norm after each residual sum "
        "(post-norm), and shows no training without it: that the warm-up helps is its choice, not its measurement."
    ),
    section="Section 5.3, equation 3",
    setting=(
        f"Tiny models (2 + 2 layers, d_model 64) learn to reverse strings with Adam for 300 steps, at three learning "
        f"rates. With warm-up the rate rises linearly for {STEPS_UP} steps and then stays; without, it is the same "
        "from the first step. Gradients are clipped to norm 1 in both. Diverged means: the last loss is above the "
        "first, or no number."
    ),
    factors=(
        Factor(
            name="norm", label="layer norm", explained="after each residual sum (post) or before each sublayer (pre)"
        ),
        Factor(name="rate", label="learning rate", explained="the size of a step after the warm-up"),
        Factor(name="start", label="start", explained="the rate rises slowly (warm-up) or not at all (none)"),
    ),
    metrics=(
        Metric(name="validation_loss", label="validation loss, nats", explained="the loss on other strings at the end"),
        Metric(name="exact_match", label="exact match", explained="share of validation strings with no symbol wrong"),
        Metric(name="diverged", label="diverged", explained="share of trainings that ended worse than they began"),
    ),
    budgets=(
        Budget(
            name="full",
            says="two layer norms, three rates, with and without, 5 seeds",
            levels={"norm": NORMS, "rate": RATES, "start": (WITH, WITHOUT)},
            seeds=(0, 1, 2, 3, 4),
            size=300,
        ),
        Budget(
            name="small",
            says="the largest rate alone, 3 seeds",
            levels={"norm": NORMS, "rate": RATES[-1:], "start": (WITH, WITHOUT)},
            seeds=(0, 1, 2),
            size=300,
        ),
    ),
    charts=(
        Chart(title="Final loss", metric="validation_loss", x="rate", by="start", log_x=True),
        Chart(title="Exact match", metric="exact_match", x="rate", by="start", log_x=True),
        Chart(title="Diverged", metric="diverged", x="rate", by="start", log_x=True),
    ),
    rule=(
        "This decides: with the layer norm after each sum, as in the paper, the final validation loss must be lower "
        "with warm-up than without, each at its own best rate: that with the least mean loss of the other seeds. "
        "Besides, both are compared at every rate, and with pre-norm. The loss is used because exact match is near 0 "
        "for several settings of so short a training, whatever one does."
    ),
    change_of_mind=(
        "A longer training: the warm-up costs 100 of 300 steps here, and 4 of 100 in the paper. Deeper models: a "
        "post-norm stack of 6 layers has larger gradients near its output at the start than one of 2."
    ),
    measure=measure,
    judge=judge,
    again=again,
)
