"""Section 3.2.1: why scores are divided by the root of d_k, in numbers at the start and in what is learned."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.config import PRESETS, CorpusConfig, ModelConfig, TrainConfig
from transformer.data.batches import encode_sources
from transformer.experiments.comparisons import Comparison, again_by, findings_of
from transformer.experiments.experiment import Budget, Chart, Competence, Experiment, Factor, Metric
from transformer.experiments.intervals import exponents, t_interval
from transformer.experiments.outcome import Verdict, finding
from transformer.experiments.recount import column, power
from transformer.experiments.results import Cell, Results
from transformer.experiments.training import begin, train_briefly
from transformer.model.scores import Additive, DotProduct
from transformer.model.taps import Recorder, Site
from transformer.training.devices import seeded

SCORES = ("scaled", "unscaled", "additive")
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
SMALL, LARGE = 16, 64
"""The d_k at which models are trained: the same width of 64, with four heads or with one."""
STEPS = (400, 1_600)
"""A training that ends while some models are still learning, and one that lets them finish."""
RATES = (0.001, 0.003)
"""The learning rates that are tried; what is measured before any training stands at a rate of 0 and at 0 steps."""
QUERIES, KEYS = 256, 32
EVALUATE_EVERY = 100
_TRAINING = TrainConfig(batch_tokens=512, warmup_steps=50, schedule="cosine")
_VARIANCE, _SOFTMAX = "The variance of q · k is d_k", "The softmax passes on less gradient"
_SAME, _WORSE = "Similar for small d_k", "Unscaled scores are worse for large d_k"
_SHARPER = "Unscaled, the first attention is sharper"


def _learned(first: str, d_k: int, steps: int) -> str:
    return f"{first} − unscaled, d_k = {d_k}, {steps:,} steps"


COMPARISONS = (
    *(
        Comparison(
            name=_learned(first, d_k, steps),
            group=group,
            metric="exact_match",
            unit="difference in exact match",
            first={"steps": steps, "score": first, "d_k": d_k},
            second={"steps": steps, "score": "unscaled", "d_k": d_k},
            least=least,
            most=most,
            best_of="rate",
        )
        for steps in reversed(STEPS)
        for first, d_k, group, least, most in (
            ("scaled", LARGE, _WORSE, 0.0, math.inf),
            ("additive", LARGE, _WORSE, 0.0, math.inf),
            ("additive", SMALL, _SAME, -0.1, 0.1),
        )
    ),
    *(
        Comparison(
            name=f"entropy: unscaled − scaled, d_k = {d_k}",
            group=_SHARPER,
            metric="first_entropy",
            unit="difference in entropy of the first attention",
            first={"steps": 0, "rate": 0.0, "score": "unscaled", "d_k": d_k},
            second={"steps": 0, "rate": 0.0, "score": "scaled", "d_k": d_k},
            most=0.0,
        )
        for d_k in (SMALL, LARGE)
    ),
)


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Trains a model, or measures at 0 steps what scores are like before: those of random queries and keys, and, at the
    two widths at which models are trained, those of the first attention of such a model."""
    kind, d_k, steps = str(cell["score"]), int(cell["d_k"]), int(cell["steps"])
    if steps:
        train = replace(_TRAINING, max_steps=steps, learning_rate=float(cell["rate"]))
        run = f"{kind} d_k {d_k} rate {cell['rate']:g} {steps} steps"
        learned = train_briefly("reverse", _model(kind, d_k), train, seed=seed, run=run, every=EVALUATE_EVERY)
        return {name: learned[name] for name in ("exact_match", "steps_to_target", "validation_loss")}
    with seeded(seed, torch.device("cpu")), torch.no_grad():
        q, k = torch.randn(1, 1, QUERIES, d_k), torch.randn(1, 1, KEYS, d_k)
        score = Additive(1, d_k) if kind == "additive" else DotProduct(scaled=kind == "scaled")
        found = _at_the_start(score(q, k)[0, 0].double())
    if d_k in (SMALL, LARGE):
        found["first_entropy"] = _entropy_of_the_first_attention(_model(kind, d_k), seed)
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


@torch.no_grad()
def _entropy_of_the_first_attention(config: ModelConfig, seed: int) -> float:
    """Returns the mean entropy of the first layer's weights before training, each as a share of the largest."""
    state, read, tokenizer = begin(CorpusConfig(name="reverse"), config, replace(_TRAINING, seed=seed))
    source, mask = encode_sources([pair.source for pair in read.validation], tokenizer, max_length=config.max_length)
    first = Site.parse("encoder.0.self.weights")
    recorder = Recorder(first.__eq__)
    state.model.eval().encode(source, mask, tap=recorder)
    weights = recorder.recording[first].double()
    entropy = -(weights * weights.clamp_min(1e-300).log()).sum(dim=-1)
    of_all = mask.sum(dim=-1).log()[:, None, None].expand_as(entropy)
    told = mask[:, None, :].expand_as(entropy)
    return float((entropy / of_all)[told].mean())


