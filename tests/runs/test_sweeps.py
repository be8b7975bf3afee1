"""Sweeps: runs that differ in one setting alone, refused before anything is made where a value cannot be."""

import json
from dataclasses import replace

import pytest
from tiny_runs import MODEL, settings

from transformer.__main__ import main
from transformer.access.ownership import owner_of
from transformer.access.people import Person, acting_as
from transformer.config import CorpusConfig
from transformer.runs import run_folder, sweeps
from transformer.runs.labels import rename
from transformer.runs.status import RunError, Status, write_status
from transformer.runs.status import run_folder as folder_of
from transformer.runs.sweeps import Base, cancel_sweep, create_sweep, setting_called, start_sweep, sweeps_of, values_of
from transformer.runs.worker import train_run

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("room")]

BASE = Base(model=MODEL, train=settings(), corpus=CorpusConfig(name="reverse"), pinned=("a b",))


@pytest.fixture
def started(monkeypatch):
    """What is put into the queue; nothing is trained."""
    found = []

    def start(run_id):
        found.append((run_id, owner_of(folder_of(run_id))))
        write_status(folder_of(run_id), Status(state="queued", phase="waiting"))

    monkeypatch.setattr(run_folder, "start", start)
    return found


def found():
    return sweeps_of(run_folder.list_runs())


def test_the_runs_of_a_sweep_differ_in_its_setting_alone():
    sweep = create_sweep(BASE, "n-heads", ["1", "2", "4"])
    assert (sweep.setting, [part.value for part in sweep.parts]) == ("model.n_heads", [1, 2, 4])
    assert [part.run.id for part in sweep.parts] == ["reverse-n_heads-1", "reverse-n_heads-2", "reverse-n_heads-4"]
    for part in sweep.parts:
        own = part.run.settings
        assert own.model == replace(MODEL, n_heads=part.value, vocab_size=own.model.vocab_size)
        assert (own.train, own.corpus, own.pinned) == (BASE.train, BASE.corpus, BASE.pinned)
        assert part.run.status.state == "queued" and not part.run.status.active


def test_sweeps_are_found_again_each_by_its_own_name():
    first = create_sweep(BASE, "model.n_heads", ["1", "2"])
    second = create_sweep(BASE, "model.n_heads", ["4", "8"])
    assert [sweep.id for sweep in (first, second)] == ["reverse-n_heads", "reverse-n_heads-2"]
    assert {sweep.id: [part.value for part in sweep.parts] for sweep in found()} == {
        "reverse-n_heads": [1, 2],
        "reverse-n_heads-2": [4, 8],
    }


def test_a_sweep_outlives_renaming_and_deleting():
    create_sweep(BASE, "n_heads", ["1", "2", "4"])
    rename("reverse-n_heads-2", "favourite")
    run_folder.delete("reverse-n_heads-4")
    (sweep,) = found()
    assert [(part.value, part.run.id) for part in sweep.parts] == [(1, "reverse-n_heads-1"), (2, "favourite")]


@pytest.mark.parametrize(
    ("setting", "texts", "values"),
    [
        ("train.learning_rate", ["1e-3", "0.002"], (0.001, 0.002)),
        ("train.label_smoothing", ["0", ".1"], (0.0, 0.1)),
        ("model.positions", ["sinusoidal", "none"], ("sinusoidal", "none")),
        ("train.patience", ["none", "3"], (None, 3)),
        ("model.tie_output", ["true", "off"], (True, False)),
        ("train.batch_tokens", ["1_024", "64"], (1024, 64)),
        ("seed", ["0", "1"], (0, 1)),
    ],
)
def test_values_are_read_as_their_setting_takes_them(setting, texts, values):
    read = values_of(setting, texts, BASE)
    assert read == values and [type(value) for value in read] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("setting", "texts", "sentences"),
    [
        (
            "n_heads",
            ["2", "3", "5"],
            ["2 of the values", "3: d_model (16) must be divisible by n_heads (3)", "5: d_mo"],
        ),
        ("n_heads", ["two", "2"], ["two: it must be a whole number"]),
        ("n_heads", ["2", "2.0"], ["2.0: it must be a whole number"]),
        ("n_heads", ["2", "4", "2"], ["2: it is there twice"]),
        ("learning_rate", ["-1", "x", "nan"], ["-1: learning_rate (-1.0) must be above 0", "x: it must be a number"]),
        ("learning_rate", ["nan", "1e-3"], ["nan: learning_rate (nan) must be a number"]),
        ("positions", ["sideways", "none"], ["sideways: it must be one of sinusoidal, learned"]),
        ("tie_output", ["maybe", "true"], ["maybe: it must be true or false"]),
        ("n_heads", ["2"], ["2 to 24 values", "here is one"]),
        ("seed", [str(i) for i in range(30)], ["here are 30"]),
        ("vocab_size", ["10", "20"], ["model.vocab_size cannot be swept over: the tokenizer sets it"]),
        ("device", ["cpu", "cuda"], ["not how it learns"]),
        ("evaluate_pairs", ["1", "2"], ["how a run is scored"]),
        ("n_hedas", ["1", "2"], ["there is no setting 'n_hedas'", "model.n_heads"]),
    ],
)
def test_every_value_that_cannot_be_is_named_and_nothing_is_made(room, setting, texts, sentences):
    with pytest.raises(RunError) as caught:
        create_sweep(BASE, setting, texts)
    for sentence in sentences:
        assert sentence in str(caught.value)
    assert not room.exists() or not list(room.iterdir())


