"""A survey that a checkpoint carries: read for the model and the pairs that it was measured on, and for no others."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from page_models import REVERSE

from transformer.analysis.heads import published, survey_checks
from transformer.analysis.heads import survey as survey_module
from transformer.analysis.heads.pair_sample import validation_sample
from transformer.analysis.heads.published import SURVEY_FILE, publish_survey, published_survey
from transformer.analysis.heads.survey import survey
from transformer.analysis.heads.survey_checks import check_similarity, check_survey, value_of
from transformer.checkpoints.store import load_checkpoint, load_tensors, save_tensors
from transformer.data.corpus_snapshot import AbsentCorpus
from transformer.lab import Lab
from transformer.model.transformer import Transformer
from transformer.views.heads.distance import AttentionDistance

SHIPPED = Path(__file__).parents[3] / "checkpoints"


@pytest.fixture
def folder(own_models, monkeypatch):
    """The folder of a model that carries a survey, in four parts."""
    monkeypatch.setattr(survey_module, "PART", 300)
    publish_survey(load_checkpoint(own_models / REVERSE))
    return own_models / REVERSE


def carried(folder):
    checkpoint = load_checkpoint(folder)
    return published_survey(checkpoint, validation_sample(checkpoint))


def test_it_is_the_survey_of_all_validation_pairs(folder, monkeypatch):
    checkpoint, found = load_checkpoint(folder), carried(folder)
    sample = validation_sample(checkpoint)
    assert found is not None and found.published and found.n_pairs == len(sample.pairs) == 1_000
    assert found.sums["pairs"].tolist() == [300, 300, 300, 100]
    monkeypatch.setattr(survey_module, "PART", 1_000)
    whole = survey(checkpoint.model, sample.pairs, checkpoint.tokenizer, unit=sample.unit)
    assert len(whole.sums["pairs"]) == 1 and not whole.published
    for name in ("rows", "n_rows", "n_source", "n_target", "n_links"):
        assert getattr(found, name) == getattr(whole, name)
    for kind, even in whole.even.items():
        assert found.even[kind] == pytest.approx(even)
    for own, other in zip(found.profiles, whole.profiles, strict=True):
        assert own.at == other.at and own.weight == pytest.approx(other.weight, abs=1e-6)
        assert own.peak == pytest.approx(other.peak, abs=1e-3)
        assert (own.entropy, own.evenness, own.largest) == pytest.approx(
            (other.entropy, other.evenness, other.largest), abs=1e-6
        )
    for kind, distances in whole.distances.items():
        np.testing.assert_allclose(found.distances[kind], distances, atol=1e-6)


@pytest.mark.slow
def test_every_shipped_transformer_with_pairs_carries_the_survey_of_all_of_them():
    found = {}
    for path in sorted(SHIPPED.glob("*/config.json")):
        checkpoint = load_checkpoint(path.parent)
        with suppress(AbsentCorpus):  # the sentences of these are not part of the project
            if isinstance(checkpoint.model, Transformer):
                sample = validation_sample(checkpoint)
                carries = published_survey(checkpoint, sample)
                found[path.parent.name] = carries is not None and carries.n_pairs == len(sample.pairs)
    assert len(found) >= 13 and all(found.values()), found


def other_weight(folder, patch):
    tensors, notes = load_tensors(folder / "weights.safetensors")
    tensors["decoder.layers.0.cross_attention.query.weight"][0, 0] += 1e-3
    save_tensors(folder / "weights.safetensors", tensors, notes)


def other_tokenizer(folder, patch):
    path = folder / "tokenizer.json"
    path.write_text(path.read_text() + " ")


def other_settings(folder, patch):
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"scale_scores": true', '"scale_scores": false'))


def other_number(folder, patch):
    tensors, notes = load_tensors(folder / SURVEY_FILE)
    tensors["cross.weight.diagonal"][2, 1] += 1e-3
    save_tensors(folder / SURVEY_FILE, tensors, notes)


def other_measure(folder, patch):
    patch.setattr(published, "VERSION", published.VERSION + 1)


def cut_short(folder, patch):
    (folder / SURVEY_FILE).write_bytes((folder / SURVEY_FILE).read_bytes()[:-1])


def taken_away(folder, patch):
    (folder / SURVEY_FILE).unlink()


@pytest.mark.parametrize(
    "change",
    [other_weight, other_tokenizer, other_settings, other_number, other_measure, cut_short, taken_away],
)
def test_a_survey_of_something_else_counts_as_none(folder, monkeypatch, change):
    before = [path.read_bytes() for path in sorted(folder.iterdir())], published.VERSION
    assert carried(folder) is not None
    change(folder, monkeypatch)
    assert ([path.read_bytes() for path in sorted(folder.iterdir())], published.VERSION) != before
    assert carried(folder) is None


def test_a_survey_of_other_pairs_counts_as_none(folder):
    checkpoint = load_checkpoint(folder)
    sample = validation_sample(checkpoint)
    first, last = sample.pairs[0], sample.pairs[-1]
    others = replace(sample, pairs=(last, *sample.pairs[1:-1], first))
    for other in (sample.first(999), others, replace(sample, unit="character")):
        assert published_survey(checkpoint, other) is None


def checked(folder, found, monkeypatch, part):
    """Checks the numbers of a survey, with one of its parts measured again."""
    monkeypatch.setattr(survey_checks, "randrange", lambda n: part)
    checkpoint = load_checkpoint(folder)
    sample, at = validation_sample(checkpoint), found.of_kind("cross")[1].at
    shown = [value_of(found, at, "diagonal")]
    given = checkpoint.model, sample, checkpoint.tokenizer, found
    *_, column = check_survey(*given, [(at, "diagonal")], shown)
    groups = [(head,) for head in range(len(found.distances["encoder_self"]))]
    distances = list(check_similarity(*given, "encoder_self", groups, 0.0, found.distances["encoder_self"]))[2]
    view = AttentionDistance()
    (reach,) = view.checks(Lab(checkpoint), sample, found, view.data(Lab(checkpoint), sample, found))
    assert all(f"pairs {300 * part + 1:,} to" in check.how for check in (column, distances, reach))
    return column.holds, distances.holds, reach.holds


@pytest.mark.slow
def test_a_wrong_number_is_found_where_its_pairs_are_measured_again(folder, monkeypatch):
    found = carried(folder)
    assert found is not None and checked(folder, found, monkeypatch, 2) == (True, True, True)
    for name, expected in (
        ("cross.weight.diagonal", (False, True, True)),
        ("encoder_self.distances", (True, False, True)),
        ("encoder_self.reach", (True, True, False)),
    ):
        sums = {**found.sums, name: found.sums[name].copy()}
        sums[name][2, 1] *= 1.1
        wrong = survey_module.survey_of(load_checkpoint(folder).model, sums)
        assert checked(folder, wrong, monkeypatch, 2) == expected
        assert checked(folder, wrong, monkeypatch, 1) == (True, True, True)


@pytest.mark.slow
def test_a_wrong_number_that_the_parts_do_not_make_is_found_by_any_of_them(folder, monkeypatch):
    found = carried(folder)
    assert found is not None
    wrong = {**found.distances, "encoder_self": found.distances["encoder_self"] + 0.01}
    for part in range(4):
        assert checked(folder, replace(found, distances=wrong), monkeypatch, part) == (True, False, True)


def test_the_sums_are_stored_as_they_were_added_up(folder):
    tensors, notes = load_tensors(folder / SURVEY_FILE)
    assert set(notes) == {"key"} and all(value.dtype == torch.float64 for value in tensors.values())
    assert {len(value) for value in tensors.values()} == {4}
