"""The README tells the truth: its notebook example runs, its tree names what is there. With BENCHMARKS and CHANGELOG it
names commands: each is run, here with as little work as it can have, or by the test that `RUN_BY` names."""

import gzip
import re
import shlex
import subprocess
import sys

import pytest
from documents.commands import DOCUMENTS, PAIRS, ROOT, made_commands, named_commands
from tiny_runs import PATIENCE_S

from transformer.__main__ import main

README = DOCUMENTS["README.md"]
_APP = "tests/browser/app_server.py::running_app"  # the command of `make app`, for all tests in a browser
_BENCH = "tests/test_benchmarks.py::test_every_benchmark_prints_a_figure_with_the_options_that_the_documents_name"
_CAPSULE = "tests/capsules/test_capsules.py::test_the_command_saves_shows_and_verifies"
_EXPERIMENT = "tests/cli/test_experiment_command.py::test_an_experiment_runs_and_is_shown_with_its_verdict"
_TIERS = "tests/test_readme.py::test_the_tiers_are_given_tests_that_are_there"  # a tier does not run itself
_TORCHRUN = "torchrun --standalone --nproc-per-node 4 -m transformer train ..."
RUN_BY = {
    "make PYTHON=/path/to/python3.11 app": _APP,
    "make app": _APP,
    "make bench OPTIONS=--smoke": _BENCH,
    "make bench": _BENCH,
    "make checkpoints": "tests/checkpoints/test_shipped.py::test_make_checkpoints_asks_for_the_settings_of_the_shipped",
    "make links": _BENCH,
    "make load": _BENCH,
    "make test": _TIERS,
    "make test-fast": _TIERS,
    "make test-slow": _TIERS,
    "python -m transformer capsule save": _CAPSULE,
    "python -m transformer capsule show": _CAPSULE,
    "python -m transformer capsule verify": _CAPSULE,
    "python -m transformer experiment run NAME": _EXPERIMENT,
    "python -m transformer experiment run all": (
        "tests/cli/test_experiment_command.py::test_all_experiments_run_by_one_command_and_go_on_where_they_stopped"
    ),
    "python -m transformer experiment show NAME": _EXPERIMENT,
    "python benchmarks/decoding.py": _BENCH,
    "python benchmarks/distillation.py FILE --teachers RUN RUN --sources OTHER OTHER --joined 0.1": (
        "tests/test_benchmarks.py::test_distilled_pairs_are_the_teachers_and_what_a_file_holds_out_stays_held_out"
    ),
    "python benchmarks/file_recipes.py FILE --pairs N [SETTING=VALUE ...]": _BENCH,
    "python benchmarks/gpu.py": _BENCH,
    "python benchmarks/time_to_accuracy.py": _BENCH,
    "python benchmarks/training.py": _BENCH,
    "python benchmarks/watching.py": _BENCH,
    _TORCHRUN: "tests/test_readme.py::test_torchrun_trains_one_model_in_several_processes",
}
"""The commands that are not run here as they are named, each with the test, or the fixture of tests, that runs it."""
_BRIEF = "--train.max-steps 2 --train.evaluate-every 2 --train.evaluate-pairs 2 --train.test-pairs 2 --train.threads 1"
LEAST = {
    "evaluate": "--limit 2",
    "study": "--corpora reverse --positions sinusoidal none --seeds 0 --steps 1 --tested-to 16 --pairs 2",
    "sweep": _BRIEF,
    "train": _BRIEF,
}
"""Options that keep the work of a command small, by its first word; of an option given twice the last counts."""
PLACEHOLDERS = {"NAME": "my-run", "SPLIT": "random", "FOLDER": "opus"}


