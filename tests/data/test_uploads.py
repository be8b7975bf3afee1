"""Files that visitors bring: whatever they hold, they are kept once or refused in a sentence; runs keep copies."""

import gzip
import hashlib
import io
import json
import struct
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_runs import MODEL
from tiny_runs import settings as tiny

from transformer.checkpoints.settings import list_checkpoints, read_settings, write_settings
from transformer.config import CorpusConfig
from transformer.data import uploads
from transformer.data.columns import UnclearColumns
from transformer.data.corpora import load_corpus
from transformer.data.corpus_snapshot import AbsentCorpus, is_own_copy, load_own, located
from transformer.data.pair_files import kinds_of_files
from transformer.data.unpacking import MAX_FILE_BYTES, CorpusError
from transformer.data.uploads import find_upload, list_uploads, safe_name, save_upload
from transformer.runs import run_folder
from transformer.text.pairs import split_of

pytestmark = pytest.mark.usefixtures("room")

ROWS = [(f"sentence number {i}", f"phrase numéro {i}") for i in range(120)]
TSV = "".join(f"{source}\t{target}\n" for source, target in ROWS).encode()
MEBIBYTE = 2**20


def zipped(**files: bytes) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__dot__", "."), content)
    return memory.getvalue()


def refused(name: str, content: bytes) -> str:
    """The sentence with which it is refused; nothing is kept."""
    before = list_uploads()
    with pytest.raises(CorpusError) as caught:
        save_upload(name, content)
    assert list_uploads() == before
    return str(caught.value)


# Keeping


def test_an_upload_is_kept_as_it_came_under_its_own_name(room):
    path = save_upload("my pairs.tsv", TSV)
    assert path.read_bytes() == TSV and path.name == "my pairs.tsv" and room in path.parents
    (upload,) = list_uploads()
    assert (upload.path, upload.name, upload.n_bytes) == (path, path.name, len(TSV))
    assert hashlib.sha256(TSV).hexdigest().startswith(upload.key)
    assert find_upload(upload.key) == upload
    assert len(load_corpus(str(path)).train) > 80


def test_the_same_content_is_kept_once(room):
    first = save_upload("a.tsv", TSV)
    assert save_upload("b.tsv", TSV) == save_upload("a.TXT.tsv", TSV) == first
    assert save_upload("a.tsv", TSV + b"one\tmore\n") != first
    assert len(list_uploads()) == 2
    assert [path.name for path in first.parent.iterdir()] == ["a.tsv"]


def test_an_upload_is_neither_a_run_nor_a_model():
    save_upload("a.tsv", TSV)
    assert run_folder.list_runs() == []
    assert not [found for found in list_checkpoints() if not found.shipped]


def test_a_key_that_names_nothing_is_answered_in_a_sentence(room):
    for key in ("", "..", "0" * 24, "../../etc", "A" * 24):
        with pytest.raises(CorpusError, match="is not here: bring it again"):
            find_upload(key)
    assert list_uploads() == ()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("fra.txt", "fra.txt"),
        ("../../etc/pass wd.tsv", "pass wd.tsv"),
        ("C:\\data\\my.pairs.tsv.gz", "my.pairs.tsv.gz"),
        ("<script>.csv", "script.csv"),
        (".tsv", "tsv"),
        ("한국어 문장.jsonl", "한국어 문장.jsonl"),
        ("x" * 300 + ".tsv", "x" * 56 + ".tsv"),
        ("", "pairs"),
    ],
)
def test_a_name_is_made_safe_and_keeps_its_ending(name, safe):
    assert safe_name(name) == safe


@given(st.text(max_size=80))
def test_no_name_leaves_its_folder(name):
    safe = safe_name(name)
    assert safe and len(safe) <= 80 and not safe.startswith(".") and not set(safe) & set('/\\<>&"\0\n')
    assert safe_name(safe) == safe


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("fra.txt", b"".join(line + b"\tCC-BY 2.0 (France) #1\n" for line in TSV.splitlines())),
        ("fra-eng.zip", zipped(_about__dot__txt=b"who made it", fra__dot__txt=TSV)),
        ("fra.tsv.gz", gzip.compress(TSV)),
        ("excel.tsv", TSV.decode().encode("utf-16")),
        ("excel.csv", TSV.replace(b"\t", b";")),
        ("all.csv", "".join(f'"{source}","say ""{target}"""\n' for source, target in ROWS).encode()),
        ("all.jsonl", "".join(json.dumps({"source": s, "target": t}) + "\n" for s, t in ROWS).encode()),
    ],
)
def test_files_as_they_come_are_taken(name, content):
    corpus = load_corpus(str(save_upload(name, content)))
    kept = {pair.source for part in (corpus.train, corpus.validation, corpus.held_out["random"]) for pair in part}
    assert kept == {source for source, _ in ROWS}


