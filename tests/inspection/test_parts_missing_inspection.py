"""Models with a part left out, looked into: masks, scores and cells are those of their own passes."""

import numpy as np
import pytest
import tiny_runs
import torch
from random_models import random_ids, random_model

from transformer.analysis.attention.entry import explain_entry
from transformer.analysis.attention.mask_leakage import is_forcing_honest, measure_leak
from transformer.analysis.positions.score_decomposition import decompose_scores
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import load_checkpoint, save_checkpoint
from transformer.config import CorpusConfig, ModelConfig
from transformer.interventions import DisableMask
from transformer.lab import Lab
from transformer.model.taps import Address
from transformer.model.transformer import Transformer
from transformer.training.state import weights_of


class TestInspection:
    """Pages show what the passes of a model without a causal mask really applied."""

    @pytest.fixture
    def lab(self, tmp_path) -> Lab:
        tokenizer = tiny_runs.tokenizer()
        config = ModelConfig(
            vocab_size=tokenizer.vocab_size,
            **dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=2, max_length=16),
            causal_mask=False,
            scale_scores=False,
        )
        model = Transformer(config)
        settings = Settings(name="bare", model=config, train=tiny_runs.settings(), corpus=CorpusConfig(name="reverse"))
        save_checkpoint(tmp_path / "bare", settings, tokenizer, weights_of(model))
        return Lab(load_checkpoint(tmp_path / "bare"))

    def test_the_decoder_s_picture_is_the_last_whole_pass_with_nothing_masked(self, lab):
        seen = lab.inspect("a b c")
        assert not seen.cached
        assert seen.decoder_self.mask.all()
        assert (seen.decoder_self.weights > 0).all()

    def test_a_cell_above_the_diagonal_exists_and_its_score_is_not_divided(self, lab):
        seen = lab.inspect("a b c")
        entry = lab.explain_entry(seen, "decoder_self", 1, 0, 0, 2)
        assert entry.divisor == 1
        assert entry.scaled == entry.dot == pytest.approx(float(entry.scores[2]), rel=1e-5, abs=1e-6)
        assert entry.softmax == pytest.approx(float(seen.decoder_self.weights[1, 0, 0, 2]), abs=1e-6)

    def test_forcing_is_reported_as_dishonest(self, lab):
        found = is_forcing_honest(lab.model, lab.inspect("a b c").source_ids)
        assert found.masked_change == found.unmasked_change > 1e-6

    def test_the_batch_s_masks_and_its_leak_are_those_of_the_passes(self, lab):
        source = torch.tensor([[5, 6, 7, 2], [5, 2, 0, 0]])
        leak = measure_leak(lab.model, source, [DisableMask("padding")])
        assert leak.intact.shares["on later tokens, decoder self-attention"] > 0.1
        real = leak.target != 0
        np.testing.assert_array_equal(
            leak.intact.masks["decoder_self"], np.broadcast_to(real[:, None], real.shape + real.shape[1:])
        )
        assert leak.lifted.masks["decoder_self"].all()
        with pytest.raises(ValueError, match="without a causal mask, so there is none to lift"):
            measure_leak(lab.model, source, [DisableMask("causal")])


@pytest.mark.parametrize("changes", [dict(scale_scores=False), dict(norm="none"), dict(residual=False)], ids=str)
def test_the_parts_of_a_first_layer_s_scores_sum_to_them(changes):
    model = random_model(**changes)
    source, target = random_ids(1, 6), random_ids(1, 5)
    for stack in ("encoder", "decoder"):
        split = decompose_scores(model, source, target, stack)
        assert split.largest_error < 1e-4 * (1 + np.abs(split.scores).max())


@pytest.mark.parametrize("changes", [dict(scale_scores=False), dict(norm="none"), dict(residual=False)], ids=str)
def test_a_cell_s_score_is_the_pass_s_whatever_is_missing(changes):
    model = random_model(**changes)
    entry = explain_entry(model, [5, 9, 4, 2], address=Address("encoder", 1, "self"), head=1, query=2, key=0)
    assert entry.divisor == (1 if "scale_scores" in changes else 2)
    assert entry.scaled == pytest.approx(float(entry.scores[0]), rel=1e-4, abs=1e-4)
