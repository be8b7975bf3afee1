"""Models with a part of the paper left out: what is gone is really gone, on both paths, in decoding, in files."""

from dataclasses import replace

import pytest
import tiny_runs
import torch
from random_models import half_trained_model, ragged_batch, random_ids, random_model, reversals
from torch import nn

from transformer.checkpoints.cards import card
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import Checkpoint, load_checkpoint, save_checkpoint
from transformer.config import CorpusConfig
from transformer.decoding.cached_steps import StepDecoder
from transformer.decoding.greedy import greedy
from transformer.files import read_json, write_json
from transformer.interventions import DisableMask, compile_interventions
from transformer.model.taps import Recorder
from transformer.model.transformer import Transformer
from transformer.training.state import weights_of

NOTHING = Recorder(lambda site: False)  # takes the explicit path and keeps nothing


PARTS = {
    "no causal mask": dict(causal_mask=False),
    "no positions": dict(positions="none"),
    "no scaling": dict(scale_scores=False),
    "no residual": dict(residual=False),
    "no layer norm": dict(norm="none"),
    "none of them": dict(causal_mask=False, positions="none", scale_scores=False, residual=False, norm="none"),
    "pre-norm without residual": dict(norm="pre", residual=False),
    "alibi without scaling": dict(positions="alibi", scale_scores=False),
}


EVERY_PART = pytest.mark.parametrize("changes", PARTS.values(), ids=PARTS.keys())


def recorded(model):
    torch.manual_seed(1)
    recorder = Recorder()
    with torch.no_grad():
        model(*ragged_batch(), tap=recorder)
    return recorder.recording


@EVERY_PART
@torch.no_grad()
def test_the_two_attention_paths_give_the_same_logits(within, changes):
    model = random_model(torch.float64, **changes)
    source, target = ragged_batch()
    within(model(source, target), model(source, target, tap=NOTHING), 1e-12)


@EVERY_PART
def test_gradients_are_finite_on_both_paths_where_a_source_is_fully_masked(changes):
    for tap in (None, NOTHING):
        model = random_model(**changes).train()
        source, target = ragged_batch()
        source_mask = source != 0
        source_mask[1] = False
        logits = model(source, target, source_mask, tap=tap)
        nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@EVERY_PART
def test_a_recording_holds_every_site_of_the_model_in_order(changes):
    model = random_model(**changes)
    assert tuple(recorded(model)) == model.sites()


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("residual", [True, False])
def test_a_missing_part_offers_no_site(norm, residual):
    names = {site.tensor for site in random_model(norm=norm, residual=residual).sites()}
    assert ("normed" in names) == (norm != "none")
    assert ("residual" in names) == residual


def test_scores_without_scaling_are_the_products_themselves(within):
    seen = recorded(random_model(torch.float64, scale_scores=False))
    sublayers = [site for site in seen if site.tensor == "scores"]
    for site in sublayers:
        q, k = (seen[replace(site, tensor=name)] for name in "qk")
        within(seen[site], torch.einsum("bhqd,bhkd->bhqk", q, k), 1e-12)
    assert len(sublayers) == 2 + 2 * 3


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("residual", [True, False])
def test_a_sublayer_is_its_formula_without_the_missing_part(within, norm, residual):
    model = random_model(torch.float64, norm=norm, residual=residual)
    seen = recorded(model)
    for layer in (0, 1):
        around = model.decoder.layers[layer].add_norm_cross
        name = f"decoder.{layer}.cross"
        total = seen[f"{name}.output"] + (seen[f"{name}.input"] if residual else 0)
        following = seen[f"decoder.{layer}.ffn.input"]
        within(following, around.norm(total) if norm == "post" else total, 1e-12)
        if norm == "none":
            assert around.norm is None and not list(around.parameters())
        if norm == "pre":
            within(seen[f"{name}.normed"], around.norm(seen[f"{name}.input"]), 1e-12)


def test_layer_norms_that_are_missing_have_no_parameters():
    n_norms = 2 * 2 + 3 * 3
    assert random_model().n_parameters() - random_model(norm="none").n_parameters() == n_norms * 2 * 16


@pytest.mark.parametrize("tap", [None, NOTHING], ids=["fused", "explicit"])
@torch.no_grad()
def test_without_the_causal_mask_later_tokens_change_earlier_logits_but_padding_does_not(within, tap):
    model = random_model(torch.float64, causal_mask=False)
    source, target = random_ids(1, 6), random_ids(1, 8)
    changed = target.clone()
    changed[0, -1] = 4 + (changed[0, -1] - 3) % 19
    assert (model(source, target, tap=tap) - model(source, changed, tap=tap))[0, 0].abs().max() > 1e-3
    padded = nn.functional.pad(target, (0, 5))
    within(model(source, padded, tap=tap)[:, :8], model(source, target, tap=tap), 1e-12)


