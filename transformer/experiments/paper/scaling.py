"""Section 3.2.1: why scores are divided by the root of d_k, in numbers at the start and in what is learned."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.config import PRESETS, ModelConfig, TrainConfig
from transformer.experiments.comparisons import Comparison, again_by, findings_of
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.intervals import exponents, t_interval
from transformer.experiments.outcome import Finding, Verdict, finding
from transformer.experiments.recount import column, power
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import train_briefly
from transformer.model.scores import Additive, DotProduct
from transformer.training.devices import seeded

SCORES = ("scaled", "unscaled", "additive")
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
SMALL, LARGE = 16, 64
"""The d_k at which models are trained: the same width of 64, with four heads or with one."""
QUERIES, KEYS = 256, 32
_VARIANCE, _SOFTMAX = "The variance of q · k is d_k", "The softmax passes on less gradient"
_SAME, _WORSE = "Similar for small d_k", "Unscaled scores are worse for large d_k"
COMPARISONS = tuple(
    Comparison(
        name=f"{first} − unscaled, d_k = {d_k}",
        group=group,
        metric="exact_match",
        unit="difference in exact match",
        first={"score": first, "d_k": d_k},
        second={"score": "unscaled", "d_k": d_k},
        least=least,
        most=most,
    )
    for first, d_k, group, least, most in (
        ("additive", SMALL, _SAME, -0.1, 0.1),
        ("additive", LARGE, _WORSE, 0.0, math.inf),
        ("scaled", LARGE, _WORSE, 0.0, math.inf),
    )
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Measures scores of random queries and keys; at two widths a model is trained for `size` steps as well."""
    kind, d_k = str(cell["score"]), int(cell["d_k"])
    with seeded(seed, torch.device("cpu")), torch.no_grad():
        q, k = torch.randn(1, 1, QUERIES, d_k), torch.randn(1, 1, KEYS, d_k)
        score = Additive(1, d_k) if kind == "additive" else DotProduct(scaled=kind == "scaled")
        found = _at_the_start(score(q, k)[0, 0].double())
    if size and d_k in (SMALL, LARGE):
        model = _model(kind, d_k)
        learned = train_briefly("reverse", model, _training(size), seed=seed, run=f"{kind} d_k {d_k}")
        found |= {name: learned[name] for name in ("exact_match", "steps_to_target", "loss")}
    return found


def _at_the_start(scores: Float[Tensor, "query key"]) -> dict[str, float]:
    """Returns the variance of scores, the entropy of their softmax as a share of the largest, and the mean norm of its
    derivatives by the scores: the Jacobian diag(p) − p pᵀ."""
    p = scores.softmax(dim=-1)
    entropy = -(p * p.clamp_min(1e-300).log()).sum(dim=-1).mean() / math.log(p.size(1))
    jacobian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return {
        "variance": float(scores.var()),
        "entropy": float(entropy),
        "gradient": float(jacobian.flatten(1).norm(dim=1).mean()),
    }


def _model(kind: str, d_k: int) -> ModelConfig:
    tiny = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0, n_heads=PRESETS["tiny"].d_model // d_k)
    return replace(tiny, score="additive" if kind == "additive" else "dot", scale_scores=kind != "unscaled")


def _training(steps: int) -> TrainConfig:
    return TrainConfig(max_steps=steps, batch_tokens=512, learning_rate=3e-3, warmup_steps=50, schedule="cosine")


def judge(results: Results) -> Verdict:
    """Compares growth with d_k, gradients at the largest d_k, and what was learned at a small and a large d_k."""
    growth = {
        kind: t_interval([exponents(*_by_width(results, kind, seed))[0] for seed in results.seeds])
        for kind in ("unscaled", "scaled")
    }
    widest = max(map(int, results.levels("d_k")))
    gradients = _gradients(results, widest)
    findings = (
        finding("unscaled: exponent of d_k", growth["unscaled"], group=_VARIANCE, unit="exponent", least=0.9, most=1.1),
        finding("scaled: exponent of d_k", growth["scaled"], group=_VARIANCE, unit="exponent", least=-0.1, most=0.1),
        finding(
            f"unscaled over scaled, d_k = {widest}",
            t_interval(gradients),
            group=_SOFTMAX,
            unit="ratio of gradients",
            least=0.0,
            most=0.5,
        ),
        *findings_of(COMPARISONS, results),
    )
    primary = f"scaled − unscaled, d_k = {LARGE}"
    return Verdict(findings=findings, primary=primary, sentence=_sentence(results, findings, widest))


def _by_width(results: Results, kind: str, seed: int) -> tuple[list[tuple[float]], list[float]]:
    rows = [row for row in results.rows if row.seed == seed and row.has(score=kind)]
    return [(float(row.cell["d_k"]),) for row in rows], [row.values["variance"] for row in rows]


def _gradients(results: Results, d_k: int) -> list[float]:
    unscaled, scaled = (results.by_seed("gradient", score=kind, d_k=d_k) for kind in ("unscaled", "scaled"))
    return [unscaled[seed] / scaled[seed] for seed in unscaled if seed in scaled]


