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
from transformer.data.corpus_snapshot import load_own
from transformer.data.uploads import list_uploads
from transformer.runs import run_folder
from transformer.runs.limits.quota import DISK
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("room", "measurements")


def upload(at, name, content):
    return checked(at.file_uploader[0].set_value((name, content, "text/plain")).run())


def test_an_uploaded_file_is_shown_and_trained_on(started, room):
    at = upload(open_page("train"), "my pairs.tsv", pairs(300) + pairs(2) + b"one side only\n")
    assert field(at, "corpus").value in at.query_params["corpus"] and at.query_params["look"] == "corpus"
    said = texts(at)
    line = "Columns 1 and 2 of 3; 300 of 303 pairs kept: dropped 1 malformed, 2 repeated; first malformed on line 303."
    assert plain(line) in said
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


ROWS = [(f"the word{i} is here", f"le mot{i} est ici", f"das wort{i} hier") for i in range(300)]


def columns(at, side):
    return at.selectbox(key=f"train-columns-{side}")


def swap(at):
    return checked(next(button for button in at.button if button.label == "Swap").click().run())


def test_the_columns_of_a_file_are_swapped_and_the_run_learns_what_is_shown(started):
    named = "\n".join(["target,source", *(f"{target},{source}" for source, target, _ in ROWS)]).encode()
    at = upload(open_page("train"), "named.csv", named)
    assert (columns(at, "source").value, columns(at, "target").value) == (1, 0)
    assert plain("Columns 2 (source) and 1 (target) of 2, header line read; 300 of 300 pairs kept.") in texts(at)
    at = swap(at)
    assert (columns(at, "source").value, columns(at, "target").value) == (0, 1)
    assert at.query_params["columns"] == "1,2" and "## target → source" in texts(at)
    press_train(fill(at, "steps", 10))
    corpus = run_folder.get_run(started[0]).settings.corpus
    assert corpus.columns == "1,2" and load_own(corpus, folder_of(started[0])).train[0].source.startswith("le mot")
    record = json.loads((folder_of(started[0]) / "corpus" / "source.json").read_text())
    assert record["read"] == "columns 1 (target) and 2 (source) of 2, header line read; 300 of 300 pairs kept"


def test_where_nothing_says_which_columns_are_meant_they_are_chosen(started):
    at = upload(open_page("train"), "three.tsv", "\n".join(map("\t".join, ROWS)).encode())
    assert plain("three.tsv has 3 columns, and nothing says which two to learn from") in texts(at)
    assert train_button(at).disabled and columns(at, "source").value is None
    at = checked(columns(at, "source").set_value(2).run())
    assert train_button(at).disabled and columns(at, "source").value == 2
    at = checked(columns(at, "target").set_value(0).run())
    assert not train_button(at).disabled and plain("das wort0 hier") in texts(at)
    assert (columns(at, "source").value, columns(at, "target").value) == (2, 0)
    at = checked(columns(at, "target").set_value(2).run())
    assert at.query_params["columns"] == "1,3", "one column for both sides: the other takes the one that was here"


def test_columns_of_a_link_that_the_file_lacks_are_refused_where_they_are_chosen():
    at = upload(open_page("train"), "mine.tsv", pairs(300))
    corpus = field(at, "corpus").value
    at = open_page("train", corpus=corpus, look="corpus", columns="en,de")
    assert plain("mine.tsv has no column “en”: there are 1, 2, 3.") in texts(at)
    assert train_button(at).disabled and columns(at, "source").value == 0
    for text in ("1,1", "1", "a,b,c", "x" * 500):
        at = open_page("train", corpus=corpus, look="corpus", columns=text)
        assert plain("which is not two columns of a file with a comma between them, such as en,fr.") in texts(at)
        assert not train_button(at).disabled and (columns(at, "source").value, columns(at, "target").value) == (0, 1)


def test_two_parallel_files_are_brought_together(started):
    english, french = ("\n".join(row[side] for row in ROWS).encode() for side in (0, 1))
    at = open_page("train")
    files = [("train.en", english, "text/plain"), ("train.fr", french, "text/plain")]
    at = checked(at.file_uploader[0].set_value(files).run())
    assert plain("Files en and fr; 300 of 300 pairs kept.") in texts(at) and "## English → French" in texts(at)
    press_train(fill(at, "steps", 10))
    assert run_folder.get_run(started[0]).settings.corpus.name == "corpus/train.en-fr.zip"
    at = upload(open_page("train"), "train.en", english)
    assert plain("bring it with the file of the other language") in texts(at)


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
    assert plain("Vocabulary (90,000) is too large, as this text has different ") in texts(at)
    assert train_button(at).disabled
    offer = next(button for button in at.button if button.label.startswith("Take "))
    faulty = texts(at)
    at = checked(offer.click().run())
    ceiling = shows(at, "vocab_size")
    assert plain(f" for at most {ceiling}: take {ceiling} or fewer, or leave it empty.") in faulty
    assert f"{ceiling:,}" in offer.label and not train_button(at).disabled
    press_train(at)
    assert run_folder.get_run(started[0]).settings.model.vocab_size == ceiling


@pytest.mark.parametrize(("alone", "who"), [(True, "whoever opens the app"), (False, "nobody but you")])
def test_who_may_train_on_a_file_is_said_before_it_is_brought(monkeypatch, alone: bool, who: str):
    monkeypatch.setattr(bring, "identity", lambda: SimpleNamespace(is_one_person=alone))
    assert f"They stay on this machine, where {who} can train on them." in texts(open_page("train"))


def test_a_generated_corpus_is_shown_too():
    at = checked(open_page("train", corpus="sort").segmented_control(key="train-look").set_value("corpus").run())
    for said in ("to train on", "for validation", "No source sentence is in two splits", "tokens on average"):
        assert plain(said) in texts(at) or said in texts(at)


def test_pairs_that_are_too_long_are_counted_beside_the_limit():
    at = open_page("train", max_length="6")
    assert "training pairs are longer than 6 tokens on a side and are left out" in texts(opened(at))
    assert "No pair fits into 1 tokens" in texts(open_page("train", max_length="1", sentence=""))


def test_a_file_beyond_the_quota_is_refused_where_it_is_brought_and_a_removed_one_makes_room(room, monkeypatch):
    monkeypatch.setenv(DISK, "0.02")
    at = upload(open_page("train"), "mine.tsv", pairs(300))
    at = upload(at, "more.tsv", pairs(301))
    assert plain("a visitor may use 0.02 MB: delete a run or a file first") in texts(at)
    assert [found.name for found in list_uploads()] == ["mine.tsv"]
    at = checked(next(button for button in at.button if button.label == "Remove").click().run())
    assert list_uploads() == () and plain("is not here: bring it again") in texts(at)
    at = upload(at, "more.tsv", pairs(301))
    assert [found.name for found in list_uploads()] == ["more.tsv"]