def test_lifting_the_causal_mask_is_the_model_trained_without_it(within):
    """The switch at inference and the missing part are one and the same pass."""
    with_mask, without = (random_model(torch.float64, causal_mask=mask) for mask in (True, False))
    without.load_state_dict(with_mask.state_dict())
    source, target = ragged_batch()
    lifted = compile_interventions([DisableMask("causal")], with_mask)
    with torch.no_grad():
        within(with_mask(source, target, tap=lifted), without(source, target), 1e-12)


class TestDecoding:
    def test_without_the_causal_mask_every_step_passes_the_whole_prefix(self):
        model = half_trained_model()
        bare = without_causal_mask(model)
        source, _ = reversals(2)
        steps = list(greedy(bare, source, max_length=6))
        assert all(step.reused == 0 and step.computed == step.index + 1 for step in steps)
        prefix = torch.full((2, 1), 1)
        for step in steps:
            with torch.no_grad():
                expected = bare(source, prefix)[:, -1].log_softmax(-1)
            assert (step.log_probs - expected).abs().max() < 1e-5
            prefix = torch.cat((prefix, step.tokens[:, None]), dim=1)
        cached = list(greedy(model, source, max_length=6))
        assert any(step.reused for step in cached)

    def test_a_cache_is_refused_where_it_would_be_stale(self):
        model = random_model(causal_mask=False)
        source, _ = ragged_batch()
        with pytest.raises(ValueError, match="cannot reuse keys and values: decode with cache=False"):
            StepDecoder(model, model.encode(source), source != 0, capacity=4)

    @pytest.mark.parametrize("part", ["no scaling", "no residual", "no layer norm", "no positions"])
    def test_with_a_causal_mask_the_cache_gives_the_same_probabilities(self, within, part):
        model = random_model(torch.float64, **PARTS[part])
        source, _ = ragged_batch()
        cached, whole = (list(greedy(model, source, max_length=8, cache=cache)) for cache in (True, False))
        assert any(step.reused for step in cached)
        for one, other in zip(cached, whole, strict=True):
            within(one.log_probs, other.log_probs, 1e-12)


def without_causal_mask(model: Transformer) -> Transformer:
    bare = Transformer(replace(model.config, causal_mask=False)).eval()
    bare.load_state_dict(model.state_dict())
    return bare


class TestFiles:
    def saved(self, folder, **changes) -> Checkpoint:
        tokenizer = tiny_runs.tokenizer()
        config = replace(tiny_runs.MODEL, vocab_size=tokenizer.vocab_size, **changes)
        settings = Settings(name="m", model=config, train=tiny_runs.settings(), corpus=CorpusConfig(name="reverse"))
        save_checkpoint(folder, settings, tokenizer, weights_of(Transformer(config)))
        return load_checkpoint(folder)

    @EVERY_PART
    def test_missing_parts_are_kept_in_config_json(self, tmp_path, changes):
        loaded = self.saved(tmp_path / "m", **changes)
        assert {name: getattr(loaded.model.config, name) for name in changes} == changes

    def test_a_config_from_before_these_settings_is_the_paper_s_model(self, tmp_path):
        self.saved(tmp_path / "m")
        content = read_json(tmp_path / "m" / "config.json")
        for name in ("causal_mask", "scale_scores", "residual"):
            del content["model"][name]
        write_json(tmp_path / "m" / "config.json", content)
        config = load_checkpoint(tmp_path / "m").model.config
        assert config.causal_mask and config.scale_scores and config.residual

    def test_the_card_says_how_far_a_token_sees(self, tmp_path):
        near = self.saved(tmp_path / "m", window=2).settings
        assert "24 tokens. Self-attention is restricted" in card(near, tiny_runs.corpus(), [], 1)

    def test_the_card_names_every_missing_part(self, tmp_path):
        bare = self.saved(tmp_path / "m", causal_mask=False, residual=False, norm="none", positions="none").settings
        bare = replace(bare, train=replace(bare.train, label_smoothing=0.0, warmup_steps=0))
        text = card(bare, tiny_runs.corpus(), [], 1)
        assert (
            "missing: no causal mask, no positions, no residual connections, no layer norm, no label smoothing, "
            "no warm-up." in text
        )
        assert "no positions, no layer norm, 24 tokens" in text
        assert "reads the very token that it is to predict" in text
        assert "missing" not in card(
            replace(bare, model=tiny_runs.MODEL, train=tiny_runs.settings()), tiny_runs.corpus(), [], 1
        )
