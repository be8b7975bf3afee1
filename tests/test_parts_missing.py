"""Models with a part of the paper left out: what is gone is really gone, on both paths, in decoding, in files."""

import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_runs
import torch
from random_models import half_trained_model, ragged_batch, random_ids, random_model, reversals
from torch import nn

from transformer.analysis.cell import look_into
from transformer.analysis.leaks import is_forcing_honest, measure_leak
from transformer.analysis.score_split import split_scores
from transformer.card import card
from transformer.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from transformer.config import CorpusConfig, ModelConfig
from transformer.decoding import greedy, teacher_forced_log_probs, translate_ids
from transformer.files import read_json, write_json
from transformer.interventions import MaskOff, ResidualOff, compile_interventions, parse_intervention
from transformer.lab import Lab
from transformer.model import Transformer
from transformer.settings import Settings
from transformer.state import weights_of
from transformer.taps import Address, Recorder
from transformer.training import Evaluated, StepDone

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


def recorded(model, tap_source=None):
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
    blocks = [site for site in seen if site.tensor == "scores"]
    for site in blocks:
        q, k = (seen[replace(site, tensor=name)] for name in "qk")
        within(seen[site], torch.einsum("bhqd,bhkd->bhqk", q, k), 1e-12)
    assert len(blocks) == 2 + 2 * 3


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("residual", [True, False])
def test_a_block_is_its_formula_without_the_missing_part(within, norm, residual):
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
    lifted = compile_interventions([MaskOff("causal")], with_mask)
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
        source, target = ragged_batch()
        with pytest.raises(ValueError, match="cannot reuse keys and values: decode with cache=False"):
            model.decode(target, model.encode(source), source != 0, cache=model.new_cache())

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


class TestInspection:
    """What pages show of a model without the causal mask is what its passes really applied."""

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
        cell = lab.cell(seen, "decoder_self", 1, 0, 0, 2)
        assert cell.divisor == 1
        assert cell.scaled == cell.dot == pytest.approx(float(cell.scores[2]), rel=1e-5, abs=1e-6)
        assert cell.softmax == pytest.approx(float(seen.decoder_self.weights[1, 0, 0, 2]), abs=1e-6)

    def test_forcing_is_reported_as_dishonest(self, lab):
        found = is_forcing_honest(lab.model, lab.inspect("a b c").source_ids)
        assert found.masked_change == found.unmasked_change > 1e-6

    def test_the_batch_s_masks_and_its_leak_are_those_of_the_passes(self, lab):
        source = torch.tensor([[5, 6, 7, 2], [5, 2, 0, 0]])
        leak = measure_leak(lab.model, source, [MaskOff("padding")])
        assert leak.intact.on_future > 0.1
        real = leak.target != 0
        np.testing.assert_array_equal(
            leak.intact.masks["decoder_self"], np.broadcast_to(real[:, None], real.shape + real.shape[1:])
        )
        assert leak.lifted.masks["decoder_self"].all()
        with pytest.raises(ValueError, match="without a causal mask, so there is none to lift"):
            measure_leak(lab.model, source, [MaskOff("causal")])


@pytest.mark.parametrize("changes", [dict(scale_scores=False), dict(norm="none"), dict(residual=False)], ids=str)
def test_the_parts_of_a_first_layer_s_scores_sum_to_them(changes):
    model = random_model(**changes)
    source, target = random_ids(1, 6), random_ids(1, 5)
    for stack in ("encoder", "decoder"):
        split = split_scores(model, source, target, stack)
        assert split.largest_error < 1e-4 * (1 + np.abs(split.scores).max())


@pytest.mark.parametrize("changes", [dict(scale_scores=False), dict(norm="none"), dict(residual=False)], ids=str)
def test_a_cell_s_score_is_the_pass_s_whatever_is_missing(changes):
    model = random_model(**changes)
    cell = look_into(model, [5, 9, 4, 2], address=Address("encoder", 1, "self"), head=1, query=2, key=0)
    assert cell.divisor == (1 if "scale_scores" in changes else 2)
    assert cell.scaled == pytest.approx(float(cell.scores[0]), rel=1e-4, abs=1e-4)