def test_where_one_run_cannot_be_made_none_is_left(room):
    short = replace(BASE, pinned=("a b c d e f g h",))
    with pytest.raises(RunError, match="9 tokens"):
        create_sweep(short, "max_length", ["32", "4"])
    assert list(room.iterdir()) == []


def test_every_setting_has_a_name_of_its_own():
    for setting in sweeps.SETTINGS:
        assert setting_called(setting) == setting
    short = [setting.partition(".")[2] for setting in sweeps.SETTINGS]
    assert len(set(short)) == len(short), "a short name would be ambiguous"


def test_starting_puts_all_into_the_queue_for_their_owner(started):
    with acting_as(Person(id="visitor")):
        sweep = create_sweep(BASE, "n_heads", ["1", "2"])
    start_sweep(sweep)
    assert started == [("reverse-n_heads-1", "visitor"), ("reverse-n_heads-2", "visitor")]
    start_sweep(sweep)  # what waits already is let be
    assert len(started) == 2 and found()[0].active


def test_cancelling_empties_the_queue_and_leaves_what_has_finished(started):
    sweep = create_sweep(BASE, "n_heads", ["1", "2", "4"])
    train_run("reverse-n_heads-1")
    start_sweep(sweep)
    assert cancel_sweep(sweep) == 2
    assert [part.run.status.state for part in found()[0].parts] == ["finished", "stopped", "stopped"]
    assert cancel_sweep(sweep) == 0


def test_a_damaged_record_is_no_sweep(room):
    create_sweep(BASE, "n_heads", ["1", "2"])
    (room / "reverse-n_heads-1" / sweeps.SWEEP_FILE).write_text("{")
    (room / "reverse-n_heads-2" / sweeps.SWEEP_FILE).write_text(json.dumps({"sweep": "x", "setting": "no.thing"}))
    assert found() == () and len(run_folder.list_runs()) == 2


SMALL = [
    *("--model.d-model", "16", "--model.d-ff", "16", "--model.n-encoder-layers", "1", "--model.n-decoder-layers", "1"),
    *(
        "--train.max-steps",
        "4",
        "--train.evaluate-every",
        "2",
        "--train.evaluate-pairs",
        "4",
        "--train.test-pairs",
        "4",
    ),
    *("--train.precision", "float32", "--train.threads", "1", "--train.batch-tokens", "64"),
]


def test_the_command_trains_one_after_the_other_and_prints_a_table(capsys):
    assert main(["sweep", "reverse", "--setting", "model.n-heads", "--values", "1", "2", *SMALL]) == 0
    out = capsys.readouterr().out
    assert [part.run.status.state for part in found()[0].parts] == ["finished", "finished"]
    table = [line.split() for line in out.splitlines()[-2:]]
    assert [row[0] for row in table] == ["1", "2"] and [row[-1] for row in table] == [
        "reverse-n_heads-1",
        "reverse-n_heads-2",
    ]
    last = [row for row in run_folder.metrics("reverse-n_heads-1") if row["split"] == "validation"][-1]
    assert float(table[0][1]) == pytest.approx(100 * last["exact_match"], abs=0.06)
    assert float(table[0][2]) == pytest.approx(last["loss"], abs=6e-5)


def test_the_command_can_leave_them_to_the_queue(started, capsys):
    assert main(["sweep", "copy", "--setting", "seed", "--values", "0", "1", "--detach", *SMALL]) == 0
    assert [run_id for run_id, _ in started] == ["copy-seed-0", "copy-seed-1"]
    assert "copy-seed-0" in capsys.readouterr().out


def test_a_bad_value_on_the_command_line_is_one_sentence(capsys, room):
    assert main(["sweep", "reverse", "--setting", "n-heads", "--values", "3", "4", *SMALL]) == 2
    error = capsys.readouterr().err
    assert (
        error.startswith("error: a value of model.n_heads cannot be: 3: d_model (16) must be")
        and "\n" not in error[:-1]
    )
    assert not room.exists() or not list(room.iterdir())
