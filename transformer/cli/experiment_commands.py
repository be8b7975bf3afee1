"""The command for the experiments on the paper's claims: list them, run one, show its verdict."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tqdm import tqdm

from transformer.experiments.experiment import Experiment
from transformer.experiments.measuring import Measured, run_experiment
from transformer.experiments.outcome import Verdict
from transformer.experiments.paper import find_experiment, listed
from transformer.experiments.results import ExperimentError, Results, load_results, own_file


def experiment(
    action: tyro.conf.Positional[Literal["list", "run", "show"]],
    name: Annotated[str, tyro.conf.Positional] = "",
    *,
    budget: str = "",
    out: Path | None = None,
) -> None:
    """List the experiments on the paper's claims, run one here, or show what one found.

    Args:
        action: list, run or show.
        name: The experiment, such as table-1.
        budget: How much of it to run, or which results to show; without it, all is run and the shipped are shown.
        out: The file to write; without it, the results are kept among your runs. A file that is there already goes on.
    """
    if action == "list":
        for each in listed():
            outcome = each.verdict(load_results(each.name)).outcome
            print(f"{each.name:12} {outcome:26} {each.question}")
        return
    chosen = find_experiment(name)
    if action == "run":
        _run(chosen, budget, out)
    else:
        _show(chosen, load_results(chosen.name, budget and chosen.budget(budget).name))


def _run(chosen: Experiment, name: str, out: Path | None) -> None:
    budget = chosen.budget(name)
    path = out or own_file(chosen.name, budget.name)
    command = "python -m transformer " + shlex.join(sys.argv[1:])
    with tqdm(total=len(chosen.plan(budget)), unit=" cells", disable=None) as bar:

        def show(measured: Measured) -> None:
            bar.n = measured.done
            bar.set_postfix_str(", ".join(f"{key} {level}" for key, level in measured.row.cell.items()))

        results = run_experiment(chosen, budget, path, command=command, on_row=show)
    _show(chosen, results)


def _show(chosen: Experiment, results: Results) -> None:
    print(f"{chosen.title}\n{chosen.section}: {chosen.claim}\n")
    try:
        verdict = chosen.verdict(results)
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    print(f"Verdict: {verdict.outcome}. {verdict.sentence}\n")
    print("\n".join(_lines(verdict)))
    print(f"\nJudged: {chosen.rule}\nWhat would change our mind: {chosen.change_of_mind}")
    print(f"{len(results.rows)} measurements, {results.elapsed_s:,.0f} s, {results.machine}: {results.command}")


def _lines(verdict: Verdict) -> list[str]:
    return [
        f"  {each.name:46} {each.estimate:z8.3f} ({each.low:z.3f} to {each.high:z.3f}; "
        f"claim: {each.allowed})  {each.outcome}"
        for each in verdict.findings
    ]
