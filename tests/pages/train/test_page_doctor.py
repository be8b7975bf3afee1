"""The Doctor's panel on Train and Runs: findings with their numbers, what was checked, and how often it looks again."""

import os
import time
from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from page_models import checked, open_page, texts
from page_runs import at_work, made_run, put_status, trained_run
from tiny_runs import MODEL

from pages.shared.wording import plain
from pages.training import doctor
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE
from transformer.config import AnyModelConfig, ConvolutionalConfig, RecurrentConfig
from transformer.files import append_rows
from transformer.runs import run_folder
from transformer.runs.status import run_folder as folder_of

OTHER_FAMILIES: dict[str, AnyModelConfig] = {
    "recurrent, additive": RecurrentConfig(attention="additive", n_encoder_layers=1, n_decoder_layers=1),
    "recurrent, dot": RecurrentConfig(attention="dot", input_feeding=True),
    "recurrent, no attention": RecurrentConfig(attention="none"),
    "convolutional": ConvolutionalConfig(n_encoder_layers=1, n_decoder_layers=1),
}


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    """An empty folder of runs."""
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))


def examined() -> None:
    """Waits until nothing is being examined."""
    for run in run_folder.list_runs():
        while doctor.examination_of(run)[1]:
            time.sleep(0.01)


@pytest.mark.parametrize("page", ["train", "runs"])
def test_a_finished_run_is_examined_and_what_was_checked_is_said(page):
    run_id = trained_run()
    at = open_page(page, run=run_id)
    examined()
    said = texts(at.run())
    assert "Doctor" in said and "Checked:" in said
    assert "a vocabulary of 24" in said, "the corpus was read, in the background"
    assert plain("over-fitting (2 evaluations, 4 are needed)") in said


@pytest.mark.parametrize("page", ["train", "runs"])
@pytest.mark.parametrize("name", list(OTHER_FAMILIES))
def test_a_run_of_another_family_is_examined(page, name, monkeypatch, caplog):
    sizes = {field: getattr(MODEL, field) for field in ("vocab_size", "d_model", "max_length")}
    monkeypatch.setattr("page_runs.MODEL", replace(OTHER_FAMILIES[name], **sizes))
    at = open_page(page, run=trained_run(max_steps=70))
    examined()
    said = texts(checked(at.run()))
    assert "with their sources exchanged" in said and not [r for r in caplog.records if r.levelname == "ERROR"]
    without = name == "recurrent, no attention"
    assert ("attention head for dead" in said) != without and "0 attention heads" not in said
    assert ("its decoder knows a sentence only through one vector" in said) == without
    pages = {link.proto.label: link.proto.page for link in at.get("page_link")}
    assert ("What the vector keeps" in pages) == without
    assert pages["Look inside"] == ("before-attention" if without else "attention")


@pytest.mark.parametrize("label", ["Look inside", "What the vector keeps"])
def test_a_run_without_attention_is_looked_into_where_there_is_something_to_see(label, monkeypatch):
    config = RecurrentConfig(attention="none", vocab_size=MODEL.vocab_size, d_model=16, max_length=MODEL.max_length)
    monkeypatch.setattr("page_runs.MODEL", config)
    at = open_page("train", run=trained_run())
    (link,) = (link.proto for link in at.get("page_link") if link.proto.label == label)
    assert link.page == "before-attention"
    shown = texts(open_page("before", **{name: value for name, (value,) in parse_qs(link.query_string).items()}))
    assert "one vector of 16 numbers" in shown and "gets **nothing else**" in shown


def test_a_measurement_that_fails_is_left_unchecked_and_logged(monkeypatch, caplog):
    def fails(*_: object) -> None:
        raise LookupError("nobody foresaw this")

    monkeypatch.setattr(doctor, "head_health", fails)
    at = open_page("runs", run=trained_run())
    examined()
    said = texts(checked(at.run()))
    assert plain("the attention heads (no weights yet, too few steps, no corpus, or the measurement failed)") in said
    assert "with their sources exchanged" in said, "the other measurements were made"
    assert "LookupError: nobody foresaw this" in caplog.text


def test_a_loss_that_is_no_number_is_told_with_its_step_and_a_way_out():
    run_id = made_run()
    losses = [*(3.0 / step for step in range(1, 8)), float("nan")]
    shared = {"split": "train", "learning_rate": 0.5, "gradient_norm": 2.0, "tokens": 9, "tokens_per_s": 9.0}
    rows = [
        shared | {"step": step, "loss": loss, "elapsed_s": float(step)} for step, loss in enumerate(losses, start=1)
    ]
    append_rows(folder_of(run_id) / METRICS_FILE, rows)
    put_status(run_id, state="failed", step=8, error="the loss is no longer a finite number at step 8")
    said = texts(open_page("train", run=run_id))
    assert "at step 8" in said and plain("learning rate") in said


@pytest.mark.parametrize("page", ["train", "runs"])
def test_a_run_without_its_causal_mask_is_named_and_explained(page, monkeypatch):
    monkeypatch.setattr("page_runs.MODEL", replace(MODEL, causal_mask=False))
    at = open_page(page, run=trained_run())
    said = texts(at).replace("\\", "")
    assert "trained with parts missing: no causal mask" in said
    assert "without a causal mask, on teacher-forced tokens that it could see ahead" in said
    assert "Nothing found" not in said


def test_a_run_that_gets_nothing_right_has_no_green_tick():
    run_id = trained_run()
    (last,) = [row for row in run_folder.metrics(run_id) if row["split"] == "validation"][-1:]
    assert last["exact_match"] == 0
    said = texts(open_page("train", run=run_id))
    assert "not one output is right" in said and "Nothing found" not in said


def test_a_run_at_work_is_not_examined_anew_with_each_of_its_weights(monkeypatch):
    run_id = trained_run()
    at_work(run_id)
    run, examine, made = run_folder.get_run(run_id), doctor._examine, []

    def counted(run):
        made.append(run)
        return examine(run)

    monkeypatch.setattr(doctor, "_examine", counted)
    first, busy = doctor.examination_of(run)
    assert busy and first is None
    examined()
    os.utime(run.folder / WEIGHTS_FILE)
    later, busy = doctor.examination_of(run)
    assert not busy and later is not None and len(made) == 1
    monkeypatch.setattr(doctor, "AGAIN_S", 0.0)
    assert doctor.examination_of(run) == (later, True)
    examined()
    assert len(made) == 2


def test_a_run_without_weights_waits_for_them_and_is_then_examined_at_once():
    run_id = trained_run()
    at_work(run_id)
    run = run_folder.get_run(run_id)
    assert doctor.examination_of(replace(run, loadable=False)) == (None, False)
    examined()
    assert doctor.examination_of(run)[0] is not None
