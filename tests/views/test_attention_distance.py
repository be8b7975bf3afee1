"""Tests of attention distance: by loops over the sentences of a small corpus, and for heads of known distance."""

from itertools import product
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
from transformer.views.heads.distance import AttentionDistance


@pytest.fixture(scope="module")
def measured():
    """Returns a function from a model's parts to the model, its tokenizer, some pairs and what the figure shows."""
    corpus = load_corpus("pronouns-en-fr")
    tokenizer = corpus_tokenizer(corpus, CorpusConfig(name="pronouns-en-fr"))
    sample = PairSample(tuple(corpus.validation[:9]), 9)

    def measure(**parts):
        torch.manual_seed(0)
        lab = SimpleNamespace(model=random_model(vocab_size=tokenizer.vocab_size, **parts), tokenizer=tokenizer)
        found = survey(lab.model, sample.pairs, tokenizer, batch_tokens=100)
        return lab, sample, found, AttentionDistance().data(lab, sample, found)

    return measure


def distances_and_weights(lab, pairs, head):
    """Returns every distance of a head with its weight, from passes over one pair each."""
    stack, layer, _, number = head.split(".")
    causal = stack == "decoder" and lab.model.config.causal_mask
    for pair in pairs:
        batch = make_batch([(lab.tokenizer.encode(pair.source), lab.tokenizer.encode(pair.target))])
        recorder = Recorder()
        lab.model(batch.source, batch.target_in, tap=recorder)
        weights = recorder.recording[f"{stack}.{layer}.self.weights"][0]
        for query, key in product(range(weights.size(1)), repeat=2):
            if not causal or (key <= query and query > 0):
                n_keys = query + 1 if causal else weights.size(1)
                weight = 1 / n_keys if number == "uniform" else float(weights[int(number), query, key])
                yield abs(query - key), weight


@pytest.mark.parametrize("parts", [{}, {"causal_mask": False}])
def test_mean_and_spread_are_those_of_all_distances_in_sentences_read_alone(measured, parts):
    lab, sample, _, data = measured(**parts)
    assert [head for head in data.heads if ".cross." in head] == [] and len(data.heads) == len(set(data.heads))
    for head in ("encoder.1.self.2", "decoder.0.self.1"):
        shown = []
        for name in (head, f"{head.rpartition('.')[0]}.uniform"):
            apart, weights = np.array(list(distances_and_weights(lab, sample.pairs, name))).T
            mean = np.average(apart, weights=weights)
            shown += [mean, np.average((apart - mean) ** 2, weights=weights) ** 0.5]
        np.testing.assert_allclose(data.tokens[data.heads.index(head)], shown, atol=1e-5)


def test_a_head_that_always_looks_at_the_previous_token_is_one_token_away_without_spread(measured):
    lab, sample, found, _ = measured()

    def overwritten(recorder, site, tensor):
        if str(site) == "decoder.0.self.weights":
            tensor = tensor.clone()
            tensor[:, 1] = torch.diag(torch.ones(tensor.size(-1) - 1), -1)
        recorder.recording.keep(site, tensor)
        return tensor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "__call__", overwritten)
        found = survey(lab.model, sample.pairs, lab.tokenizer)
    data = AttentionDistance().data(lab, sample, found)
    np.testing.assert_allclose(data.tokens[data.heads.index("decoder.0.self.1"), :2], [1, 0], atol=1e-6)


@pytest.mark.parametrize("changes", [{"causal_mask": False}, {"window": 2}, {"window": 1, "causal_mask": False}])
def test_the_check_notices_one_wrong_distance_of_a_model_with_other_masks(measured, changes):
    lab, sample, found, data = measured(**changes)
    (held,) = AttentionDistance().checks(lab, sample, found, data)
    data.tokens[-1, 3] += 1e-3
    (failed,) = AttentionDistance().checks(lab, sample, found, data)
    assert held.holds and not failed.holds and "9 pairs read again" in failed.how


def test_the_selected_head_is_ringed_and_bars_end_at_zero(measured):
    *_, data = measured()
    data.tokens[0, :2] = 1, 3
    figure = AttentionDistance(chosen="encoder.0.self.2").figure(data)
    uniform, dots, *_ = figure.data
    assert dots.marker.line.width.tolist() == [0, 0, 2, 0]
    assert (dots.error_y.array[0], dots.error_y.arrayminus[0]) == (3, 1)
    assert uniform.y[0] == data.tokens[0, 2] and "encoder 0 · head 0" in dots.customdata[0][0]
    assert figure.layout.annotations[-1].text == "decoder 2 self" and figure.layout.xaxis.ticktext[:4] == tuple("0123")
