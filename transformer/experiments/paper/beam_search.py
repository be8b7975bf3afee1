"""Section 6.1: beam search of size 4 with length penalty 0.6, against greedy decoding and against other beams."""

from collections.abc import Mapping, Sequence
from functools import cache
from statistics import fmean

from transformer.config import DecodeConfig
from transformer.data.corpora import load_corpus
from transformer.experiments.experiment import Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import bootstrap_interval
from transformer.experiments.outcome import Finding, Verdict, finding
from transformer.experiments.results import Cell, Results
from transformer.lab import Lab, load
from transformer.text.pairs import Pair
from transformer.training.metrics import chrf

MODELS = ("emoji-en-fr", "emoji-en-ko")
BEAMS, ALPHAS = (1, 2, 4, 8, 16, 32, 64), (0.0, 0.6, 1.0)
PAPER_BEAM, PAPER_ALPHA, WIDER = 4, 0.6, (16, 64)
ALL_PENALTIES_TO = 16
"""Wider beams are measured with the paper's penalty alone."""
GROUP = 10
"""Pairs that are decoded and scored together; the groups are what the bootstrap draws."""
GROUPS = 28
SLACK = 0.5
"""The most points of chrF that a wider beam may gain for size 4 to be enough."""
_BETTER, _ENOUGH, _LENGTH = "Better than greedy", "A beam of 4 is enough", "The penalty lengthens outputs"


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Decodes one group of held-out names; `seed` is its number."""
    lab, pairs = load_model(str(cell["model"])), held_out(str(cell["model"]))[GROUP * seed : GROUP * (seed + 1)]
    settings = DecodeConfig(method="beam", beam=int(cell["beam"]), alpha=float(cell["alpha"]))
    found = [best for best, *_ in lab.translations([pair.source for pair in pairs], settings)]
    written = sum(len(each.text) for each in found)
    return {
        "chrf": fmean(chrf([each.text], [pair.target]).value for each, pair in zip(found, pairs, strict=True)),
        "length_ratio": written / sum(len(pair.target) for pair in pairs),
        "log_prob": fmean(each.log_prob for each in found),
    }


@cache
def load_model(name: str) -> Lab:
    """Returns a shipped model, loaded once."""
    return load(name)


@cache
def held_out(name: str) -> tuple[Pair, ...]:
    """Returns the names that no training of the model saw: its test names, then those of validation, which did not
    choose its weights."""
    corpus = load_corpus(name)
    return (*corpus.held_out["random"], *corpus.validation)


def judge(results: Results) -> Verdict:
    """Compares decodings of the same groups."""
    found: list[Finding] = []
    for model in map(str, results.levels("model")):
        plain, paper = (model, 1, PAPER_ALPHA), (model, PAPER_BEAM, PAPER_ALPHA)
        free = (model, PAPER_BEAM, 0.0)
        language = model.rpartition("-")[2]
        found += [
            finding(
                f"{language}: beam {PAPER_BEAM} − greedy",
                bootstrap_interval(_apart(results, "chrf", paper, plain)),
                group=_BETTER,
                unit="difference in chrF, points",
                least=0.0,
            ),
            *(
                finding(
                    f"{language}: beam {wide} − beam {PAPER_BEAM}",
                    bootstrap_interval(_apart(results, "chrf", (model, wide, PAPER_ALPHA), paper)),
                    group=_ENOUGH,
                    unit="difference in chrF, points",
                    most=SLACK,
                )
                for wide in WIDER
                if wide in results.levels("beam")
            ),
            finding(
                f"{language}: penalty {PAPER_ALPHA:g} − none",
                bootstrap_interval(_apart(results, "length_ratio", paper, free)),
                group=_LENGTH,
                unit="difference in length ratio",
                least=0.0,
            ),
        ]
    primary = f"{MODELS[0].rpartition('-')[2]}: beam {PAPER_BEAM} − greedy"
    return Verdict(findings=tuple(found), primary=primary, sentence=_sentence(results))


def _apart(results: Results, metric: str, first: tuple[str, int, float], second: tuple[str, int, float]) -> list[float]:
    a, b = (results.by_seed(metric, model=model, beam=beam, alpha=alpha) for model, beam, alpha in (first, second))
    return [a[group] - b[group] for group in a if group in b]


def _sentence(results: Results) -> str:
    told, widest = [], max(map(int, results.levels("beam")))
    for model in map(str, results.levels("model")):
        cells = [{"model": model, "beam": beam, "alpha": PAPER_ALPHA} for beam in (1, PAPER_BEAM, widest)]
        scores, ratios = (
            [fmean(results.by_seed(metric, **cell).values()) for cell in cells] for metric in ("chrf", "length_ratio")
        )
        gain = bootstrap_interval(_apart(results, "chrf", (model, PAPER_BEAM, PAPER_ALPHA), (model, 1, PAPER_ALPHA)))
        clear = "clear of chance" if gain.low > 0 or gain.high < 0 else "not clear of chance"
        told.append(
            f"{model}: chrF {scores[0]:.1f} greedy, {scores[1]:.1f} with a beam of {PAPER_BEAM}, {scores[2]:.1f} with "
            f"{widest}; outputs are {ratios[0]:.2f}, {ratios[1]:.2f} and {ratios[2]:.2f} times as long as the "
            f"references. A beam of {PAPER_BEAM} changes chrF by {gain.estimate:.1f} ({gain.low:.1f} to "
            f"{gain.high:.1f}): {clear}."
        )
    return " ".join(told).replace("-", "−").replace("emoji−en−", "emoji-en-")


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file: see `recount`."""
    held = {(row["model"], row["beam"], row["alpha"], row["seed"]): row for row in rows}
    groups = list(dict.fromkeys(row["seed"] for row in rows))
    found: dict[str, list[float]] = {}
    for model in dict.fromkeys(row["model"] for row in rows):
        for name, metric, first, second in (
            ("beam 4 − greedy", "chrf", (4, 0.6), (1, 0.6)),
            *(
                (f"beam {b} − beam 4", "chrf", (b, 0.6), (4, 0.6))
                for b in (16, 64)
                if any(r["beam"] == b for r in rows)
            ),
            ("penalty 0.6 − none", "length_ratio", (4, 0.6), (4, 0.0)),
        ):
            both = [(held.get((model, *first, g)), held.get((model, *second, g))) for g in groups]
            apart = [a[metric] - b[metric] for a, b in both if a is not None and b is not None]
            found[f"{model[-2:]}: {name}"] = apart
    return found