def _sentence(results: Results, findings: Sequence[Finding], widest: int) -> str:
    variance = results.mean("variance", score="unscaled", d_k=widest)
    said = (
        f"At d_k = {widest} the variance of unscaled scores is {variance:.0f}, and the softmax passes on "
        f"{findings[2].estimate:.2g} times the gradient that it passes on with scaled scores."
    )
    for d_k in (SMALL, LARGE):
        means = {kind: list(results.by_seed("exact_match", score=kind, d_k=d_k).values()) for kind in SCORES}
        if all(means.values()):
            told = ", ".join(f"{kind} {100 * sum(values) / len(values):.0f} %" for kind, values in means.items())
            said += f" Exact match after training with d_k = {d_k}: {told}."
    return said


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    widest = max(row["d_k"] for row in rows)
    found: dict[str, list[float]] = {}
    for kind in ("unscaled", "scaled"):
        slopes = []
        for seed in seeds:
            own = [row for row in rows if (row["score"], row["seed"]) == (kind, seed)]
            slopes.append(power([row["d_k"] for row in own], [row["variance"] for row in own]))
        found[f"{kind}: exponent of d_k"] = slopes
    plain, divided = (column(rows, "gradient", score=kind, d_k=widest) for kind in ("unscaled", "scaled"))
    found[f"unscaled over scaled, d_k = {widest}"] = [plain[s] / divided[s] for s in plain if s in divided]
    return found | again_by(COMPARISONS)(rows)


EXPERIMENT = Experiment(
    name="scaling",
    title="Scaled scores",
    question="Do dot products grow with d_k until the softmax stops learning, and does dividing by √d_k cure it?",
    claim=(
        "Additive and dot-product attention perform similarly for small d_k (the width of a query), but additive "
        "attention outperforms dot products without scaling for larger d_k. “We suspect that for large values of d_k, "
        "the dot products grow large in magnitude, pushing the softmax function into regions where it has extremely "
        "small gradients.” The variance of q · k is d_k; dividing by √d_k makes it 1."
    ),
    section="Section 3.2.1 and its footnote 4",
    setting=(
        f"At the start: {QUERIES} random queries meet {KEYS} random keys, each number from a normal distribution with "
        "mean 0 and variance 1, as the footnote assumes. After training: tiny models (2 + 2 layers, d_model 64) learn "
        f"to reverse strings with Adam, with four heads (d_k = {SMALL}) or one (d_k = {LARGE}). The paper reports no "
        "numbers of its own for this; the comparison that it cites is of translation models of 2017."
    ),
    factors=(
        Factor(name="score", label="score", explained="how a query and a key are compared"),
        Factor(name="d_k", label="d_k", explained="the numbers in a query and in a key"),
    ),
    metrics=(
        Metric(name="variance", label="variance of the scores", explained="how far scores lie apart", log=True),
        Metric(name="entropy", label="entropy of the softmax", explained="1: attends to all alike, 0: to one alone"),
        Metric(
            name="gradient",
            label="norm of the softmax's derivatives",
            explained="how much of a change of the scores comes through the softmax",
            log=True,
        ),
        Metric(name="exact_match", label="exact match", explained="share of validation strings with no symbol wrong"),
        Metric(
            name="steps_to_target",
            label="steps to 0.99",
            explained="steps until 99 % of validation strings are right, one evaluation past the end if never",
        ),
        Metric(name="loss", label="training loss, nats", explained="the loss of the last step"),
    ),
    budgets=(
        Budget(
            name="full",
            says="d_k from 4 to 512, and models trained for 400 steps at two of them, 5 seeds",
            levels={"score": SCORES, "d_k": WIDTHS},
            seeds=(0, 1, 2, 3, 4),
            size=400,
        ),
        Budget(
            name="small",
            says="d_k from 4 to 512 at the start, nothing trained, 5 seeds",
            levels={"score": SCORES, "d_k": WIDTHS},
            seeds=(0, 1, 2, 3, 4),
            size=0,
        ),
    ),
    charts=(
        Chart(title="Variance", metric="variance", x="d_k", by="score", log_x=True),
        Chart(title="Entropy", metric="entropy", x="d_k", by="score", log_x=True),
        Chart(title="Gradient", metric="gradient", x="d_k", by="score", log_x=True),
        Chart(title="Exact match", metric="exact_match", x="d_k", by="score", log_x=True),
    ),
    rule=(
        f"What is learned decides: scaled scores must reach a higher exact match than unscaled ones at d_k = {LARGE}. "
        f"Besides, additive scores should too, and lie within 0.1 of unscaled ones at d_k = {SMALL}. At the start the "
        "exponent of the variance should be 1 ± 0.1 without scaling and 0 ± 0.1 with it, and at the largest d_k the "
        "softmax should pass on at most half the gradient without scaling. Differences are between models of the same "
        "seed."
    ),
    objections={
        "That the variance is d_k is arithmetic.": (
            "It is, for independent numbers. It is measured to show that the footnote's assumption yields it, and it "
            "decides nothing."
        ),
        "At d_k = 16 the softmax still passes on gradient, and unscaled scores learn badly all the same.": (
            "So small gradients at the start do not explain all of it. How sharp the first attention is may be "
            "another cause; that is not measured yet."
        ),
        "Unscaled models may only be slower.": (
            "They may, above all at d_k = 16: a second, longer budget is not measured yet."
        ),
    },
    change_of_mind=(
        "Weights that start smaller make smaller queries and keys, and then even unscaled scores start small; a "
        "longer training may let unscaled models catch up. Either would weaken what is said of learning, not of the "
        f"start. And {SMALL} may not be small: the paper names no number."
    ),
    competence=Competence(metric="exact_match", least=0.5, arms={"scaled": {"score": "scaled", "d_k": LARGE}}),
    measure=measure,
    judge=judge,
    again=again,
)
