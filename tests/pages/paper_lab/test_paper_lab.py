"""The Paper lab: shipped numbers and verdicts at once, charts that turn, and experiments that run beside the page."""

import json
import re
import threading
from dataclasses import replace

import pytest
from fakes.experiment import fake_experiment
from page_models import checked, open_page, texts
from tiny_runs import MODEL, settings

from pages.paper_lab import choices, running
from pages.paper_lab.overview import LOOKS
from pages.shared import wording
from pages.shared.background import Stopped
from pages.shared.guard import FAILED
from transformer.access.people import ME
from transformer.config import CorpusConfig
from transformer.experiments.estimate import START_S, estimated_s
from transformer.experiments.experiment import Competence
from transformer.experiments.measuring import run_experiment
from transformer.experiments.outcome import Outcome
from transformer.experiments.paper import EXPERIMENTS, listed
from transformer.experiments.results import load_results, own_file, shipped_file, write_results
from transformer.runs import queue
from transformer.runs.run_folder import create_run
from transformer.runs.worker import train_run
from transformer.views.experiments import Claims, ExperimentFindings

pytestmark = pytest.mark.usefixtures("room")


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """An experiment whose verdict is known stands on the page, with shipped numbers."""
    experiment = fake_experiment("open")
    monkeypatch.setitem(EXPERIMENTS, "fake", experiment)
    monkeypatch.setattr("transformer.experiments.results.SHIPPED_RESULTS", tmp_path)
    run_experiment(experiment, experiment.budget(), tmp_path / "fake.json", command="python -m fake")
    return experiment


def charts(at):
    """The figures that are drawn."""
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def test_the_page_opens_with_the_shipped_verdicts_and_numbers():
    said = texts(at := open_page("paper_lab"))
    for experiment in listed():
        outcome = experiment.verdict(load_results(experiment.name)).outcome
        assert f"{experiment.question} :{LOOKS[outcome][0]}[{LOOKS[outcome][1]} **{outcome}**]" in said
    first = listed()[0]
    assert first.claim in said and first.rule in said and first.change_of_mind in said
    assert all(f"*{objection}* {answer}" in said for objection, answer in first.objections.items())
    assert f"**What decides:** {first.verdict(load_results(first.name)).primary}" in said.replace("\\", "")
    assert len(charts(at)) == 3
    assert at.get("code")[0].value == load_results(first.name).command


@pytest.mark.parametrize("name", [each.name for each in listed()])
def test_every_experiment_opens_by_a_link_and_each_chart_is_drawn(name):
    for number, chart in enumerate(EXPERIMENTS[name].charts):
        at = open_page("paper_lab", experiment=name, chart=str(number))
        label = EXPERIMENTS[name].metric(chart.metric).label
        layout = charts(at)[1]["layout"]
        assert layout["yaxis"]["title"]["text"] == label
        ticks = zip(layout["xaxis"]["tickvals"], layout["xaxis"]["ticktext"], strict=True)
        numbers = [(place, text.replace(",", "")) for place, text in ticks if text[0].isdigit()]
        assert all(float(text) == place for place, text in numbers)


def test_the_legend_writes_numbers_as_the_axis_does():
    at = open_page("paper_lab", experiment="regularisation")
    names = [trace["name"] for trace in charts(at)[1]["data"] if trace.get("showlegend", True)]
    assert "0" in names and "0.1" in names


def test_an_open_question_is_said_as_loudly_as_an_answer(fake):
    at = open_page("paper_lab", experiment="fake")
    assert f"**Verdict:** :gray[:material/help: **{Outcome.UNKNOWN}**]" in texts(at)
    assert "The coin shows 0.50." in texts(at).replace("\\", "")
    claims, _, findings = ([entry["name"] for entry in chart["data"]] for chart in charts(at))
    assert claims == findings == [Outcome.UNKNOWN]