def test_a_full_disk_is_said_in_a_sentence(monkeypatch):
    def full(self, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert refused("a.tsv", TSV) == "a.tsv cannot be stored: No space left on device"


# Refusing


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.pdf", b"%PDF", "is not a kind of file"),
        ("a", TSV, "is not a kind of file"),
        ("a.tsv", b"", "too few sentences"),
        ("a.tsv", TSV[:200], "too few sentences"),
        ("a.tsv", b"one column\n" * 500, "no row with two columns"),
        ("a.csv", b"one column\n" * 500, "no row with two columns"),
        ("a.tsv", b"only the source\t\n" * 500, "500 with an empty side"),
        ("a.tsv", b"\tonly the target\n" * 500, "500 with an empty side"),
        ("a.tsv", b"same\tagain\n" * 500, "499 repeated"),
        ("a.tsv", b"x" * MEBIBYTE + b"\t" + b"y" * MEBIBYTE, "1 too long"),
        ("a.tsv", b"x" * MEBIBYTE, "no row with two columns"),
        ("a.tsv", ("a" + "\u0301" * 500_000 + "\tb\n").encode(), "1 too long"),
        ("a.jsonl", b"[" * MEBIBYTE, "no row with two columns"),
        ("a.tsv", "é\tb\n".encode("latin-1") * 300, "is not UTF-8 text (byte 0): save it as UTF-8"),
        ("a.tsv", TSV.decode().encode("utf-32"), "save it as UTF-8"),
        ("a.tsv", TSV.decode().encode("utf-16-be"), "save it as UTF-8"),
        ("a.zip", b"PK", "damaged or no .zip"),
        ("a.zip", zipped(fra__dot__txt=TSV)[:-30], "damaged or no .zip"),
        ("a.zip", zipped(a__dot__tsv=TSV, b__dot__tsv=TSV), "holds 2 files of pairs"),
        ("a.zip", zipped(_about__dot__txt=TSV, picture__dot__png=b"x"), "holds 0 files of pairs"),
        ("a.zip", zipped(**{f"f{i}__dot__png": b"" for i in range(2_000)}), "holds too many files"),
        ("a.tsv.gz", TSV, "cannot be read"),
        ("a.tsv.gz", gzip.compress(TSV)[:-9], "cannot be read"),
        ("a.zip.gz", gzip.compress(zipped(fra__dot__txt=TSV)), "is not a kind of file"),
    ],
)
def test_a_file_that_cannot_be_trained_on_is_refused_in_a_sentence(name, content, complaint):
    said = refused(name, content)
    assert complaint in said and said.startswith(name) and len(said) < 500 and "\n" not in said


PIECE = b"a\tb\n" * (8 * MEBIBYTE // 4)


def bomb(kind: str) -> bytes:
    """About 100 kB that unpack to 96 MiB (.gz, of 12 members) or 80 MiB (.zip) of pairs."""
    if kind == ".tsv.gz":
        return gzip.compress(PIECE) * 12
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("bomb.tsv", "w") as stream:
        for _ in range(10):
            stream.write(PIECE)
    return memory.getvalue()


@pytest.mark.parametrize("kind", [".tsv.gz", ".zip"])
def test_a_bomb_is_refused_before_it_is_unpacked(kind):
    content = bomb(kind)
    tracemalloc.start()
    try:
        said = refused(f"bomb{kind}", content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert "unpacks to over 200 times its size" in said
    assert peak < 40 * MEBIBYTE


def test_a_zip_that_lies_about_its_size_gains_nothing():
    content = bytearray(zipped(bomb__dot__tsv=TSV * 20))
    directory = content.index(b"PK\1\2")
    content[directory + 24 : directory + 28] = struct.pack("<I", 10)  # the unpacked size
    assert "a.zip" in refused("a.zip", bytes(content))


def test_a_zip_with_a_hidden_larger_directory_is_refused():
    content = zipped(fra__dot__txt=TSV)
    place = content.rindex(b"PK\5\6")
    hidden = b"PK\6\6" + bytes(52) + b"PK\6\7" + bytes(16)
    assert "holds too many files" in refused("a.zip", content[:place] + hidden + content[place:])


def test_an_encrypted_zip_is_refused():
    content = bytearray(zipped(fra__dot__txt=TSV))
    for signature, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(signature) + offset] |= 1
    assert "cannot be read" in refused("a.zip", bytes(content))


def test_what_does_not_unpack_far_is_measured_all_the_same(monkeypatch):
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1_000)
    for name, content in (("a.tsv", TSV), ("a.tsv.gz", gzip.compress(TSV)), ("a.zip", zipped(a__dot__tsv=TSV))):
        assert refused(name, content) == f"{name} is larger than 1,000 bytes: bring a part of it"
    assert uploads.MAX_UPLOAD_BYTES < MAX_FILE_BYTES


CELL = st.text(max_size=12) | st.sampled_from(['"', '""', '"a', "a,b", "a;b", "\ufeff", "\u2028", "x\0", " ", ""])
ENCODING = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252"])


ROWS_OF_CELLS = st.lists(st.lists(CELL, max_size=4), max_size=8)
KIND = st.sampled_from(kinds_of_files())


