"""Pages on a model that was trained without parts of the paper: what they show is what that model does."""

import pytest
import torch
from page_exports import with_menus
from page_models import checked, open_page, texts
from random_models import randomise
from tiny_runs import tokenizer

from pages.shared.wording import plain
from transformer.checkpoints.settings import Settings
from transformer.checkpoints.store import save_checkpoint
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.model.transformer import Transformer
from transformer.training.state import weights_of

BARE = "bare"


@pytest.fixture(autouse=True)
def models(tmp_path_factory, monkeypatch):
    """A folder of runs with one untrained model that has neither causal mask, scaling, residuals nor layer norm."""
    runs = tmp_path_factory.mktemp("runs")
    parts = dict(causal_mask=False, scale_scores=False, residual=False, norm="none")
    sizes = dict(d_model=16, n_heads=2, d_ff=16, n_encoder_layers=1, n_decoder_layers=1, max_length=12)
    config = ModelConfig(vocab_size=tokenizer().vocab_size, **sizes, **parts)
    torch.manual_seed(0)
    model = Transformer(config)
    randomise(model)
    settings = Settings(name=BARE, model=config, train=TrainConfig(), corpus=CorpusConfig(name="reverse"))
    save_checkpoint(runs / BARE, settings, tokenizer(), weights_of(model))
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(runs))


def latex(at):
    return "\n".join(element.value for element in at.latex)


@pytest.mark.parametrize("page", ["", "attention", "steps", "masks", "positions"])
def test_every_page_names_what_the_model_never_had(page):
    at = open_page(page, model=BARE, text="a b c")
    said = texts(at).replace("\\", "")
    assert "trained with parts missing: no causal mask" in said
    assert "no scaling of scores" in said and "no layer norm" in said


def test_the_attention_page_shows_a_whole_pass_with_nothing_masked():
    at = open_page("attention", model=BARE, text="a b c", kind="decoder_self", layer="0", head="1", cell="0,2")
    at = with_menus(at, "head-matrix-explained")
    assert "every token may see the ones after it" in texts(at).replace("\n", " ")
    assert "did not exist yet" not in texts(at)
    assert r"s &= q \cdot k = " in latex(at) and r"does not divide by" in latex(at)
    assert r"\frac{QK^\top}{\sqrt{d_k}}" not in latex(at)


def test_a_causal_mask_that_is_not_there_cannot_be_lifted():
    at = open_page("attention", model=BARE, text="a b c", switch="mask:causal")
    assert "trained without a causal mask, so there is none to lift" in texts(at)
    assert not at.query_params.get("switch")


def test_the_masks_page_has_no_causal_part_and_says_that_forcing_cheats():
    at = open_page("masks", model=BARE, text="a b c", kind="decoder_self")
    assert "exactly the mask that the recorded pass applied" in texts(at)
    assert at.toggle(key="mask-never-causal").disabled and not at.toggle(key="mask-never-causal").value
    assert "nothing leaks" not in texts(at) and "so later tokens are visible: **" in texts(at)
    assert "Grey: the causal mask that this model was trained without" in texts(at)
    assert "cheating" in at.expander[0].label and "without a causal mask" in at.expander[0].label
    at = checked(at.toggle(key="mask-on-padding").set_value(False).run())
    assert "exactly the mask that the recorded pass applied" in texts(at)


def test_steps_say_that_nothing_is_kept():
    at = with_menus(open_page("steps", model=BARE, text="a b c"), "step-candidates-explained")
    assert "each step computes all positions again" in texts(at).replace("\n", " ")
    assert "**Cache**: not used" in texts(at)


def test_a_residual_that_is_not_there_cannot_be_switched_off():
    at = open_page("attention", model=BARE, text="a b c", switch="residual:off:decoder.0.ffn")
    assert "trained without residual connections" in texts(at)


def test_a_residual_is_switched_off_and_named():
    at = open_page("attention", model="reverse", text="a b c", switch="residual:off:decoder.1.cross")
    assert plain("cross-attention · layer 1 · residual off") in [button.label for button in at.button]
    assert "The output" in texts(at) and "parts missing" not in texts(at)
