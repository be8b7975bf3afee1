"""The experiment command: it lists, runs, resumes and shows, and answers wrong names in a sentence."""

import re
from dataclasses import replace

import pytest
from fakes.experiment import fake_experiment

from transformer.__main__ import main
from transformer.cli import experiment_commands
from transformer.experiments import paper
from transformer.experiments.intervals import t_interval
from transformer.experiments.outcome import Verdict, finding
from transformer.experiments.results import own_file, read_results

KNOWN = ", ".join(paper.EXPERIMENTS)


@pytest.fixture
def fake(room, monkeypatch):
    monkeypatch.setitem(paper.EXPERIMENTS, "fake", fake_experiment("fails"))


def test_an_experiment_runs_and_is_shown_with_its_verdict(fake, room, capsys):
    assert main(["experiment", "run", "fake"]) == 0
    said = capsys.readouterr().out
    assert "Verdict: does not hold here. The coin shows 0.50." in said
    assert "What would change our mind: Another coin." in said and "claim: 5 to 6" in said
    assert len(read_results(own_file("fake", "full")).rows) == 6
    assert main(["experiment", "show", "fake", "--budget", "full"]) == 0
    assert "does not hold here" in capsys.readouterr().out


def test_results_are_written_where_they_are_asked_for(fake, room, tmp_path, capsys):
    assert main(["experiment", "run", "fake", "--budget", "short", "--out", str(tmp_path / "mine.json")]) == 0
    assert len(read_results(tmp_path / "mine.json").rows) == 2 and not own_file("fake", "short").exists()
    assert "cannot be told at this size" in capsys.readouterr().out


def test_an_interval_near_zero_is_told_from_one_that_holds_it():
    small = finding("small", t_interval([-0.0011, -0.0012, -0.001]), group="", unit="", least=0.0)
    (line,) = experiment_commands._lines(Verdict(findings=(small,), primary="small", sentence=""))
    assert "-0.00110 (-0.00135 to -0.000852; claim: at least 0)  does not hold here" in line


def test_the_list_names_each_experiment_with_its_verdict(capsys):
    assert main(["experiment", "list"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("alignment "))
    assert "does not hold here" in line and line.endswith("?")


def test_the_list_says_how_long_all_of_them_take(capsys):
    assert main(["experiment", "list"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    minutes = [float(re.search(r"(\d+) min ", line).group(1)) for line in lines]
    hours = float(re.search(r"again in about (\d+\.\d) h on our test machine", last).group(1))
    rounding = 0.06 + len(minutes) / 120
    assert len(minutes) == len(paper.listed()) and hours == pytest.approx(sum(minutes) / 60, abs=rounding)
    assert max(minutes) < 90 and hours < 8


def test_all_experiments_run_by_one_command_and_go_on_where_they_stopped(monkeypatch, tmp_path, capsys):
    two = {name: replace(fake_experiment(claim), name=name) for name, claim in (("one", "holds"), ("two", "fails"))}
    monkeypatch.setattr(experiment_commands, "EXPERIMENTS", two)
    assert main(["experiment", "run", "all", "--out", str(tmp_path / "all")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 experiments: about ") and "holds here" in said and "does not hold here" in said
    for name in two:
        found = read_results(tmp_path / "all" / f"{name}.json")
        assert found.command == f"python -m transformer experiment run {name} --out {tmp_path}/all/{name}.json"
    before = (tmp_path / "all" / "one.json").stat().st_mtime_ns
    assert main(["experiment", "run", "all", "--out", str(tmp_path / "all")]) == 0
    assert (tmp_path / "all" / "one.json").stat().st_mtime_ns == before
    assert main(["experiment", "run", "all", "--out", str(tmp_path / "all" / "one.json")]) == 2
    assert "is a file: name a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "table-9"], f"error: there is no experiment 'table-9'; there are: {KNOWN}"),
        (["show"], f"error: there is no experiment ''; there are: {KNOWN}"),
        (["run", "table-1", "--budget", "huge"], "error: table-1 has no budget 'huge'; choose one of: full, small"),
        (["show", "table-1", "--budget", "small"], "error: there are no results of table-1 with the budget small"),
    ],
)
def test_wrong_names_are_answered_in_a_sentence(arguments, said, room, capsys):
    assert main(["experiment", *arguments]) == 2
    assert capsys.readouterr().err.startswith(said)
