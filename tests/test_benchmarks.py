"""Every benchmark still runs: the least of each, in a process, prints a figure. How fast anything is is not tested."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from app_server import running_app
from documents.commands import PAIRS, ROOT, made_commands, named_commands
from tiny_runs import PATIENCE_S

COMMANDS = sorted(path for path in ROOT.glob("benchmarks/*.py") if '__name__ == "__main__"' in path.read_text())
NEED_A_FILE = {"file_recipes"}
"""Benchmarks that `make bench` leaves out."""
PLACEHOLDERS = {"FILE": "{folder}/pairs.tsv", "N": "80", "[SETTING=VALUE": "model.dropout=0.2", "...]": ""}
FIGURE = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.]*\w)")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of one server for all benchmarks of pages."""
    folder = tmp_path_factory.mktemp("benched")
    (folder / "runs").mkdir()
    with running_app(folder / "runs", folder / "log.txt") as server:
        yield server.url


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
    "script", [case(f"benchmarks/{path.name}") for path in COMMANDS] + [case("tests/load/drive.py")]
)
def test_every_benchmark_prints_a_figure_with_the_options_that_the_documents_name(script, tmp_path, request):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "runs").mkdir()
    opens_app = "opened_app" in (ROOT / script).read_text()
    own = {"ATTENTION_LAB_BENCHED": request.getfixturevalue("address")} if opens_app else {}
    lines = smoke_run(script, *documented_options(script, tmp_path), runs=tmp_path / "runs", **own)
    assert lines and FIGURE.search(lines[-1]), lines
    assert not re.search(r"\b(nan|inf)\b", "\n".join(lines)), lines
    assert not list((tmp_path / "runs").iterdir()), "a benchmark left a run behind"


def test_make_bench_runs_each_benchmark_once():
    (names,) = re.findall(r"for name in (.*?);", "\n".join(made_commands("bench")))
    assert sorted([*names.split(), *NEED_A_FILE]) == [path.stem for path in COMMANDS]
