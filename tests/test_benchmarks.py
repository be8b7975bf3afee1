"""Every benchmark still runs: the least of each, in a process, prints a figure. How fast anything is is not tested."""

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
from app_server import running_app
from documents.commands import PAIRS, ROOT, made_commands, named_commands
from tiny_runs import PATIENCE_S

from transformer.data.tasks import TASKS, GeneratedPairs
from transformer.text.pairs import Pair, split_of

COMMANDS = sorted(path for path in ROOT.glob("benchmarks/*.py") if '__name__ == "__main__"' in path.read_text())
NEED_A_FILE = {"distillation", "file_recipes"}
"""Benchmarks that `make bench` leaves out."""
PLACEHOLDERS = {"FILE": "{folder}/pairs.tsv", "N": "80", "[SETTING=VALUE": "model.dropout=0.2", "...]": ""}
FIGURE = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.]*\w)")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for all benchmarks of pages: its address, runs and process, as JSON."""
    folder = tmp_path_factory.mktemp("benched")
    (folder / "runs").mkdir()
    with running_app(folder / "runs", folder / "log.txt") as server:
        yield json.dumps([server.url, str(server.runs), server.pid])


def smoke_run(script, *options, runs, **environment):
    """Returns the lines that a benchmark prints when it does its least."""
    done = subprocess.run(
        [sys.executable, ROOT / script, *options, "--smoke"],
        env=os.environ | {"ATTENTION_LAB_RUNS": str(runs), "OMP_NUM_THREADS": "1", **environment},
        cwd=runs.parent,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def documented_options(script, folder):
    """Returns the options with which the documents name a benchmark, their placeholders filled in."""
    found = [command.removeprefix(f"python {script}") for command in named_commands() if f"python {script}" in command]
    words = shlex.split(max(found, key=len, default=""))
    return [filled for word in words if (filled := PLACEHOLDERS.get(word, word).format(folder=folder))]


def case(script):
    uses_browser = re.search("playwright|opened_app", (ROOT / script).read_text())
    return pytest.param(script, marks=pytest.mark.browser if uses_browser else ())


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize(
    "script",
    [*[case(f"benchmarks/{path.name}") for path in COMMANDS], case("tests/load/drive.py"), case("tests/load/links.py")],
)
def test_every_benchmark_prints_a_figure_with_the_options_that_the_documents_name(script, tmp_path, request):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "runs").mkdir()
    opens_app = "opened_app" in (ROOT / script).read_text()
    own = {"ATTENTION_LAB_BENCHED": request.getfixturevalue("server")} if opens_app else {}
    lines = smoke_run(script, *documented_options(script, tmp_path), runs=tmp_path / "runs", **own)
    assert lines and FIGURE.search(lines[-1]), lines
    assert not re.search(r"\b(nan|inf)\b", "\n".join(lines)), lines
    assert not list((tmp_path / "runs").iterdir()), "a benchmark left a run behind"


@pytest.mark.slow
@pytest.mark.processes
def test_distilled_pairs_are_the_teachers_and_what_a_file_holds_out_stays_held_out(tmp_path):
    own, other = ([*GeneratedPairs(TASKS["reverse"], seed, "train", 60)] for seed in (0, 1))
    own = [Pair(f"{pair.source} a", "wrong") for pair in own]
    for name, pairs in {"own": own, "other": other}.items():
        (tmp_path / f"{name}.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs))
    options = "own.tsv --teachers reverse reverse-learned --sources other.tsv --joined 0.5 --own none --out new.tsv"
    command = [sys.executable, ROOT / "benchmarks/distillation.py", *options.split()]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=PATIENCE_S, capture_output=True)
    found = [Pair(*line.split("\t")) for line in (tmp_path / "new.tsv").read_text().splitlines()]
    held_out = {pair for pair in own if split_of(pair.source) != "train"}
    assert held_out and held_out == {pair for pair in found if split_of(pair.source) != "train"}
    trained = {pair.source for pair in (*own, *other) if split_of(pair.source) == "train"}
    taught = [pair for pair in found if pair.source in trained]
    assert {pair.source for pair in taught} == trained and len(taught) == len(trained)
    right = sum(pair.target.split() == pair.source.split()[::-1] for pair in taught)
    assert right > 0.95 * len(taught)
    joined = found[len(held_out) + len(taught) :]
    two = {Pair(f"{a.source} {b.source}", f"{a.target} {b.target}") for a in taught for b in taught}
    assert joined and set(joined) <= two


def test_watching_takes_no_older_run_for_its_own(tmp_path, monkeypatch):
    """A page that still loads names the newest run of before, of which another benchmark may have left one paused."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    watching = import_module("watching")
    (tmp_path / "reverse-1").mkdir()
    page, later = SimpleNamespace(url="http://lab/train"), iter(["", "?run=reverse-1", "?run=reverse-2&steps=20"])
    page.wait_for_timeout = lambda ms: setattr(page, "url", f"http://lab/train{next(later)}")
    pressed = []
    button = SimpleNamespace(click=lambda: pressed.append(page.url))
    assert watching.started(SimpleNamespace(runs=tmp_path), page, button) == "reverse-2" and len(pressed) == 1


def test_make_bench_runs_each_benchmark_once():
    (names,) = re.findall(r"for name in (.*?);", "\n".join(made_commands("bench")))
    assert sorted([*names.split(), *NEED_A_FILE]) == [path.stem for path in COMMANDS]