class TestResidualOff:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    @pytest.mark.parametrize("block", [("encoder", 1, "self"), ("decoder", 0, "cross"), ("decoder", 2, "ffn")])
    def test_what_goes_on_is_the_block_s_output_alone(self, within, norm, block):
        model = random_model(torch.float64, norm=norm)
        stack, layer, name = block
        recorder = Recorder()
        torch.manual_seed(1)
        source, target = ragged_batch()
        seen = []
        around = getattr(getattr(model, stack).layers[layer], f"add_norm_{name}")
        around.register_forward_hook(lambda module, given, out: seen.append(out))

        def watched(site, tensor):
            return recorder(site, switch(site, tensor))

        switch = compile_interventions([ResidualOff(stack, layer, name)], model)
        with torch.no_grad():
            logits = model(source, target, tap=watched)
            output = recorder.recording[f"{stack}.{layer}.{name}.output"]
            within(seen[0], around.norm(output) if norm == "post" else output, 1e-12)
            assert (logits - model(source, target)).abs().max() > 1e-3

    def test_all_residuals_off_is_the_model_trained_without(self, within):
        model = random_model(torch.float64)
        bare = random_model(torch.float64, residual=False)
        bare.load_state_dict(model.state_dict())
        everywhere = [ResidualOff(s.stack, s.layer, s.block) for s in model.sites() if s.tensor == "residual"]
        source, target = ragged_batch()
        with torch.no_grad():
            off = model(source, target, tap=compile_interventions(everywhere, model))
            within(off, bare(source, target), 1e-12)
        assert len(everywhere) == 2 * 2 + 3 * 3

    def test_it_prints_parses_and_hashes(self):
        spec = ResidualOff("decoder", 0, "ffn")
        assert str(spec) == "residual:off:decoder.0.ffn"
        assert parse_intervention(str(spec)) == spec and hash(parse_intervention(str(spec))) == hash(spec)
        for text in ("residual:off:decoder.ffn", "residual:on:decoder.0.ffn", "residual:off:decoder.final"):
            with pytest.raises(ValueError, match="is not a"):
                parse_intervention(text)

    @pytest.mark.parametrize(
        ("changes", "spec", "said"),
        [
            ({}, ResidualOff("decoder", 9, "ffn"), "this model has no block decoder.9.ffn with a residual"),
            ({}, ResidualOff("encoder", 0, "cross"), "this model has no block encoder.0.cross with a residual"),
            (
                dict(residual=False),
                ResidualOff("decoder", 0, "ffn"),
                "this model was trained without residual connections, so there is none to switch off",
            ),
            (
                dict(causal_mask=False),
                MaskOff("causal"),
                "this model was trained without a causal mask, so there is none to lift",
            ),
        ],
    )
    def test_what_the_model_lacks_is_refused(self, changes, spec, said):
        with pytest.raises(ValueError) as refusal:
            compile_interventions([spec], random_model(**changes))
        assert str(refusal.value) == said


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


LEARNING = ModelConfig(
    vocab_size=24,
    d_model=32,
    n_heads=2,
    d_ff=64,
    n_encoder_layers=1,
    n_decoder_layers=1,
    max_length=32,
    dropout=0.0,
    embedding_dropout=0.0,
    positions="rotary",  # "one place later" is a distance, which rotary positions learn in 100 steps
)


def trained(model=LEARNING, **changes):
    """A run of some seconds on reversal; its state and its events."""
    settings = dict(max_steps=150, batch_tokens=512, warmup_steps=20, learning_rate=1e-2, label_smoothing=0.0)
    settings |= dict(schedule="constant", evaluate_every=150, evaluate_pairs=20)
    config = tiny_runs.settings(**{**settings, **changes})
    model = replace(model, vocab_size=tiny_runs.tokenizer().vocab_size)
    state = tiny_runs.state(config, model)
    return state, tiny_runs.events(state, config)


def test_without_the_causal_mask_loss_falls_to_nothing_and_free_running_output_is_nonsense():
    state, events = trained(replace(LEARNING, causal_mask=False))
    last = [event for event in events if isinstance(event, Evaluated)][-1]
    assert last.loss < 0.05
    assert last.exact_match < 0.05
    # With the mask, the same run has learned far less of the next token: it cannot read it.
    state_with_mask, honest = trained()
    with_mask = [event for event in honest if isinstance(event, Evaluated)][-1]
    assert with_mask.loss > 10 * last.loss
    # The decoder copies: it predicts the very token that it is given one place later, whatever the source says.
    source, target = reversals(32)
    foreign, wanted = random_ids(*source.shape, vocab_size=12), target[:, 1:]
    read = target[:, 2:] != 0  # the last token of a row is not among its own inputs

    def copied(model: Transformer) -> float:
        guesses = teacher_forced_log_probs(model.eval(), foreign, wanted).argmax(-1)
        return float((guesses == wanted)[:, :-1][read].double().mean())

    assert copied(state.model) > 0.8 > 0.5 > copied(state_with_mask.model)
    assert translate_ids(state.model, source, max_length=12) != [[t for t in row if t > 2] for row in target.tolist()]


@pytest.mark.parametrize(
    "changes",
    [dict(scale_scores=False), dict(residual=False), dict(norm="none"), dict(positions="none")],
    ids=["no scaling", "no residual", "no layer norm", "no positions"],
)
def test_training_with_a_part_missing_runs_and_its_losses_are_finite(changes):
    state, events = trained(replace(LEARNING, **changes), max_steps=40, evaluate_every=40, warmup_steps=0)
    losses = [event.loss for event in events if isinstance(event, StepDone)]
    assert len(losses) == state.step == 40
    assert all(map(math.isfinite, losses))
    assert losses[-1] < losses[0]