def judged_otherwise(experiment, **changed):
    """Returns the experiment with another verdict, on results that no page has judged before."""
    write_results(shipped_file("fake"), replace(load_results("fake"), command=f"python -m {sorted(changed)}"))
    return replace(experiment, judge=lambda results: replace(experiment.judge(results), **changed))


def test_a_verdict_says_how_small_an_effect_it_could_tell(fake):
    (found,) = fake.verdict(load_results("fake")).findings
    said = texts(open_page("paper_lab", experiment="fake"))
    assert f"A true value {wording.number(found.smallest)} away from the border would be told" in said
    assert "Other draws" not in said


def test_a_verdict_that_other_draws_could_change_says_so(fake, monkeypatch):
    (found,) = fake.verdict(load_results("fake")).findings
    monkeypatch.setitem(EXPERIMENTS, "fake", judged_otherwise(fake, findings=(replace(found, settled=False),)))
    said = texts(open_page("paper_lab", experiment="fake"))
    assert "Other draws of the bootstrap could change this verdict" in said


def test_what_has_not_learned_is_named_and_the_verdict_stays_open(fake, monkeypatch):
    asked = Competence(metric="share", least=0.9, arms={"fair coin": {"coin": "fair"}})
    monkeypatch.setitem(EXPERIMENTS, "fake", replace(judged_otherwise(fake), competence=asked))
    said = texts(at := open_page("paper_lab", experiment="fake")).replace("\\", "")
    claims, _, findings = ([entry["name"] for entry in chart["data"]] for chart in charts(at))
    assert claims == findings == [Outcome.UNLEARNED]
    results = load_results("fake")
    assert all(check.holds for check in Claims().checks((results,), Claims().data((results,))))
    assert all(check.holds for check in ExperimentFindings().checks(results, ExperimentFindings().data(results)))
    assert "**Not learned within this budget:** fair coin: 0.500 (share; at least 0.900 is needed)." in said
    assert "**What must be learned first.** Each of these needs share of at least 0.900: fair coin." in said
    assert f"**Verdict:** :gray[:material/hourglass_empty: **{Outcome.UNLEARNED}**]" in said


@pytest.mark.parametrize(
    ("first", "said"), [(True, "was named before these seeds were measured"), (False, "was chosen after a first")]
)
def test_the_page_says_whether_its_number_was_named_before(fake, monkeypatch, first, said):
    monkeypatch.setitem(EXPERIMENTS, "fake", replace(judged_otherwise(fake), named_first=first))
    assert f"The number that decides {said}" in texts(open_page("paper_lab", experiment="fake"))


def test_a_budget_without_the_number_that_decides_says_so(fake, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "fake", judged_otherwise(fake, primary="the other coin"))
    at = open_page("paper_lab", experiment="fake")
    assert "What decides, the other coin, is not part of this budget." in texts(at)
    assert f"**{Outcome.UNKNOWN}**" in texts(at) and len(charts(at)) == 2  # no row in the picture of all


def test_the_level_of_a_factor_is_chosen_and_travels_in_the_link():
    at = open_page("paper_lab", experiment="table-1")
    last = charts(at)[1]["data"][1]["y"]
    at = checked(at.button_group(key="lab-table-1-0-d").set_value(64).run())
    assert at.query_params["at"] == "d=64" and charts(at)[1]["data"][1]["y"] != last