def _model(kind: str, d_k: int) -> ModelConfig:
    tiny = replace(PRESETS["tiny"], dropout=0.0, embedding_dropout=0.0, n_heads=PRESETS["tiny"].d_model // d_k)
    return replace(tiny, score="additive" if kind == "additive" else "dot", scale_scores=kind != "unscaled")


def judge(results: Results) -> Verdict:
    """Compares what was learned at a large and a small d_k, and before training growth, gradients and sharpness."""
    growth = {
        kind: t_interval([exponents(*by_width)[0] for by_width in _by_width(results, kind)])
        for kind in ("unscaled", "scaled")
    }
    widest = max(map(int, results.levels("d_k")))
    findings = (
        finding("unscaled: exponent of d_k", growth["unscaled"], group=_VARIANCE, unit="exponent", least=0.9, most=1.1),
        finding("scaled: exponent of d_k", growth["scaled"], group=_VARIANCE, unit="exponent", least=-0.1, most=0.1),
        *(
            finding(
                _passed_on(d_k),
                t_interval(list(_gradients(results, d_k))),
                group=_SOFTMAX,
                unit="ratio of gradients",
                most=0.5,
            )
            for d_k in (LARGE, widest)
        ),
        *findings_of(COMPARISONS, results),
    )
    primary = _learned("scaled", LARGE, STEPS[-1])
    return Verdict(findings=findings, primary=primary, sentence=_sentence(results, widest))


def _passed_on(d_k: int) -> str:
    return f"unscaled over scaled, d_k = {d_k}"


def _by_width(results: Results, kind: str) -> Iterator[tuple[list[tuple[float]], list[float]]]:
    """Yields for each seed the widths and the variance at each."""
    rows = [row for row in results.rows if row.has(score=kind, steps=0)]
    for seed in dict.fromkeys(row.seed for row in rows):
        own = [row for row in rows if row.seed == seed]
        yield [(float(row.cell["d_k"]),) for row in own], [row.values["variance"] for row in own]


def _gradients(results: Results, d_k: int) -> Iterator[float]:
    unscaled, scaled = (results.by_seed("gradient", steps=0, score=kind, d_k=d_k) for kind in ("unscaled", "scaled"))
    return (unscaled[seed] / scaled[seed] for seed in unscaled if seed in scaled)


def _sentence(results: Results, widest: int) -> str:
    variance = results.mean("variance", steps=0, score="unscaled", d_k=widest)
    passed = {d_k: fmean(_gradients(results, d_k)) for d_k in (SMALL, LARGE, widest)}
    shares = ", ".join(f"{share:.2g}" for share in passed.values())
    said = (
        f"Before training, at d_k = {widest}, the variance of unscaled scores is {variance:.0f}. Without scaling the "
        f"softmax passes on {shares} times as much gradient as with it, at d_k = {', '.join(map(str, passed))}."
    )
    for d_k in (LARGE, SMALL):
        told = []
        for steps in filter(None, map(int, results.levels("steps"))):
            right = {kind: _at_the_better_rate(results, steps, kind, d_k) for kind in map(str, results.levels("score"))}
            told.append(
                f"after {steps:,} steps {', '.join(f'{kind} {100 * share:.0f} %' for kind, share in right.items())}"
            )
        said += f" Exact match with d_k = {d_k}, each at its better rate: {'; '.join(told)}."
    return said


def _at_the_better_rate(results: Results, steps: int, kind: str, d_k: int) -> float:
    """Returns the mean exact match at the rate with the least mean loss."""
    cells = [{"steps": steps, "rate": rate, "score": kind, "d_k": d_k} for rate in results.levels("rate") if rate]
    return results.mean("exact_match", **min(cells, key=lambda cell: results.mean("validation_loss", **cell)))


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    before = [row for row in rows if row["steps"] == 0]
    seeds = list(dict.fromkeys(row["seed"] for row in before))
    found: dict[str, list[float]] = {}
    for kind in ("unscaled", "scaled"):
        slopes = []
        for seed in seeds:
            own = [row for row in before if (row["score"], row["seed"]) == (kind, seed)]
            slopes.append(power([row["d_k"] for row in own], [row["variance"] for row in own]))
        found[f"{kind}: exponent of d_k"] = slopes
    for d_k in (LARGE, max(row["d_k"] for row in before)):
        plain, divided = (column(before, "gradient", score=kind, d_k=d_k) for kind in ("unscaled", "scaled"))
        found[_passed_on(d_k)] = [plain[s] / divided[s] for s in plain if s in divided]
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
        f"Before training: {QUERIES} random queries meet {KEYS} random keys, each number from a normal distribution "
        "with mean 0 and variance 1, as the footnote assumes; and the first attention of new models reads the strings "
        "of validation. After training: tiny models (2 + 2 layers, d_model 64) learn to reverse strings with Adam, "
        f"with four heads (d_k = {SMALL}) or one (d_k = {LARGE}), for 400 and for 1,600 steps, at two learning rates. "
        "The paper reports no numbers of its own for this; the comparison that it cites is of translation models of "
        "2017."
    ),
    factors=(
        Factor(name="steps", label="steps", explained="how long the training is; 0 is before it"),
        Factor(name="rate", label="learning rate", explained="the size of a step after the warm-up; 0 is no training"),
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
            explained=f"steps until 99 % of validation strings are right, {EVALUATE_EVERY} past the end if never",
        ),
        Metric(name="validation_loss", label="validation loss, nats", explained="the loss on other strings at the end"),
        Metric(
            name="first_entropy",
            label="entropy of the first attention",
            explained="of an untrained model's first layer; 1: attends to all alike, 0: to one alone",
        ),
    ),
    budgets=(
        Budget(
            name="full",
            says="d_k from 4 to 512, and models trained for 400 and 1,600 steps at two of them and two rates, 5 seeds",
            levels={"steps": (0, *STEPS), "rate": (0.0, *RATES), "score": SCORES, "d_k": WIDTHS},
            seeds=(5, 6, 7, 8, 9),
        ),
        Budget(
            name="small",
            says="scaled and unscaled, d_k from 4 to 512, 1,600 steps at two of them and one rate, 3 seeds",
            levels={"steps": (0, STEPS[-1]), "rate": (0.0, RATES[0]), "score": SCORES[:2], "d_k": WIDTHS},
            seeds=(5, 6, 7),
        ),
    ),
    charts=(
        Chart(title="Variance", metric="variance", x="d_k", by="score", log_x=True),
        Chart(title="Entropy", metric="entropy", x="d_k", by="score", log_x=True),
        Chart(title="Gradient", metric="gradient", x="d_k", by="score", log_x=True),
        Chart(title="First attention", metric="first_entropy", x="d_k", by="score", log_x=True),
        Chart(title="Exact match", metric="exact_match", x="rate", by="score", log_x=True),
        Chart(title="Steps to 0.99", metric="steps_to_target", x="rate", by="score", log_x=True),
    ),
    rule=(
        f"What is learned decides: after 1,600 steps scaled scores must reach a higher exact match than unscaled ones "
        f"at d_k = {LARGE}, each at its own best rate: that with the least mean loss of the other seeds. Besides, "
        f"additive scores should too, and lie within 0.1 of unscaled ones at d_k = {SMALL}; and all that after 400 "
        "steps. Before training the exponent of the variance should be 1 ± 0.1 without scaling and 0 ± 0.1 with it; "
        f"at d_k = {LARGE} and at the largest, the softmax should pass on at most half the gradient without scaling; "
        "and the first attention should be sharper without it. Differences are between models of the same seed."
    ),
    objections={
        "That the variance is d_k is arithmetic.": (
            "It is, for independent numbers. It is measured to show that the footnote's assumption yields it, and it "
            "decides nothing."
        ),
        "Unscaled models may only be slower.": (
            "That is why 1,600 steps decide. Beside them stand 400, after which a judgement would be one of speed."
        ),
        "Unscaled scores may want a lower rate.": (
            "They may have one: each kind of score is judged at its own best rate of two, chosen by the other seeds."
        ),
        "At d_k = 16 the softmax still passes on gradient, and unscaled scores learn more slowly all the same.": (
            "So small gradients do not explain all of it. What does differ at the start is how sharp the first "
            "attention is, which is measured as well; that it is the cause is not shown."
        ),
    },
    change_of_mind=(
        "Weights that start smaller make smaller queries and keys, and then even unscaled scores start small; a still "
        "longer training, or lower rates, may let unscaled models catch up. Either would weaken what is said of "
        f"learning, not of the start. And {SMALL} may not be small: the paper names no number."
    ),
    named_first=True,
    competence=Competence(
        metric="exact_match",
        least=0.9,
        arms={"scaled": {"steps": STEPS[-1], "score": "scaled", "d_k": LARGE}},
        best_of="rate",
    ),
    skips=lambda cell: (
        bool(cell["steps"]) != bool(cell["rate"]) or (bool(cell["steps"]) and cell["d_k"] not in (SMALL, LARGE))
    ),
    measure=measure,
    judge=judge,
    again=again,
)
