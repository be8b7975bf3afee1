"""Tests of the entropy of attention by layer: sentences read alone, and samples of sentences drawn again and again."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from random_models import random_model

from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.heads.survey import survey
from transformer.config import CorpusConfig
from transformer.data.batches import make_batch
from transformer.data.corpora import corpus_tokenizer, load_corpus
from transformer.model.taps import Recorder
from transformer.views.heads.entropy import LayerEntropy

N_PAIRS = 40


@pytest.fixture(scope="module")
def measured():
    """Returns a function from a number of pairs and a model's parts to the model, the pairs and the figure's data."""
    corpus = load_corpus("pronouns-en-fr")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="pronouns-en-fr"))

    def measure(n_pairs=N_PAIRS, **parts):
        torch.manual_seed(0)
        lab = SimpleNamespace(model=random_model(vocab_size=tokenizer.vocab_size, **parts), tokenizer=tokenizer)
        sample = PairSample(tuple(corpus.validation[:n_pairs]), n_pairs)
        found = survey(lab.model, sample.pairs, tokenizer, batch_tokens=100)
        return lab, sample, found, LayerEntropy().data(lab, sample, found)

    return measure


def entropies_alone(lab, pair, sublayer):
    """Returns the entropy of every row that has a choice, and the logarithm of its keys: [head row] and [row]."""
    stack, layer, kind = sublayer.split(".")
    batch = make_batch([(lab.tokenizer.encode(pair.source), lab.tokenizer.encode(pair.target))])
    recorder = Recorder()
    lab.model(batch.source, batch.target_in, tap=recorder)
    weights = recorder.recording[f"{stack}.{layer}.{kind}.weights"][0].double().numpy()
    causal = (stack, kind) == ("decoder", "self")
    rows = [(query, query + 1 if causal else weights.shape[2]) for query in range(weights.shape[1])]
    rows = [(query, keys) for query, keys in rows if keys > 1]
    found = [[-sum(w * math.log(w) for w in head[query, :keys]) for query, keys in rows] for head in weights]
    return np.array(found), np.array([math.log(keys) for _, keys in rows])


def test_entropies_are_those_of_sentences_read_alone(measured):
    lab, sample, _, data = measured(9)
    assert data.sublayers[0] == "encoder.0.self" and len(data.heads) == 4 * len(data.sublayers) == 4 * len(
        {*data.sublayers}
    )
    for place, sublayer in enumerate(data.sublayers):
        alone = [entropies_alone(lab, pair, sublayer) for pair in sample.pairs]
        entropy, uniform = np.concatenate([a for a, _ in alone], axis=1), np.concatenate([b for _, b in alone])
        assert data.of_layers[place, [0, 2]] == pytest.approx([entropy.mean(), uniform.mean()], abs=1e-5)
        own = [at for at, head in enumerate(data.heads) if head.rpartition(".")[0] == sublayer]
        assert data.of_heads[own] == pytest.approx(entropy.mean(axis=1), abs=1e-5)


def test_the_error_of_a_mean_is_its_spread_over_samples_of_sentences(measured):
    lab, sample, found, data = measured()
    rng = np.random.default_rng(0)
    drawn = rng.integers(N_PAIRS, size=(4_000, N_PAIRS))
    errors = np.concatenate(list(found.layer_entropy.values()))[:, 1]
    for place in (0, len(data.sublayers) // 2, len(data.sublayers) - 1):
        alone = [entropies_alone(lab, pair, data.sublayers[place])[0] for pair in sample.pairs]
        sums, rows = (
            np.array([value(a) for a in alone]) for value in (lambda a: a.mean(axis=0).sum(), lambda a: a.shape[1])
        )
        means = sums[drawn].sum(axis=1) / rows[drawn].sum(axis=1)
        assert errors[place] == pytest.approx(means.std(), rel=0.1)


def test_the_interval_is_students(measured):
    _, _, found, data = measured(5)
    errors = np.concatenate(list(found.layer_entropy.values()))[:, 1]
    assert data.of_layers[:, 1] == pytest.approx(2.776 * errors, rel=1e-3)  # 4 degrees of freedom


@pytest.mark.parametrize("n_pairs", [1, 2])
def test_two_sentences_have_no_interval(measured, n_pairs):
    lab, sample, found, data = measured(n_pairs)
    assert np.isnan(data.of_layers[:, 1]).all() and np.isfinite(data.of_layers[:, [0, 2]]).all()
    assert all(check.holds for check in LayerEntropy().checks(lab, sample, found, data))
    *_, means = LayerEntropy().figure(data).data
    assert "±" not in "".join(means.customdata)


@pytest.mark.parametrize("changes", [{"causal_mask": False}, {"window": 1}, {"window": 2, "causal_mask": False}])
def test_the_checks_hold_with_other_masks_and_notice_one_wrong_interval(measured, changes):
    lab, sample, found, data = measured(9, **changes)
    assert all(check.holds for check in LayerEntropy().checks(lab, sample, found, data))
    data.of_layers[-1, 1] += 2e-3
    _, again = LayerEntropy().checks(lab, sample, found, data)
    assert not again.holds and "9 pairs read again" in again.how


def test_each_layer_has_its_place_and_the_selected_head_a_ring(measured):
    *_, data = measured(9, n_encoder_layers=1)
    data.of_layers[-1, 1] = 9
    figure = LayerEntropy(chosen="decoder.2.cross.3").figure(data)
    names = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert names == ["Encoder self", "Decoder self", "Cross"] and list(figure.layout.xaxis.tickvals) == [0, 1, 2]
    limits, heads, means = figure.data[-3:]
    assert np.round(means.x).tolist() == [0, 1, 2] and np.round(heads.x).tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert heads.marker.line.width.tolist() == [0] * 11 + [2]
    assert (
        means.y.tolist() == data.of_layers[-3:, 0].tolist()
        and means.error_y.array.tolist() == data.of_layers[-3:, 1].tolist()
    )
    assert means.error_y.arrayminus.tolist() == [*data.of_layers[-3:-1, 1], data.of_layers[-1, 0]]  # none below 0
    assert set(limits.y) == set(data.of_layers[-3:, 2]) and "decoder 2 cross" in means.customdata[-1]
