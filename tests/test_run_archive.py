"""A model as a zip file: what goes out comes back the same, and nothing that was tampered with comes in."""

import io
import json
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tiny_runs import MODEL, settings

from transformer import corpora, locks, runs
from transformer.checkpoint import load_checkpoint
from transformer.config import CorpusConfig
from transformer.lab import load
from transformer.own_copy import AbsentCorpus, load_own
from transformer.run_archive import LOADED, load_archive, save_archive, write_archive
from transformer.run_labels import about, rename, set_note
from transformer.run_status import LOCK_FILE, WAITING
from transformer.runs import RunError
from transformer.settings import read_settings
from transformer.worker import train_run


@pytest.fixture(scope="module", autouse=True)
def room(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("runs")
        patch.setenv("ATTENTION_LAB_RUNS", str(folder))
        patch.setattr(corpora, "TOKENIZER_PAIRS_OF_TASK", 50)
        yield folder


@pytest.fixture(scope="module")
def origin(room):
    run_id = runs.create_run(MODEL, settings(), CorpusConfig(name="reverse"), pinned=("a b",), name="origin")
    train_run(run_id)
    set_note(run_id, "the first one")
    return run_id


@pytest.fixture(scope="module")
def packed(origin):
    return archive_of(origin)


@pytest.fixture(autouse=True)
def only_the_origin(room, origin):
    """What a test loads goes away after it, and no test leaves half a folder behind."""
    yield
    left = [path.name for path in room.iterdir() if path.name.startswith(".")]
    for path in room.iterdir():
        if path.name != "origin":
            shutil.rmtree(path)
    assert not left


def archive_of(name, **options):
    file = io.BytesIO()
    write_archive(name, file, **options)
    return file.getvalue()


def contents(packed):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return {name.removeprefix("origin/"): archive.read(name) for name in archive.namelist()}


def repacked(packed, changes=None, *, prefix="origin/", extra=()):
    """The archive with some files replaced, or left out where the new content is None; and with further entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (contents(packed) | (changes or {})).items():
            if content is not None:
                archive.writestr(prefix + name, content)
        for info, content in extra:
            archive.writestr(info, content)
    return file.getvalue()


def edited(packed, file, **changes):
    """A JSON file of the archive with other values, given by their dotted place."""
    content = json.loads(contents(packed)[file])
    for place, value in changes.items():
        *groups, last = place.split("__")
        inner = content
        for group in groups:
            inner = inner[group]
        inner[last] = value
    return json.dumps(content).encode()


def loaded(packed):
    return load_archive(io.BytesIO(packed))


def refusal(packed, room):
    before = sorted(room.iterdir())
    with pytest.raises(RunError) as caught:
        loaded(packed)
    assert sorted(room.iterdir()) == before, "something was left behind"
    assert "\n" not in str(caught.value) and str(room) not in str(caught.value)
    return str(caught.value)


def test_what_goes_out_comes_back_the_same(origin, packed, room):
    run_id = loaded(packed)
    assert run_id == "origin-2"
    for name in ("weights.safetensors", "tokenizer.json", "metrics.jsonl", "samples.jsonl", "CARD.md"):
        assert (room / run_id / name).read_bytes() == (room / origin / name).read_bytes(), name
    assert load(run_id).translate(["a b c"]) == load(origin).translate(["a b c"])
    assert about(room / run_id).note == "the first one"
    status = runs.status(run_id)
    assert (status.state, status.step, status.reason) == ("finished", 20, LOADED)
    assert read_settings(room / run_id).name == run_id
    assert [run.id for run in runs.list_runs()].count(run_id) == 1


def test_an_archive_holds_no_state_no_snapshots_and_nothing_of_this_machine(packed, room):
    assert set(contents(packed)) == {
        *("config.json", "tokenizer.json", "weights.safetensors", "metrics.jsonl", "samples.jsonl", "CARD.md"),
        "about.json",
    }
    assert str(room).encode() not in packed


def test_the_same_model_gives_the_same_archive(origin, packed):
    assert archive_of(origin) == packed


def test_a_half_written_row_stays_behind(origin, room):
    path = room / origin / "metrics.jsonl"
    kept = path.read_bytes()
    try:
        path.write_bytes(kept + b'{"split": "train", "st')
        assert contents(archive_of(origin))["metrics.jsonl"] == kept
    finally:
        path.write_bytes(kept)


def test_names_that_are_taken_get_a_number(packed, room):
    assert [loaded(packed), loaded(packed)] == ["origin-2", "origin-3"]


def test_a_name_that_cannot_be_one_is_made_into_one(packed, room):
    assert (
        loaded(repacked(packed, {"config.json": edited(packed, "config.json", name="../../évil name")})) == "vil-name"
    )


def test_files_without_a_folder_of_their_own_are_read_and_strangers_left_out(packed, room):
    extra = [("__MACOSX/config.json", b"{}"), ("notes/readme.txt", b"x")]
    run_id = loaded(repacked(packed, {"strange.txt": b"x"}, prefix="", extra=extra))
    assert not (room / run_id / "strange.txt").exists() and not (room / run_id / "notes").exists()


def test_an_archive_is_saved_whole_and_never_over_another(origin, tmp_path):
    path = tmp_path / "model.zip"
    save_archive(origin, path)
    with pytest.raises(FileExistsError, match="already there"):
        save_archive(origin, path)
    with pytest.raises(RunError):
        save_archive("gone", tmp_path / "other.zip")
    assert [item.name for item in tmp_path.iterdir()] == ["model.zip"]


@pytest.fixture
def of_a_file(tmp_path):
    """A run that learned from a file."""
    path = tmp_path / "my pairs.tsv"
    path.write_text("".join(f"word{i} a\tmot{i} b\n" for i in range(400)), encoding="utf-8")
    corpus = CorpusConfig(name=str(path), tokenizer="words")
    run_id = runs.create_run(MODEL, settings(max_steps=2), corpus, pinned=(), name="of-a-file")
    train_run(run_id)
    return run_id


def test_the_corpus_file_is_left_out_unless_it_is_asked_for(of_a_file, room):
    without, with_it = archive_of(of_a_file), archive_of(of_a_file, with_corpus=True)
    assert not any("corpus/" in name for name in contents(without))
    first, second = loaded(without), loaded(with_it)
    with pytest.raises(AbsentCorpus, match="without the sentences that it learned from"):
        load_own(read_settings(room / first).corpus, room / first)
    brought = load_own(read_settings(room / second).corpus, room / second)
    assert brought.train == load_own(read_settings(room / of_a_file).corpus, room / of_a_file).train


def test_a_generated_corpus_has_no_file_to_add(origin):
    with pytest.raises(RunError, match="no corpus file to add"):
        archive_of(origin, with_corpus=True)


def test_an_archive_does_not_choose_what_is_read_on_this_machine(packed, room):
    for path in ("/etc/passwd.tsv", "../origin/secret.tsv", "C:\\secret.tsv", "a\0b.tsv"):
        run_id = loaded(repacked(packed, {"config.json": edited(packed, "config.json", corpus__name=path)}))
        folder, name = Path(read_settings(room / run_id).corpus.name).parts
        assert folder == "corpus" and name in ("passwd.tsv", "secret.tsv", "a-b.tsv")


def link(name, target):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info, target


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (("../evil.txt", b"x"), "leads out of its own folder"),
        (("/etc/evil.txt", b"x"), "leads out of its own folder"),
        (("origin/../../evil.txt", b"x"), "leads out of its own folder"),
        (("origin\\..\\evil.txt", b"x"), "leads out of its own folder"),
        (("C:evil.txt", b"x"), "leads out of its own folder"),
        (link("origin/link", b"/etc/passwd"), "is a link"),
        (("origin/weights.pt", b"x"), "pickled weights are refused because reading them can run any code"),
        (("origin/pytorch_model.BIN", b"x"), "pickled weights are refused"),
        (("other/config.json", b"{}"), "it holds 2 models"),
    ],
)
def test_a_path_that_no_honest_archive_holds_is_refused(packed, room, extra, sentence):
    assert sentence in refusal(repacked(packed, extra=[extra]), room)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("config.json", "it is no model: it has no config.json"),
        ("weights.safetensors", "it has no weights.safetensors"),
        ("tokenizer.json", "it has no tokenizer"),
    ],
)
def test_a_missing_file_is_named(packed, room, missing, sentence):
    assert sentence in refusal(repacked(packed, {missing: None}), room)


@pytest.mark.parametrize("missing", ["CARD.md", "metrics.jsonl", "samples.jsonl", "about.json"])
def test_a_model_can_do_without_its_history(packed, room, missing):
    assert load_checkpoint(room / loaded(repacked(packed, {missing: None}))).step == 20


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format_version": 2}, "format version 2; this program reads version 1"),
        ({"format": "other"}, "was not written by this program"),
        ({"from_the_future": 1}, "holds 'from_the_future', which this program does not know"),
        ({"model__n_heads": 3}, "d_model (16) must be divisible by n_heads (3)"),
        ({"model__d_ff": 64}, "has shape"),
        ({"model__vocab_size": 99}, "the tokenizer has 24 entries and the model 99"),
        ({"model__n_encoder_layers": 10**9}, "layers, and 200 are read"),
        ({"model__d_model": 10**6, "model__n_heads": 1}, "weights, and at most"),
        ({"model__max_length": 10**9}, "weights, and at most"),
        ({"created": 7}, "created (7) must be a text"),
        ({"resolved__threads": "two"}, "threads ('two') must be a whole number"),
    ],
)
def test_a_config_that_cannot_be_right_is_refused(packed, room, changes, sentence):
    assert sentence in refusal(repacked(packed, {"config.json": edited(packed, "config.json", **changes)}), room)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("config.json", b"{", "it is not JSON"),
        ("config.json", b"[" * 100_000, "it is not JSON"),
        ("weights.safetensors", b"\x80\x02}q\x00.", "damaged or no safetensors file"),
        ("tokenizer.json", b"{}", "tokenizer"),
        ("metrics.jsonl", b'{"split": "train", "step": "x", "elapsed_s": 1}\n', "has the step 'x'"),
        ("metrics.jsonl", b'{"split": ["train"], "step": 1, "elapsed_s": 1}\n', "which is not a text"),
        ("metrics.jsonl", b'{"split": "train", "step": 1, "elapsed_s": 1, "loss": "low"}\n', "has the loss 'low'"),
        ("metrics.jsonl", b'{"split": "train", "step": 1}\n', "without elapsed_s"),
        ("metrics.jsonl", b"[" * 100_000 + b"\n", "was not loaded"),
        ("samples.jsonl", b'{"step": 1, "source": "a", "translation": 3}\n', "has the translation '3'"),
        ("CARD.md", b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(packed, room, file, content, sentence):
    assert sentence in refusal(repacked(packed, {file: content}), room)


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("weights.safetensors", "weights.safetensors would grow from"),
        ("metrics.jsonl", "metrics.jsonl would grow from"),
        ("config.json", "config.json would have 5,000,000 bytes, and at most 1,048,576"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(packed, room, file, sentence):
    assert sentence in refusal(repacked(packed, {file: bytes(5_000_000)}), room)


def test_weights_longer_than_the_model_are_refused_by_their_size(packed, room):
    content = contents(packed)["weights.safetensors"] + bytes(range(256)) * 8_000
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, own in (contents(packed) | {"weights.safetensors": content}).items():
            archive.writestr(name, own)
    assert "at most" in refusal(file.getvalue(), room)


def test_a_size_that_lies_gives_no_more_than_it_says(packed, room):
    """The real content of a deflated member is longer than its header says: it ends there and its sum is wrong."""
    raw = bytearray(repacked(packed))
    entry = raw.index(b"PK\x01\x02")
    while raw[entry + 46 : entry + 46 + 18] != b"origin/config.json":
        entry = raw.index(b"PK\x01\x02", entry + 1)
    raw[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    assert "is damaged" in refusal(bytes(raw), room)


def test_no_more_files_than_a_model_has_are_read(packed, room):
    assert "at most 1,000" in refusal(repacked(packed, extra=[(f"{i}.txt", b"") for i in range(1_100)]), room)


def test_an_encrypted_or_oddly_packed_archive_is_refused(packed, room):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        for name, own in contents(packed).items():
            archive.writestr(name, own)
    assert "packed in an unusual way" in refusal(file.getvalue(), room)
    raw = bytearray(repacked(packed))
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(bytes(raw), room)


def test_weights_that_are_not_numbers_are_refused(packed, room):
    weights = contents(packed)["weights.safetensors"]
    assert "not finite" in refusal(repacked(packed, {"weights.safetensors": weights[:-4] + b"\x00\x00\xc0\x7f"}), room)


@examples(max_examples=60)
@given(data=st.data())
def test_no_damage_of_bytes_does_more_than_be_refused(packed, data):
    """Either the damage is noticed, in a sentence, or it touched nothing of the model."""
    raw = bytearray(packed)
    match data.draw(st.sampled_from(["flip", "cut", "grow", "swap"])):
        case "flip":
            for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
                raw[place] = data.draw(st.integers(0, 255))
        case "cut":
            raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
        case "grow":
            raw += data.draw(st.binary(min_size=1, max_size=64))
        case "swap":
            place, other = (data.draw(st.integers(0, len(raw) - 65)) for _ in range(2))
            raw[place : place + 64] = raw[other : other + 64]
    try:
        run_id = loaded(bytes(raw))
    except RunError as error:
        assert "\n" not in str(error)
    else:
        assert load_checkpoint(runs.run_folder(run_id)).model is not None
        runs.delete(run_id)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@examples(max_examples=60)
@given(data=st.data())
def test_no_value_in_a_config_or_history_does_more_than_be_refused(packed, data):
    """What is let in can be listed, loaded and drawn."""
    file = data.draw(st.sampled_from(["config.json", "metrics.jsonl", "samples.jsonl", "about.json"]))
    lines = contents(packed)[file].decode().splitlines() if file.endswith("l") else [contents(packed)[file].decode()]
    index = data.draw(st.integers(0, len(lines) - 1))
    content = json.loads(lines[index])
    inside = (
        content[data.draw(st.sampled_from(["model", "train", "corpus", "resolved"]))] if "model" in content else content
    )
    target = data.draw(st.sampled_from([content, inside]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JSON)
    lines[index] = json.dumps(content)
    changed = repacked(packed, {file: ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")})
    try:
        run_id = loaded(changed)
    except RunError as error:
        assert "\n" not in str(error)
    else:
        (run,) = (run for run in runs.list_runs() if run.id == run_id)
        assert sorted(runs.metrics(run_id), key=lambda row: row["step"]) and run.loadable
        runs.samples(run_id)
        load(run_id).inspect("a")
        runs.delete(run_id)


def test_rubbish_is_no_archive(room):
    assert "it is not a zip archive" in refusal(b"", room)
    assert "it is not a zip archive" in refusal(b"PK\x03\x04 no", room)


def test_a_renamed_run_is_the_same_under_its_new_name_and_its_old_one_leads_to_it(packed, room):
    run_id = loaded(packed)
    rename(run_id, "better")
    assert not (room / run_id).exists() and load("better").name == "better"
    assert load(run_id).name == "better"
    assert (read_settings(room / "better").name, about(room / "better").note) == ("better", "the first one")
    rename("better", run_id)
    assert about(room / run_id).formerly == ("better",)


def test_the_card_is_headed_by_the_new_name(room):
    run_id = runs.create_run(MODEL, settings(max_steps=2), CorpusConfig(name="reverse"), pinned=(), name="carded")
    train_run(run_id)
    rename(run_id, "headed")
    assert (room / "headed" / "CARD.md").read_text().startswith("# headed\n")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "cannot be a run's name"),
        ("../up", "cannot be a run's name"),
        ("a b", "cannot be a run's name"),
        ("é", "cannot be a run's name"),
        ("x" * 81, "at most 80"),
        ("origin", "there is already a run called origin"),
        ("reverse", "there is a shipped model called reverse"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(packed, name, sentence):
    run_id = loaded(packed)
    with pytest.raises(RunError, match=sentence):
        rename(run_id, name)
    assert runs.run_folder(run_id)


def test_a_run_at_work_or_in_the_queue_keeps_its_name(packed, room):
    run_id = loaded(packed)
    lock = locks.take(room / run_id / LOCK_FILE)
    assert lock is not None
    with pytest.raises(RunError, match="is at work: pause or stop it"):
        rename(run_id, "other")
    os.close(lock)
    runs.write_status(room / run_id, runs.Status(state="queued", phase=WAITING))
    with pytest.raises(RunError, match="waits for its turn: pause or stop it"):
        rename(run_id, "other")


def test_a_note_has_a_limit_and_can_be_taken_away(packed, room):
    run_id = loaded(packed)
    with pytest.raises(RunError, match="2,001 characters"):
        set_note(run_id, "x" * 2_001)
    set_note(run_id, "  two\nlines ")
    assert about(room / run_id).note == "two\nlines"
    set_note(run_id, "")
    assert about(room / run_id).note == ""