EXPERIMENT = Experiment(
    name="beam-search",
    title="Beam search",
    question="Does a beam of 4 with length penalty 0.6 translate better than greedy decoding, and is 4 enough?",
    claim=(
        "“We used beam search with a beam size of 4 and length penalty α = 0.6. These hyperparameters were chosen "
        "after experimentation on the development set.” A beam search keeps the 4 most probable beginnings instead of "
        "one; the penalty divides the log-probability of an output by a power α of its length, so that short outputs, "
        "which are more probable, do not win by being short. The paper reports no numbers for other choices."
    ),
    section="Section 6.1",
    setting=(
        f"Two shipped models that name emoji, on {GROUP * GROUPS} English names each that no training saw, most of "
        "them with words that training never showed. (The pairs behind the shipped models of everyday sentences are "
        "not part of the project.) chrF compares the characters of an output with those of the reference, 0 to 100; "
        "the length ratio is characters written over characters of the reference. A beam of 1 is greedy decoding."
    ),
    factors=(
        Factor(name="model", label="model", explained="which shipped model, and so which language"),
        Factor(name="beam", label="beam size", explained="how many beginnings the search keeps"),
        Factor(name="alpha", label="length penalty α", explained="how strongly longer outputs are favoured"),
    ),
    metrics=(
        Metric(name="chrf", label="chrF, mean of the names", explained="likeness to the reference, 0 to 100"),
        Metric(name="length_ratio", label="length ratio", explained="characters written over those of the reference"),
        Metric(name="log_prob", label="log-probability of the output", explained="how probable the model finds it"),
    ),
    budgets=(
        Budget(
            name="full",
            says=f"{GROUP * GROUPS} names a model, beams up to 64, three penalties up to 16",
            levels={"model": MODELS, "beam": BEAMS, "alpha": ALPHAS},
            seeds=tuple(range(GROUPS)),
        ),
        Budget(
            name="small",
            says="120 names of one model, three beams, two penalties",
            levels={"model": MODELS[:1], "beam": (1, 4, 16), "alpha": (0.0, 0.6)},
            seeds=tuple(range(12)),
        ),
    ),
    charts=(
        Chart(title="chrF", metric="chrf", x="beam", by="alpha", log_x=True),
        Chart(title="Length ratio", metric="length_ratio", x="beam", by="alpha", log_x=True),
        Chart(title="Log-probability", metric="log_prob", x="beam", by="alpha", log_x=True),
    ),
    rule=(
        "The French names decide: beam 4 must score above greedy on the same names. Besides, the same for Korean; "
        f"beams 16 and 64 should gain at most {SLACK:g} points over beam 4; and with the penalty outputs should be at "
        f"least as long as without. What the bootstrap draws are groups of {GROUP} names."
    ),
    change_of_mind=(
        "Longer outputs: a name has two to six words, so a search has little to choose from, and a length penalty "
        "little to lengthen. On sentences of twenty words both matter more. More names would narrow the intervals."
    ),
    measure=measure,
    judge=judge,
    again=again,
    replicate="group",
    skips=lambda cell: cell["beam"] > ALL_PENALTIES_TO and cell["alpha"] != PAPER_ALPHA,
)
