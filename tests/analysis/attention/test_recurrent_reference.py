"""The NumPy pass behind the proofs of recurrent models, against the model itself."""

import numpy as np
import pytest
import torch
from random_models import RECURRENT_BUILDS, random_ids, random_recurrent

from transformer.analysis.attention.one_head_reference import one_head_attention, pass_from_ids
from transformer.decoding.greedy import Constraints, greedy
from transformer.model.taps import Recorder


@pytest.mark.parametrize("build", RECURRENT_BUILDS, ids=str)
@pytest.mark.parametrize(
    "sizes", [dict(), dict(n_encoder_layers=2, n_decoder_layers=3, tie_embeddings=False, bidirectional=False)], ids=str
)
def test_the_pass_from_ids_is_the_model(build, sizes):
    model = random_recurrent(torch.float64, **build, **sizes)
    source, read, recorder = random_ids(1, 7), random_ids(1, 5), Recorder()
    logits = model(source, read, tap=recorder)[0]
    weights, found = pass_from_ids(model, source[0].tolist(), read[0].tolist())
    assert np.abs(found - logits.detach().numpy()).max() < 1e-12
    if build["attention"] != "none":
        assert np.abs(weights[0, 0] - recorder.recording["decoder.0.cross.weights"][0, 0].numpy()).max() < 1e-12


@pytest.mark.parametrize("build", [build for build in RECURRENT_BUILDS if build["attention"] != "none"], ids=str)
def test_recorded_queries_and_keys_give_the_weights(build):
    model, source = random_recurrent(**build), random_ids(1, 6)
    steps = [*greedy(model, source, max_length=64, constraints=Constraints(forced={0: 5}), record=lambda site: True)]
    weights, mask, _ = one_head_attention(model, source[0].tolist(), (), {0: 5})
    shown = np.stack([step.recording["decoder.0.cross.weights"][0, :, -1].numpy() for step in steps], axis=1)
    assert np.abs(weights[0] - shown).max() < 1e-6 and mask.all()
