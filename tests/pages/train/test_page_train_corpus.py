"""Train, the corpus: one of the lab or of one's own, what is in it, and what of it cannot be used."""

import json
from pathlib import Path
from types import SimpleNamespace

import plotly.graph_objects as go
import pytest
from page_exports import with_menus
from page_models import checked, open_page, texts
from page_train import field, fill, opened, pairs, press_train, shows, train_button

from pages.shared.wording import plain
from pages.training import bring
from transformer.runs import run_folder

pytestmark = pytest.mark.usefixtures("room", "measurements")


def upload(at, name, content):
    return checked(at.file_uploader[0].set_value((name, content, "text/plain")).run())


def test_an_uploaded_file_is_shown_and_trained_on(started, room):
    at = upload(open_page("train"), "my pairs.tsv", pairs(300) + pairs(2) + b"one side only\n")
    assert field(at, "corpus").value in at.query_params["corpus"] and at.query_params["look"] == "corpus"
    said = texts(at)
    assert plain("300 of the 303 rows are used") in said.replace(",", "") or "300 of the 303 rows are used" in said
    assert "repeated, kept once" in said or plain("repeated, kept once") in said
    assert plain("one side only") in said and plain("le mot0 est ici") in said
    assert plain("pairs: d_model 64, 2 + 2 layers.") in said and field(at, "d_model").value == 64
    chart = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert [bars["name"] for bars in chart["data"]] == ["source", "target"]
    at = fill(at, "steps", 10)
    press_train(at)
    settings = run_folder.get_run(started[0]).settings
    assert settings.corpus.name == "corpus/my pairs.tsv" and settings.train.max_steps == 10
    assert "my pairs.tsv" in open_page("train").selectbox(key="train-corpus").options


def test_the_program_of_an_uploaded_file_reads_it_where_it_is_put(room, tmp_path, monkeypatch):
    at = upload(open_page("train"), "my pairs.tsv", pairs(300))
    at = with_menus(at, "sentence-lengths-export")
    (lines,) = (code.value for code in at.code if "SentenceLengths(" in code.value)
    assert str(room) not in lines and "Put 'my pairs.tsv', the file that was uploaded, beside this file" in lines
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(go.Figure, "show", lambda figure: None)
    Path("my pairs.tsv").write_bytes(pairs(300))
    made: dict = {}
    exec(compile(lines, "lines", "exec"), made)
    shown, *_ = (json.loads(chart.proto.spec)["data"] for chart in at.get("plotly_chart"))
    again = json.loads(made["figure"].to_json())["data"]
    assert [bars["y"] for bars in again] == [bars["y"] for bars in shown]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("few.tsv", b"a\tb\n", "200"),
        ("picture.tsv", b"\x89PNG", "UTF-8"),
        ("wrong.jsonl", b"{}\n" * 300, "wrong.jsonl"),
        ("latin.csv", "été,summer\n".encode("latin-1") * 300, "UTF-8"),
        ("bomb.zip", b"PK nothing", "bomb.zip"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_at_the_field_and_nothing_is_lost(name, content, said):
    at = fill(open_page("train"), "seed", 5)
    at = upload(at, name, content)
    assert plain(said) in texts(at)
    assert field(at, "corpus").value == "reverse" and field(at, "seed").value == 5 and not train_button(at).disabled


def test_a_vocabulary_that_is_too_large_is_refused_and_the_ceiling_filled_in(started):
    at = upload(open_page("train"), "mine.tsv", pairs(300))
    at = fill(opened(at), "vocab_size", 90_000)
    assert plain("Vocabulary (90000) is too large") in texts(at) and train_button(at).disabled
    offer = next(button for button in at.button if button.label.startswith("Take "))
    at = checked(offer.click().run())
    ceiling = shows(at, "vocab_size")
    assert f"{ceiling:,}" in offer.label and not train_button(at).disabled
    press_train(at)
    assert run_folder.get_run(started[0]).settings.model.vocab_size == ceiling


@pytest.mark.parametrize(("alone", "who"), [(True, "whoever opens the app"), (False, "nobody but you")])
def test_who_may_train_on_a_file_is_said_before_it_is_brought(monkeypatch, alone: bool, who: str):
    monkeypatch.setattr(bring, "identity", lambda: SimpleNamespace(is_one_person=alone))
    assert f"It stays on this machine, where {who} can train on it." in texts(open_page("train"))


def test_a_generated_corpus_is_shown_too():
    at = checked(open_page("train", corpus="sort").segmented_control(key="train-look").set_value("corpus").run())
    for said in ("to train on", "for validation", "No source sentence is in two splits", "tokens on average"):
        assert plain(said) in texts(at) or said in texts(at)


def test_pairs_that_are_too_long_are_counted_beside_the_limit():
    at = open_page("train", max_length="6")
    assert "will be skipped" in texts(opened(at))
    assert "No pair fits into 1 tokens" in texts(open_page("train", max_length="1", sentence=""))
