"""An archive that was tampered with, is damaged, or is none: refused in a sentence, and nothing left behind."""

import io
import stat
import zipfile

import pytest
import torch
from archives import contents, edited, loaded, refusal, repacked
from safetensors.torch import load, save

from transformer.checkpoints.store import load_checkpoint

pytestmark = pytest.mark.usefixtures("only_the_origin")


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
def test_a_path_that_no_honest_archive_holds_is_refused(packed, archive_room, extra, sentence):
    assert sentence in refusal(repacked(packed, extra=[extra]), archive_room)


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [
        ("config.json", "it is no model: it has no config.json"),
        ("weights.safetensors", "it has no weights.safetensors"),
        ("tokenizer.json", "it has no tokenizer"),
    ],
)
def test_a_missing_file_is_named(packed, archive_room, missing, sentence):
    assert sentence in refusal(repacked(packed, {missing: None}), archive_room)


@pytest.mark.parametrize("missing", ["CARD.md", "metrics.jsonl", "samples.jsonl", "about.json"])
def test_a_model_can_do_without_its_history(packed, archive_room, missing):
    assert load_checkpoint(archive_room / loaded(repacked(packed, {missing: None}))).step == 20


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format_version": 2}, "format version 2; this program reads version 1"),
        ({"format": "other"}, "was not written by this program"),
        ({"from_the_future": 1}, "holds 'from_the_future', which this program does not know"),
        ({"model__n_heads": 3}, "d_model (16) must be divisible by n_heads (3)"),
        ({"model__d_ff": 64}, "has shape"),
        ({"model__vocab_size": 99}, "the tokenizer has 24 entries and the model 99"),
        ({"model__n_encoder_layers": 10**9}, "n_encoder_layers (1000000000) must be at most 24"),
        ({"model__d_model": 10**6, "model__n_heads": 1}, "d_model (1000000) must be at most 4,096"),
        ({"model__d_model": 4096, "model__d_ff": 16384, "model__n_encoder_layers": 24}, "weights, and at most"),
        ({"model__max_length": 10**9}, "max_length (1000000000) must be at most 4,096"),
        ({"model__max_length": 1_900_000}, "max_length (1900000) must be at most 4,096"),
        ({"model__dropout": 10**400}, "must be a number"),
        ({"train__average_last": 10**9}, "average_last (1000000000) must be at most 1,000"),
        ({"corpus__vocab_size": 10**9}, "vocab_size (1000000000) must be at most 100,000"),
        ({"resolved__threads": 10**9}, "threads (1000000000) must be at most 256"),
        ({"resolved__precision": "float8"}, "precision ('float8') must be one of"),
        ({"created": 7}, "created (7) must be a text"),
        ({"resolved__threads": "two"}, "threads ('two') must be a whole number"),
    ],
)
def test_a_config_that_cannot_be_right_is_refused(packed, archive_room, changes, sentence):
    assert sentence in refusal(
        repacked(packed, {"config.json": edited(packed, "config.json", **changes)}), archive_room
    )


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
        ("metrics.jsonl", b"[" * 100_000 + b"\n", "has a line of too many brackets"),
        ("metrics.jsonl", b"[1]\n", "has a line that is not an object"),
        ("samples.jsonl", b"3\n", "has a line that is not an object"),
        ("samples.jsonl", b'{"step": 1, "source": "a", "translation": 3}\n', "has the translation '3'"),
        ("CARD.md", b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_a_sentence(packed, archive_room, file, content, sentence):
    assert sentence in refusal(repacked(packed, {file: content}), archive_room)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (torch.Tensor.long, "holds values of type int64; weights have one of: float16, bfloat16, float32, float64"),
        (torch.Tensor.bool, "holds values of type bool"),
        (lambda value: torch.full_like(value, 3e38), "holds a value of size 3e+38; weights are at most 1e+09 large"),
    ],
    ids=["int64", "bool", "3e38"],
)
def test_weights_that_are_none_are_refused(packed, archive_room, change, sentence):
    weights = load(contents(packed)["weights.safetensors"])
    name = next(iter(weights))
    assert sentence in refusal(
        repacked(packed, {"weights.safetensors": save(weights | {name: change(weights[name])})}), archive_room
    )


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("weights.safetensors", "weights.safetensors would grow from"),
        ("metrics.jsonl", "metrics.jsonl would grow from"),
        ("config.json", "config.json would have 5,000,000 bytes, and at most 1,048,576"),
    ],
)
def test_a_bomb_is_refused_before_it_is_unpacked(packed, archive_room, file, sentence):
    assert sentence in refusal(repacked(packed, {file: bytes(5_000_000)}), archive_room)


def test_weights_longer_than_the_model_are_refused_by_their_size(packed, archive_room):
    content = contents(packed)["weights.safetensors"] + bytes(range(256)) * 8_000
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, own in (contents(packed) | {"weights.safetensors": content}).items():
            archive.writestr(name, own)
    assert "at most" in refusal(file.getvalue(), archive_room)


def test_a_size_that_lies_gives_no_more_than_it_says(packed, archive_room):
    """The real content of a deflated member is longer than its header says: it ends there and its sum is wrong."""
    raw = bytearray(repacked(packed))
    entry = raw.index(b"PK\x01\x02")
    while raw[entry + 46 : entry + 46 + 18] != b"origin/config.json":
        entry = raw.index(b"PK\x01\x02", entry + 1)
    raw[entry + 24 : entry + 28] = (100).to_bytes(4, "little")
    assert "is damaged" in refusal(bytes(raw), archive_room)


def test_no_more_files_than_a_model_has_are_read(packed, archive_room):
    assert "at most 1,000" in refusal(repacked(packed, extra=[(f"{i}.txt", b"") for i in range(1_100)]), archive_room)


def test_an_encrypted_or_oddly_packed_archive_is_refused(packed, archive_room):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        for name, own in contents(packed).items():
            archive.writestr(name, own)
    assert "packed in an unusual way" in refusal(file.getvalue(), archive_room)
    raw = bytearray(repacked(packed))
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in refusal(bytes(raw), archive_room)


def test_weights_that_are_not_numbers_are_refused(packed, archive_room):
    weights = contents(packed)["weights.safetensors"]
    assert "not finite" in refusal(
        repacked(packed, {"weights.safetensors": weights[:-4] + b"\x00\x00\xc0\x7f"}), archive_room
    )


def test_rubbish_is_no_archive(archive_room):
    assert "it is not a zip archive" in refusal(b"", archive_room)
    assert "it is not a zip archive" in refusal(b"PK\x03\x04 no", archive_room)
