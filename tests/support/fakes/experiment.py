"""An experiment whose answer is known: a coin that shows 1 as often as its cell says, and three claims about it."""

import math
from collections.abc import Callable

from transformer.experiments.experiment import Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Verdict, finding
from transformer.experiments.recount import column

CLAIMS = {"holds": (0.0, 1.0), "fails": (5.0, 6.0), "open": (0.5, 6.0)}
"""The range that each claim allows for a number that is 0.4, 0.5 and 0.6 with the three seeds."""


def fake_experiment(claim: str, met: Callable[[dict, int], None] = lambda cell, seed: None) -> Experiment:
    """Returns the experiment that claims this; `met` is called at each measurement and may end it."""
    least, most = CLAIMS[claim]

    def measure(cell, seed, size):
        met(cell, seed)
        return {"share": 0.5 + 0.1 * (seed - 1) + 0 * size}

    def judge(results):
        share = t_interval(list(results.by_seed("share", coin="fair").values()))
        number = finding("share", share, group="coin", unit="share", least=least, most=most)
        return Verdict(findings=(number,), primary="share", sentence=f"The coin shows {share.estimate:.2f}.")

    return Experiment(
        name="fake",
        title="A coin",
        question="Does it show 1?",
        claim="It does.",
        section="Section 0",
        setting="One coin.",
        factors=(Factor(name="coin", label="coin", explained="which one"),),
        metrics=(Metric(name="share", label="share", explained="of ones"),),
        budgets=(
            Budget(name="full", says="3 seeds", levels={"coin": ("fair", "false")}, seeds=(0, 1, 2), size=2),
            Budget(name="short", says="2 seeds", levels={"coin": ("fair",)}, seeds=(0, 1)),
        ),
        charts=(Chart(title="Share", metric="share", x="coin", by="coin"),),
        rule="The interval decides.",
        change_of_mind="Another coin.",
        measure=measure,
        judge=judge,
        again=lambda rows: {"share": list(column(rows, "share", coin="fair").values())},
    )


HALF_WIDTH = 4.3027 * 0.1 / math.sqrt(3)
"""Half of the t interval of 0.4, 0.5 and 0.6, with the quantile of 2 degrees of freedom."""