def test_the_notebook_example_runs_and_says_what_it_says(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "c b a"
    assert printed[1] == "(2, 4, 4, 4)"
    assert all(line in README for line in printed[:2])


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A folder to work in, with what the documents' commands take for granted."""
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ATTENTION_LAB_RUNS", str(folder / "runs"))
        patch.setattr("transformer.data.corpora.TOKENIZER_PAIRS_OF_TASK", 50)
        (folder / "pairs.csv").write_text(PAIRS.replace("\t", ","))
        for side, code in enumerate(("en", "fr")):
            texts = (pair.split("\t")[side] for pair in PAIRS.splitlines())
            (folder / f"corpus.{code}").write_text("".join(f"{text}\n" for text in texts))
        (folder / "en-fr.tsv.gz").write_bytes(gzip.compress(PAIRS.encode()))
        assert main(["train", "reverse", "--name", "my-run", *_BRIEF.split()]) == 0
        assert main(["export", "--to", "marian", "--model", "everyday-en-fr", "opus"]) == 0
        assert main(["capsule", "save", "analysis.attnlab", "a b c", "--model", "reverse"]) == 0
        yield folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [name for name in named_commands() if name.startswith("python -m transformer ") and name not in RUN_BY]
)
def test_a_command_of_the_library_does_what_it_is_named_for(desk, command, capsys):
    first, *others = shlex.split(command.removeprefix("python -m transformer "))
    arguments = [first, *(PLACEHOLDERS.get(word, word) for word in others), *LEAST.get(first, "").split()]
    try:
        status = main(arguments)
    except SystemExit as left:  # after --help
        status = left.code or 0
    told = capsys.readouterr()
    assert status == 0, told.err
    assert told.out.strip(), "it prints what it did"


@pytest.mark.slow
@pytest.mark.processes
def test_torchrun_trains_one_model_in_several_processes(desk):
    words = shlex.split(_TORCHRUN.replace("...", f"reverse --name together {_BRIEF}").replace("node 4", "node 2"))
    program = [sys.executable, "-m", "torch.distributed.run"]  # which torchrun is another name of
    done = subprocess.run([*program, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "together: finished at step 2" in done.stdout


def test_every_command_that_a_document_names_is_run():
    named = named_commands()
    assert {"make test", "python -m transformer train reverse", "python benchmarks/training.py"} <= set(named)
    assert not [name for name in named if not name.startswith("python -m transformer ") and name not in RUN_BY]
    assert not set(RUN_BY) - set(named), "RUN_BY names commands that no document has"


@pytest.mark.parametrize("place", sorted(set(RUN_BY.values())))
def test_what_runs_a_command_is_there(place):
    path, _, function = place.partition("::")
    assert f"def {function}(" in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("command", [name for name in RUN_BY if name.startswith("make ")])
def test_every_make_target_that_is_named_exists(command):
    assert made_commands(command.removeprefix("make "))


@pytest.mark.parametrize("target", ["test", "test-fast", "test-slow"])
def test_the_tiers_are_given_tests_that_are_there(target):
    commands = [line for line in made_commands(target) if "-m pytest" in line]
    named = re.findall(r"\btests/\S+", " ".join(commands))
    assert commands and not [path for path in named if not (ROOT / path).exists()]


def tree() -> str:
    (found,) = re.findall(r"## What is where\n\n```\n(.*?)```", README, flags=re.DOTALL)
    return found


def test_the_tree_names_what_is_there():
    for line in tree().splitlines():
        folder = ROOT / "transformer" if line.startswith(" ") else ROOT
        for name in re.findall(r"(?<![\w/])[a-z]+(?:\.py|/)(?= )", line.split(";")[0]):
            assert (folder / name).exists(), f"{name} is in the README and not in the project"


def test_every_part_of_the_library_stands_in_the_tree():
    parts = [path.name + "/" if path.is_dir() else path.name for path in (ROOT / "transformer").iterdir()]
    assert not [name for name in parts if not name.startswith("__") and f" {name} " not in tree()]
    assert len(tree().splitlines()) <= 25


def test_every_picture_is_there():
    for path in re.findall(r"!\[[^]]*]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path
