"""A run becomes a checkpoint to ship: float16 on disk, its heads described by statistics that can be taken again."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_runs import MODEL, corpus, settings, tokenizer

from transformer.analysis.heads.pair_sample import validation_sample
from transformer.analysis.heads.published import SURVEY_FILE, published_survey
from transformer.analysis.heads.statistics import head_statistics
from transformer.checkpoints.store import load_checkpoint, load_tensors
from transformer.config import CorpusConfig
from transformer.data.batches import make_batch
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.runs import run_folder
from transformer.runs.publishing import STATISTICS_FILE, publish
from transformer.runs.worker import train_run


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A finished run's folder and the folder it was published into."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_LAB_RUNS", str(root))
        run = run_folder.create_run(MODEL, settings(max_steps=4), CorpusConfig(name="reverse"), name="tiny")
        assert train_run(run).state == "finished"
        publish(root / run, root / "shipped", half=True)
    return root / run, root / "shipped"


def test_weights_are_stored_in_float16_and_used_in_float32(published):
    run, shipped = published
    stored, _ = load_tensors(shipped / "weights.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.float16}
    before, after = load_checkpoint(run), load_checkpoint(shipped)
    for name, parameter in after.model.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, before.model.get_parameter(name).half().float())


def test_the_card_and_a_file_describe_every_head(published):
    _, shipped = published
    tensors, notes = load_tensors(shipped / STATISTICS_FILE)
    sublayers = ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    assert set(tensors) == {f"{sublayer}.{kind}" for sublayer in sublayers for kind in ("mean", "entropy")}
    assert tensors["decoder.0.cross.mean"].shape == (MODEL.n_heads, MODEL.d_head)
    assert int(notes["pairs"]) > 0
    card = (shipped / "CARD.md").read_text()
    assert all(f"| {sublayer} |" in card for sublayer in sublayers)
    assert "float16" in card


def test_the_survey_of_its_heads_is_that_of_the_published_weights(published):
    run, shipped = published
    before, after = load_checkpoint(run), load_checkpoint(shipped)
    sample = validation_sample(after)
    found = published_survey(after, sample)
    assert found is not None and found.n_pairs == len(sample.pairs) == 1_000
    shutil.copy(shipped / SURVEY_FILE, run)
    assert published_survey(before, sample) is None  # whose weights are no float16
    (run / SURVEY_FILE).unlink()


def test_no_survey_is_published_where_the_sentences_stay_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(tmp_path))
    (tmp_path / "own.tsv").write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefghijkl" for b in "mnopqrstuv"))
    own = CorpusConfig(name=str(tmp_path / "own.tsv"))
    run = run_folder.create_run(replace(MODEL, vocab_size=300), settings(max_steps=2), own, name="own")
    assert train_run(run).state == "finished"
    publish(tmp_path / run, tmp_path / "shipped")
    assert not (tmp_path / "shipped" / SURVEY_FILE).exists() and (tmp_path / "shipped" / STATISTICS_FILE).is_file()


def test_statistics_equal_those_of_one_pair_at_a_time():
    model = Transformer(MODEL).eval()
    pairs = corpus().validation[:7]
    sums, n = np.zeros((MODEL.n_heads, MODEL.d_head)), 0
    for pair in pairs:
        batch = make_batch([(tokenizer().encode(pair.source), tokenizer().encode(pair.target))])
        recorder = Recorder()
        model(batch.source, batch.target_in, tap=recorder)
        sums += recorder.recording["decoder.0.self.heads"][0].double().sum(dim=1).numpy()
        n += batch.target_in.size(1)
    found = {sublayer.sublayer: sublayer for sublayer in head_statistics(model, pairs, tokenizer(), batch_tokens=64)}
    assert found["decoder.0.self"].queries == n
    np.testing.assert_allclose(found["decoder.0.self"].mean.numpy(), sums / n, atol=1e-6)


def test_a_model_without_preferences_has_the_entropy_of_even_weights():
    model = Transformer(MODEL).eval()
    for layer in model.encoder.layers:
        torch.nn.init.zeros_(layer.self_attention.query.weight)
        torch.nn.init.zeros_(layer.self_attention.query.bias)
    pair = corpus().validation[0]
    keys = len(tokenizer().encode(pair.source)) + 1
    (first, *_) = head_statistics(model, [pair], tokenizer())
    assert first.sublayer == "encoder.0.self"
    np.testing.assert_allclose(first.entropy.numpy(), np.log(keys), atol=1e-6)
