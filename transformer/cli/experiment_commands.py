"""The command for the experiments on the paper's claims: list them, run one or all, show a verdict."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import tyro
from tqdm import tqdm

from transformer.experiments.estimate import estimated_for_all_s, estimated_s
from transformer.experiments.experiment import Experiment
from transformer.experiments.measuring import Measured, run_experiment
from transformer.experiments.outcome import Verdict
from transformer.experiments.paper import EXPERIMENTS, find_experiment, listed
from transformer.experiments.results import ExperimentError, Results, load_results, own_file
from transformer.runs.queue import working_at_once

ALL = "all"


def experiment(
    action: tyro.conf.Positional[Literal["list", "run", "show"]],
    name: Annotated[str, tyro.conf.Positional] = "",
    *,
    budget: str = "",
    out: Path | None = None,
) -> None:
    """List the experiments on the paper's claims, run one here or all, or show what one found.

    Args:
        action: list, run or show.
        name: The experiment, such as table-1; "all" runs every one of them.
        budget: How much of it to run, or which results to show; without it, all is run and the shipped are shown.
        out: The file to write, a folder for all; without it, the results are kept among your runs, and so are the
            models of the first seed. A file that is there already goes on.
    """
    if action == "list":
        _list()
    elif (action, name) == ("run", ALL):
        _run_all(budget, out)
    elif action == "run":
        _run(find_experiment(name), budget, out)
    else:
        chosen = find_experiment(name)
        _show(chosen, load_results(chosen.name, budget and chosen.budget(budget).name))


def _list() -> None:
    for each in listed():
        outcome = each.verdict(load_results(each.name)).outcome
        minutes = estimated_s(each, each.budget()) / 60
        print(f"{each.name:17} {outcome:46} {minutes:4.0f} min  {each.question}")
    print(f"`experiment run {ALL}` makes all again in {_time_of_all('')}; with --budget small in {_hours('small')}.")


def _time_of_all(budget: str) -> str:
    return f"{_hours(budget)} on our test machine (one thread)"


def _hours(budget: str) -> str:
    return f"about {estimated_for_all_s(listed(), budget) / 3_600:.1f} h"


def _run_all(budget: str, out: Path | None) -> None:
    if out is not None and out.is_file():
        raise ExperimentError(f"{out} is a file: name a folder, in which each experiment has its own")
    print(f"{len(EXPERIMENTS)} experiments: {_time_of_all(budget)}. What is measured already is not measured again.")
    for each in EXPERIMENTS.values():
        _run(each, budget, None if out is None else out / f"{each.name}.json")
        print()


def _run(chosen: Experiment, name: str, out: Path | None) -> None:
    budget = chosen.budget(name)
    path = out or own_file(chosen.name, budget.name)
    options = [*(["--budget", name] if name else []), *(["--out", str(out)] if out else [])]
    command = "python -m transformer experiment run " + shlex.join([chosen.name, *options])
    with tqdm(total=len(chosen.plan(budget)), unit=" cells", disable=None) as bar:

        def show(measured: Measured) -> None:
            bar.n = measured.done
            bar.set_postfix_str(", ".join(f"{key} {level}" for key, level in measured.row.cell.items()))

        with working_at_once():
            results = run_experiment(chosen, budget, path, command=command, keep_runs=out is None, on_row=show)
    _show(chosen, results)


def _show(chosen: Experiment, results: Results) -> None:
    print(f"{chosen.title}\n{chosen.section}: {chosen.claim}\n")
    try:
        verdict = chosen.verdict(results)
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    print(f"Verdict: {verdict.outcome}. {verdict.sentence}\n")
    print("\n".join(_lines(verdict)))
    print("* decides; the others explore, after Holm's correction for their number.")
    print(f"\nJudged: {chosen.rule}\nWhat would change our mind: {chosen.change_of_mind}")
    print(f"{len(results.rows)} measurements, {results.elapsed_s:,.0f} s, {results.machine}: {results.command}")
    if results.commit:
        print(f"Measured by commit {results.commit}.")


def _lines(verdict: Verdict) -> list[str]:
    return [
        f"{'*' if each.name == verdict.primary else ' '} {each.name:46} {each.estimate:z#9.3g} ({each.low:z#.3g} to "
        f"{each.high:z#.3g}; claim: {each.allowed})  {outcome}"
        for each, outcome in ((each, verdict.outcomes[each.name]) for each in verdict.findings)
    ]
