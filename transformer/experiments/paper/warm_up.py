"""Section 5.3: is the warm-up of the learning rate needed? With and without it, for both places of the layer norm."""

from dataclasses import replace
from itertools import product

from transformer.config import PRESETS, TrainConfig
from transformer.experiments.comparisons import Comparison, again_by, findings_of, judge_by
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.outcome import Outcome, outcomes_of
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import train_briefly

NORMS = ("post", "pre")
RATES = (0.0003, 0.001, 0.003)
WITH, WITHOUT = "warm-up", "none"
LAYERS = 4
"""Layers of the encoder, and of the decoder."""
PART = 10
"""The warm-up takes one step of so many."""
_NAMES = {"post": "post-norm, as in the paper", "pre": "pre-norm"}
PRIMARY = "post-norm, each at its best rate"


def _comparison(name: str, norm: str, best_of: str = "", **at: float) -> Comparison:
    return Comparison(
        name=name,
        group=_NAMES[norm],
        metric="validation_loss",
        unit="loss without warm-up − loss with it, nats",
        first={"norm": norm, **at, "start": WITHOUT},
        second={"norm": norm, **at, "start": WITH},
        least=0.0,
        best_of=best_of,
    )


COMPARISONS = (
    _comparison(PRIMARY, "post", best_of="rate"),
    *(_comparison(f"{norm}-norm, rate {rate:g}", norm, rate=rate) for norm, rate in product(NORMS, RATES)),
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a narrow, deep model on `reverse` for `size` steps."""
    model = replace(
        PRESETS["tiny"],
        n_encoder_layers=LAYERS,
        n_decoder_layers=LAYERS,
        dropout=0.0,
        embedding_dropout=0.0,
        norm=str(cell["norm"]),  # type: ignore[arg-type]
    )
    train = TrainConfig(
        max_steps=size,
        batch_tokens=256,
        schedule="constant",
        learning_rate=float(cell["rate"]),
        warmup_steps=size // PART if cell["start"] == WITH else 0,
    )
    run = f"{cell['norm']}-norm rate {cell['rate']:g} {cell['start']}"
    found = train_briefly("reverse", model, train, seed=seed, run=run, every=size)
    return {name: found[name] for name in ("validation_loss", "exact_match", "diverged")}


def _sentence(results: Results) -> str:
    told, outcomes = [], outcomes_of(findings_of(COMPARISONS, results), PRIMARY)
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
        f"Narrow models ({LAYERS} + {LAYERS} layers, d_model 64) learn to reverse strings with Adam for 1,200 steps, "
        "at three learning rates. With warm-up the rate rises linearly for the first tenth of the steps and then "
        "stays; without, it is the same from the first step. Gradients are clipped to norm 1 in both. Diverged means: "
        "the last loss is above the first, or no number."
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
            says="two layer norms, three rates, with and without, 1,200 steps, 5 seeds",
            levels={"norm": NORMS, "rate": RATES, "start": (WITH, WITHOUT)},
            seeds=(5, 6, 7, 8, 9),
            size=1_200,
        ),
        Budget(
            name="small",
            says="post-norm at a rate of 0.001 alone, 1,200 steps, 3 seeds",
            levels={"norm": NORMS[:1], "rate": RATES[1:2], "start": (WITH, WITHOUT)},
            seeds=(5, 6, 7),
            size=1_200,
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
        "Besides, both are compared at every rate, and with pre-norm. The loss is used because it still tells models "
        "apart whose exact match is near 0 or 100 %."
    ),
    objections={
        "Without warm-up a lower rate would do better.": (
            "It may have one: each start is judged at its own best rate, so neither pays for one that suits the other. "
            "The rate is chosen by the other seeds, so no seed chooses the rate it is judged at."
        ),
        "Clipping already tames the first steps.": (
            "It does, in both starts: gradients are clipped to norm 1. The paper does not mention clipping, and "
            "without it warm-up may matter more; that is not measured."
        ),
    },
    change_of_mind=(
        "A longer training: the warm-up takes 10 of 100 steps here, and 4 of 100 in the paper. Deeper models: a "
        "post-norm stack of 6 layers, as in the paper, has larger gradients near its output at the start than one of "
        "4. A rate that falls after the warm-up, as in equation 3."
    ),
    named_first=True,
    competence=Competence(
        metric="exact_match",
        least=0.5,
        arms={"with warm-up": {"norm": "post", "start": WITH}, "without": {"norm": "post", "start": WITHOUT}},
        best_of="rate",
    ),
    measure=measure,
    judge=judge_by(COMPARISONS, _sentence, primary=PRIMARY),
    again=again_by(COMPARISONS),
)