def packed(content: bytes, kind: str, inner: str, packing: str, damage: list[tuple[int, int]]) -> tuple[str, bytes]:
    """The name and content of a file of this kind: plain, compressed, cut short, or a .zip with some bytes changed."""
    if kind == ".zip":
        archive = bytearray(zipped(**{f"p{inner}".replace(".", "__dot__"): content}))
        for place, value in damage:
            archive[place % len(archive)] = value
        return f"p{kind}", bytes(archive)
    if packing == "plain":
        return f"p{kind}", content
    return f"p{kind}.gz", gzip.compress(content)[: None if packing == "gz" else -5]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(
    with_good_rows=st.booleans(),
    rows=ROWS_OF_CELLS,
    separator=st.sampled_from(["\t", ",", ";", "|"]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=ENCODING,
    cut=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    kind=KIND,
    inner=KIND,
    packing=st.sampled_from(["plain", "gz", "cut gz"]),
    damage=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
)
def test_any_file_is_kept_whole_or_refused_in_one_sentence(
    with_good_rows, rows, separator, line_end, encoding, cut, kind, inner, packing, damage
):
    good = TSV.decode().replace("\t", separator) if with_good_rows else ""
    text = good + line_end.join(separator.join(row) for row in rows)
    encoded = text.encode(encoding, "replace")
    name, content = packed(encoded[cut[0] : len(encoded) - cut[1]], kind, inner, packing, damage)
    try:
        path = save_upload(name, content)
    except CorpusError as error:
        assert name in str(error) and "\n" not in str(error)
    else:
        assert path.read_bytes() == content
        with suppress(UnclearColumns):
            assert all(pair.source and pair.target for pair in load_corpus(str(path)).train)


# A run's own copy


def new_run(path: Path, **changes) -> str:
    corpus = CorpusConfig(name=str(path), tokenizer="words", **changes)
    return run_folder.create_run(MODEL, tiny(), corpus, name="mine", credit="Ann, CC0")


def test_a_run_keeps_a_copy_with_its_hash_and_the_rule_that_splits_it(room, tmp_path):
    original = tmp_path / "pairs.tsv"
    original.write_bytes(TSV)
    folder = room / new_run(original)
    original.unlink()
    made = read_settings(folder)
    assert made.corpus.name == "corpus/pairs.tsv" and is_own_copy(made.corpus) and made.credit == "Ann, CC0"
    record = json.loads((folder / "corpus" / "source.json").read_text())
    assert (record["file"], record["bytes"]) == ("pairs.tsv", len(TSV))
    assert record["sha256"] == hashlib.sha256(TSV).hexdigest()
    assert "CRC-32" in record["split"] and "modulo 20" in record["split"]
    held_out = load_own(made.corpus, folder).held_out["random"]
    assert held_out and all(split_of(pair.source) == "random" for pair in held_out)


def test_the_copy_is_found_after_the_folder_is_renamed_and_is_a_corpus_for_other_runs(room, tmp_path):
    upload = save_upload("pairs.tsv", TSV)
    folder = (room / new_run(upload)).rename(tmp_path / "elsewhere")
    upload.unlink()
    config = located(read_settings(folder).corpus, folder)
    assert config.name == str(folder / "corpus" / "pairs.tsv")
    assert load_corpus(config).train == load_own(read_settings(folder).corpus, folder).train
    again = run_folder.create_run(MODEL, tiny(), config, name="again")
    assert (room / again / "corpus" / "pairs.tsv").read_bytes() == TSV


def test_a_copy_that_was_changed_is_not_trained_on(room):
    folder = room / new_run(save_upload("pairs.tsv", TSV))
    (folder / "corpus" / "pairs.tsv").write_bytes(TSV + b"one\tmore\n")
    with pytest.raises(CorpusError, match="not the file any more that the run began with"):
        load_own(read_settings(folder).corpus, folder)


def test_a_checkpoint_that_came_without_its_sentences_says_so(room):
    folder = room / new_run(save_upload("pairs.tsv", TSV))
    (folder / "corpus" / "pairs.tsv").unlink()
    with pytest.raises(AbsentCorpus, match=r"mine comes without the sentences that it learned from \(pairs.tsv\)"):
        load_own(read_settings(folder).corpus, folder)


def test_a_generated_corpus_is_kept_by_name(room):
    folder = room / run_folder.create_run(MODEL, tiny(), CorpusConfig(name="reverse", seed=3), name="toy")
    assert json.loads((folder / "corpus" / "generator.json").read_text()) == {"name": "reverse", "seed": 3}
    made = read_settings(folder)
    assert located(made.corpus, folder) == made.corpus and load_own(made.corpus, folder).name == "reverse"


def test_a_config_written_again_still_names_the_copy(room):
    folder = room / new_run(save_upload("pairs.tsv", TSV))
    write_settings(folder, read_settings(folder))
    assert read_settings(folder).corpus.name == "corpus/pairs.tsv"