def test_a_chart_offers_the_levels_at_which_its_metric_is_measured():
    names = [chart.title for chart in EXPERIMENTS["scaling"].charts]
    at = open_page("paper_lab", experiment="scaling", chart=str(names.index("Variance")), at="steps=400")
    assert "The link asks for “steps=400”, which this chart does not have; it is left out." in texts(at).replace(
        "\\", ""
    )
    assert not [each for each in at.get("button_group") if each.key.startswith("lab-scaling")]
    at = open_page("paper_lab", experiment="scaling", chart=str(names.index("Exact match")), at="steps=400")
    assert at.button_group(key=f"lab-scaling-{names.index('Exact match')}-steps").options == ["400", "1,600"]
    assert at.query_params["at"] == "steps=400"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"experiment": "table-9"}, "The link says experiment “table-9”"),
        ({"chart": "x"}, "The link says chart “x”"),
        ({"chart": "7"}, "The link says chart “7”, but here it goes from 0 to "),
        ({"budget": "nope"}, "Nothing was measured here with the budget “nope”: the shipped numbers are shown."),
        (
            {"at": ["d=<b>", "d=64", "n=5"]},
            "The link asks for “d=<b>, n=5”, which this chart does not have; it is left out.",
        ),
    ],
)
def test_nonsense_in_a_link_is_answered_in_a_sentence(parameters, said):
    at = open_page("paper_lab", **{"experiment": "table-1"} | parameters)
    assert said in texts(at).replace("\\", "")
    if "at" in parameters:
        assert at.query_params["at"] == "d=64"  # what there is counts


def test_a_link_to_an_experiment_without_results_is_answered_in_a_sentence(monkeypatch):
    monkeypatch.setattr(choices, "listed", lambda: [])
    said = texts(open_page("paper_lab", experiment="table-1"))
    assert "The experiment “table-1” has no results yet: the first one is shown." in said.replace("\\", "")


def test_what_a_link_says_in_vain_is_told_until_something_is_chosen():
    at = open_page("paper_lab", experiment="table-1", budget="nope")
    at = checked(at.button_group(key="lab-table-1-0-d").set_value(64).run())
    assert "budget “nope”" not in texts(at) and "budget" not in at.query_params


def test_what_was_measured_here_is_shown_beside_the_shipped_numbers(fake):
    run_experiment(fake, fake.budget("short"), own_file("fake", "short"), command="mine")
    at = open_page("paper_lab", experiment="fake")
    assert at.get("code")[0].value == "python -m fake"
    at = checked(at.button_group(key="lab-budget").set_value("short").run())
    assert at.get("code")[0].value == "mine" and at.query_params["budget"] == "short"
    assert "2 seeds in each cell" in texts(at)


def test_the_estimate_is_that_of_the_shipped_measurements(fake):
    shipped = load_results("fake")
    slow = replace(shipped, rows=tuple(replace(row, elapsed_s=3.0) for row in shipped.rows))
    write_results(shipped_file("fake"), slow)
    assert estimated_s(fake, fake.budget()) == pytest.approx(START_S + 6 * 3)
    assert estimated_s(fake, fake.budget("short")) == pytest.approx(START_S + 2 * 3 / 2)  # size 1 of 2


def test_an_experiment_waits_for_its_turn_in_the_queue_of_trainings(fake, monkeypatch):
    begun, told = [], []
    monkeypatch.setenv(queue.LIMIT, "1")
    monkeypatch.setattr(queue, "_LOOK_S", 0.0)
    monkeypatch.setattr(running, "_measure", lambda *given: begun.append(len(told)))
    with queue.working_at_once():

        def tell(share):
            told.append(share)
            if len(told) == 2:
                raise Stopped

        with pytest.raises(Stopped):
            running.measure_in_background(fake, fake.budget("short"), tell)
    assert told == [0.0, 0.0] and not begun
    running.measure_in_background(fake, fake.budget("short"), told.append)
    assert begun == [2] and not running._MEASURING


def test_the_models_of_an_experiment_open_from_its_results(fake):
    run_experiment(fake, fake.budget("short"), own_file("fake", "short"), command="python -m fake")
    run_id = create_run(MODEL, settings(max_steps=2), CorpusConfig(name="reverse"), name="a", command="python -m fake")
    create_run(MODEL, settings(max_steps=2), CorpusConfig(name="reverse"), name="other")
    train_run(run_id)
    at = open_page("paper_lab", experiment="fake", budget="short")
    linked = {link.proto.label: link.proto.query_string for link in at.get("page_link")}
    assert "model=a" in linked["a"] and "other" not in linked
    assert "Its runs: 1 model to look into" in [each.label for each in at.expander]


