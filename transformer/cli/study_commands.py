"""The command for the paired study of positions, at work in the terminal."""

import shlex
import sys
from typing import Annotated, Literal

import tyro
from tqdm import tqdm

from transformer.experiments.plan import Study, StudyPlan
from transformer.experiments.runner import Progress, run_study
from transformer.experiments.study import create_study, load_study, start_study
from transformer.experiments.verdict import verdicts

_USUAL = StudyPlan()


def study(
    topic: tyro.conf.Positional[Literal["positions"]],
    *,
    plan: Annotated[StudyPlan, tyro.conf.arg(name="")] = _USUAL,
    name: str | None = None,
    go_on: bool = False,
    detach: bool = False,
) -> None:
    """Train the same model with each kind of positions, test it by length, and say what came of it.

    Args:
        name: The study's name; without it, one is made.
        go_on: Go on with the study of that name, which was stopped.
        detach: Leave it at work in the background and return at once.
    """
    if go_on and name is None:
        raise ValueError("which study goes on? say: --name NAME --go-on")
    command = "python -m transformer " + shlex.join(sys.argv[1:])
    chosen = name if go_on and name is not None else create_study(plan, name=name, command=command)
    load_study(chosen)
    if detach:
        start_study(chosen)
        print(chosen)
        return
    ended = _run(chosen)
    print(f"{chosen}: {'done' if ended else 'stopped; go on with --name ' + chosen + ' --go-on'}")
    _print_verdicts(load_study(chosen))


def _run(name: str) -> bool:
    plan = load_study(name).plan
    with tqdm(total=plan.n_runs, unit=" runs", disable=None) as bar:

        def show(progress: Progress) -> None:
            bar.n = progress.number - (progress.message != "done")
            run = progress.run
            bar.set_postfix_str(f"{run.corpus}, {run.positions}, seed {run.seed}: {progress.message}")

        return run_study(name, show)


def _print_verdicts(study: Study) -> None:
    for corpus in study.plan.corpora:
        print(f"\n{corpus}")
        for verdict in verdicts(study, corpus):
            print("  " + verdict.line())
