"""Capsules: what is saved comes back with its model, and a number that is not that of a fresh pass is named."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from archives import capsule_of, figure, members, packed_again, with_manifest
from safetensors.numpy import load as arrays_in
from safetensors.numpy import save as packed_arrays

import transformer
from transformer import load
from transformer.__main__ import main
from transformer.access.people import Person, acting_as
from transformer.capsules import load_capsule, save_capsule
from transformer.capsules.capsule import CHECKSUMS_FILE, MANIFEST_FILE, read_capsule, verify
from transformer.capsules.comparison import compare_figure
from transformer.capsules.contents import CapsuleError
from transformer.capsules.models import open_model, opened, run_here
from transformer.files import write_text
from transformer.interventions import AblateHeads
from transformer.lab import Lab
from transformer.runs.archive import load_archive

TEXT, SWITCH = "a b c d", AblateHeads("decoder", 1, "cross", (0, 1))


@pytest.fixture(scope="module")
def reverse() -> Lab:
    return load("reverse")


@pytest.fixture(scope="module")
def shipped(reverse) -> bytes:
    return capsule_of(reverse, TEXT, [SWITCH], notes="look at *head 1*", parameters={"model": "reverse", "text": TEXT})


def kept(content: bytes, folder: Path) -> Path:
    path = folder / "it.attnlab"
    path.write_bytes(content)
    return path


def wrong(rows):
    return [row for row in rows if not row.holds]


def test_a_shipped_model_goes_by_its_name_and_checksum_and_its_numbers_come_back(shipped, reverse, tmp_path):
    assert len(shipped) < 100_000 and not [name for name in members(shipped) if name.startswith("models/")]
    found = load_capsule(kept(shipped, tmp_path))
    seen = reverse.inspect(TEXT, [SWITCH])
    assert found.seen.target_ids == seen.target_ids and found.manifest.notes == "look at *head 1*"
    assert np.array_equal(found.probabilities, seen.probabilities)
    assert np.array_equal(found.weights("cross"), seen.cross.weights) and found.weights().dtype == np.float32
    assert found.manifest.versions["attention-lab"] == transformer.__version__ and "torch" in found.manifest.versions
    rows = found.verify()
    assert len(rows) == 16 and not wrong(rows)
    (probabilities,) = (row for row in rows if row.what == "Probabilities")
    assert probabilities.count == seen.log_probs.size and probabilities.tolerance == 1e-5


def test_a_run_is_carried_whole_and_opens_where_it_is_unknown(origin, archive_room, tmp_path, monkeypatch):
    lab = load(origin)
    content = capsule_of(lab, "a b")
    path = kept(content, tmp_path)
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path / "elsewhere"))
    found = load_capsule(path)
    assert not wrong(found.verify()) and found.seen.target_ids == lab.inspect("a b").target_ids
    assert not (tmp_path / "elsewhere").exists(), "a notebook leaves no run behind"
    (model,) = found.manifest.models
    assert run_here(model) is None
    name = load_archive(io.BytesIO(content), inside=model.folder)
    assert run_here(model) == name == origin
    assert not wrong(verify(read_capsule(io.BytesIO(content)), {origin: opened(load(name))}))


def test_weights_that_changed_since_and_those_of_a_snapshot_are_not_saved(origin, archive_room, own_models):
    lab = load("untrained-reverse")
    weights = lab.checkpoint.weights_file
    weights.write_bytes(weights.read_bytes())
    with pytest.raises(CapsuleError, match="has other weights by now"):
        capsule_of(lab, "a b")
    early = Lab(replace(lab.checkpoint, weights_file=weights.parent / "snapshots" / "10.safetensors"))
    with pytest.raises(CapsuleError, match="only its last weights can be saved"):
        capsule_of(early, "a b")


def test_nobody_carries_away_a_run_that_they_may_not_see(origin, archive_room):
    lab = load(origin)
    with acting_as(Person(id="bob")), pytest.raises(CapsuleError, match="there is no run 'origin' here"):
        capsule_of(lab, "a b")


@pytest.mark.parametrize("name", ["log_probs", "weights.cross", "mask.decoder_self", "target_ids"])
def test_a_mutated_number_is_reported_with_its_place_though_the_checksum_was_mended(shipped, reverse, name):
    content = members(shipped)
    arrays = {key: array.copy() for key, array in arrays_in(content["results-0.safetensors"]).items()}
    place = (1, 1, 2, 3)[-arrays[name].ndim :]
    arrays[name][place] = arrays[name][place] + 0.01 if arrays[name].dtype.kind == "f" else 1 - arrays[name][place]
    content["results-0.safetensors"] = packed_arrays(arrays)
    capsule = read_capsule(io.BytesIO(packed_again(content, honest=True)))
    rows = wrong(verify(capsule, {"reverse": opened(reverse)}))
    assert not capsule.changed and rows
    said = {
        "log_probs": "step 2 (writes 'b'), token ",
        "weights.cross": "layer 1, head 1, query 2 'b', key 3 'd'",
        "mask.decoder_self": "layer 1, query 2 'c', key 3 'b'",
        "target_ids": "number 3",
    }[name]
    assert all(row.where.startswith(said) for row in rows), rows
    assert float(rows[-1].saved) == pytest.approx(float(arrays[name][place]))
    assert float(rows[-1].fresh) != pytest.approx(float(rows[-1].saved), abs=1e-4)


def test_each_member_that_was_changed_is_refused_or_reported(origin, archive_room):
    content = capsule_of(load(origin), "a b", figures=[figure(np.ones((2, 3)))])
    refused, reported = [], []
    for name, held in members(content).items():
        changed = {**members(content), name: held[:-3] + bytes([held[-3] ^ 1]) + held[-2:]}
        try:
            capsule = read_capsule(file := io.BytesIO(packed_again(changed)))
            models = {model.name: open_model(model, file) for model in capsule.manifest.models}
        except CapsuleError as error:
            refused.append(name)
            assert "\n" not in str(error)
        else:
            assert any(row.what == name for row in wrong(verify(capsule, models)))
            reported.append(name)
    assert len(refused) + len(reported) == len(members(content)) and {CHECKSUMS_FILE, MANIFEST_FILE} <= {*refused}


def test_another_shipped_model_of_the_same_name_is_said_with_both_checksums(shipped, reverse):
    capsule = read_capsule(io.BytesIO(shipped))
    (model,) = capsule.manifest.models
    other = replace(capsule, manifest=replace(capsule.manifest, models=(replace(model, weights="0" * 64),)))
    (row,) = wrong(verify(other, {"reverse": opened(reverse)}))
    assert row.what == "reverse: checksum of the weights"
    assert row.saved == "000000000000…" and row.fresh == f"{model.weights[:12]}…"


def test_a_shipped_model_that_is_not_here_is_named(shipped, tmp_path, no_shipped, monkeypatch):
    monkeypatch.setattr("transformer.capsules.models.SHIPPED_FOLDER", tmp_path / "none")
    with pytest.raises(CapsuleError, match="has no shipped model 'reverse'"):
        load_capsule(kept(shipped, tmp_path))


def test_a_switch_that_cannot_be_applied_is_a_difference(shipped, reverse):
    capsule = read_capsule(io.BytesIO(shipped))
    (decoding,) = capsule.manifest.decodings
    for switch, why in (
        ("boil:the.kettle", "is not a switch"),
        ("off:decoder.9.cross:1", "no attention block"),
    ):
        odd = replace(capsule.manifest, decodings=(replace(decoding, switches=(switch,)),))
        (row,) = wrong(verify(replace(capsule, manifest=odd), {"reverse": opened(reverse)}))
        assert row.what == "A fresh pass" and why in row.where


def test_a_figures_tables_are_compared_cell_by_cell():
    values = np.arange(6.0).reshape(2, 3)
    saved = figure(values)
    assert compare_figure(saved, saved.tables).holds and compare_figure(saved, saved.tables).count == 6
    moved = values.copy()
    moved[1, 2] += 0.1
    row = compare_figure(saved, figure(moved).tables)
    assert not row.holds and row.where == "weight: row 'r1', column 'c2'" and (row.saved, row.fresh) == ("5", "5.1")
    assert "other labels" in compare_figure(saved, figure(values, rows=["r0", "x"]).tables).where
    assert "no table 'weight' any more" in compare_figure(saved, ()).where
    with np.errstate(all="ignore"):
        assert not compare_figure(saved, figure(np.full((2, 3), np.nan)).tables).holds


def test_figures_come_back_as_they_were_and_too_many_numbers_stay_out(reverse):
    odd = np.array([[np.nan, np.inf, 1 / 3]], dtype=np.float32)
    (small, words, large) = (figure(values) for values in (odd, np.array([["é", "b"]]), np.zeros((700, 700))))
    back = read_capsule(io.BytesIO(capsule_of(reverse, TEXT, figures=[small, large, words]))).figures
    assert np.array_equal(back[0].tables[0].values.astype(np.float32), odd, equal_nan=True)
    assert back[1].tables == () and back[2].tables[0].values.tolist() == [["é", "b"]]
    assert [each.view for each in back] == ["HeadMatrix()"] * 3


def test_the_command_saves_shows_and_verifies(tmp_path, capsys, reverse):
    path = tmp_path / "a.attnlab"
    assert main(["capsule", "save", str(path), TEXT, "--model", "reverse", "--switch", str(SWITCH)]) == 0
    assert main(["capsule", "save", str(path), TEXT, "--model", "reverse"]) == 2
    assert "already there" in capsys.readouterr().err
    assert main(["capsule", "show", str(path)]) == 0
    assert f"switch    {SWITCH}" in (shown := capsys.readouterr().out) and "shipped, by its checksum" in shown
    assert main(["capsule", "verify", str(path)]) == 0
    assert "all 16 comparisons agree" in capsys.readouterr().out
    path.write_bytes(with_manifest(path.read_bytes(), notes="bell \x07 and \x1b[31mred"))
    assert main(["capsule", "show", str(path)]) == 0
    assert "\x1b" not in (out := capsys.readouterr().out) and "\x07" not in out
    content = members(path.read_bytes())
    arrays = {key: array.copy() for key, array in arrays_in(content["results-0.safetensors"]).items()}
    arrays["log_probs"][0, 5] += 0.5
    path.write_bytes(packed_again({**content, "results-0.safetensors": packed_arrays(arrays)}))
    assert main(["capsule", "verify", str(path)]) == 1
    said = capsys.readouterr()
    assert "DIFFERS  results-0.safetensors" in said.out and "step 0 (writes" in said.out
    assert "comparisons differ" in said.err
    write_text(path, "not a zip")
    assert main(["capsule", "show", str(path)]) == 2 and "not a zip archive" in capsys.readouterr().err


def test_nothing_is_overwritten(tmp_path, reverse):
    path = tmp_path / "a.attnlab"
    save_capsule(path, reverse, reverse.inspect(TEXT))
    with pytest.raises(FileExistsError):
        save_capsule(path, reverse, reverse.inspect(TEXT))