def test_an_experiment_runs_in_the_background_and_its_numbers_appear(fake, monkeypatch):
    begun, go = threading.Event(), threading.Event()

    def measure(experiment, budget, tell):
        begun.set()
        assert go.wait(30)
        run_experiment(experiment, budget, own_file(experiment.name, budget.name), command="in the background")

    monkeypatch.setattr(running, "measure_in_background", measure)
    at = open_page("paper_lab", experiment="fake")
    at = checked(at.button(key="lab-run").click().run())
    assert begun.wait(30) and at.get("progress") and "Verdict" in texts(at)  # the page is there meanwhile
    work = running.works().find((ME.id, "fake", "short"))
    go.set()
    assert work.over.wait(30) and work.error is None
    at = checked(at.run())
    assert "You've run this." in texts(at)
    assert at.button_group(key="lab-budget").options[-1] == "Measured here (short)"


def test_a_stopped_experiment_ends_its_process_and_can_go_on(fake, monkeypatch):
    def tell(share):
        raise Stopped

    with pytest.raises(Stopped):
        running.measure_in_background(EXPERIMENTS["table-1"], EXPERIMENTS["table-1"].budget("small"), tell)
    run_experiment(fake, fake.budget("short"), own_file("fake", "short"))
    text = own_file("fake", "short").read_text()
    without, found = re.subn(r',\n    \["fair", 1, [^\]]*\]', "", text)  # whatever seconds it took
    assert found == 1
    own_file("fake", "short").write_text(without)
    assert running.n_measured(fake, fake.budget("short")) == 1
    assert at_button(open_page("paper_lab", experiment="fake")) == "Continue"


def at_button(at):
    """The label of the button that runs."""
    return at.button(key="lab-run").label


def test_a_command_that_fails_says_why(fake):
    with pytest.raises(ValueError, match="there is no experiment 'fake'"):
        running.measure_in_background(fake, fake.budget("short"), lambda share: None)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('["fair", 0, 0.4', '[{"a": 1}, 0, 0.4'),
        lambda text: text.replace("0.4", "1" + 400 * "0"),
        lambda text: text.replace('"budget": "short"', '"budget": "huge"'),
        lambda text: text.replace('"fair", 1', '"fair", 0'),
        lambda text: text.replace('"fair"', '"bent"'),
        lambda text: text[:200],
        lambda text: "[]",
    ],
    ids=["dict", "10**400", "budget", "twice", "cell", "cut", "list"],
)
def test_damaged_numbers_are_refused_in_a_sentence_and_can_be_measured_anew(fake, monkeypatch, change):
    run_experiment(fake, fake.budget("short"), own_file("fake", "short"))
    whole = own_file("fake", "short").read_text()
    assert change(whole) != whole
    own_file("fake", "short").write_text(change(whole))
    at = open_page("paper_lab", experiment="fake", budget="short")
    assert "fake" in texts(at) and "Exception" not in texts(at) and FAILED not in texts(at)
    assert at.get("code")[0].value == "python -m fake" if at.get("code") else ":red[" in texts(at)
    assert "The measurements made here can't be used." in texts(at)
    monkeypatch.setattr(
        running,
        "measure_in_background",
        lambda experiment, budget, tell: run_experiment(experiment, budget, own_file(experiment.name, budget.name)),
    )
    at = checked(at.button(key="lab-again").click().run())
    work = running.works().find((ME.id, "fake", "short"))
    assert work is None or work.over.wait(30)
    assert "You've run this." in texts(checked(at.run()))


def test_damaged_shipped_numbers_leave_the_rest_of_the_page(fake):
    shipped_file("fake").write_text("{}")
    at = open_page("paper_lab", experiment="fake")
    said = texts(at)
    assert "fake.json holds no results that can be read: experiment is missing" in said.replace("\\", "")
    assert at_button(at) == "Run it here" and "About" not in said
