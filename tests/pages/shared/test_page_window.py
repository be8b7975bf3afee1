"""Pages on a model whose self-attention is restricted to a window: what they show is what that model does."""

from functools import partial

import pytest
from page_exports import proved, verdicts, with_menus
from page_models import checked, open_page, save_model, texts
from random_models import random_model

from pages.shared.wording import number, plain
from transformer.interventions import DisableMask
from transformer.lab import load

NEAR = "near"
HERE = {"model": NEAR, "text": "a b c d e", "beside": "f g"}
LIMIT = "no token sees another that is more than 1 place away"


@pytest.fixture(autouse=True)
def models(tmp_path_factory, monkeypatch):
    """A folder of runs with one untrained model whose tokens see one place to either side."""
    runs = tmp_path_factory.mktemp("runs")
    save_model(runs / NEAR, partial(random_model, window=1))
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(runs))


@pytest.mark.parametrize("page", ["", "attention", "steps", "masks", "positions", "heads"])
def test_every_page_says_what_no_token_of_the_model_sees(page):
    said = texts(open_page(page, model=NEAR, text="a b c"))
    assert LIMIT in said and "parts missing" not in said


def test_the_explanation_of_encoder_self_attention_does_not_claim_that_all_is_seen():
    at = with_menus(open_page("attention", model=NEAR, text="a b c", kind="encoder_self"), "head-matrix-explained")
    assert LIMIT in texts(at) and "Nothing is masked" not in texts(at)


@pytest.mark.parametrize(("kind", "count"), [("encoder_self", 3), ("decoder_self", 4), ("cross", 2)])
@pytest.mark.parametrize("masks", [(), ("window",), ("causal", "window", "padding", "cross")], ids=str)
def test_the_masks_of_every_kind_are_proved(kind, count, masks):
    at = proved(
        "masks", "sentence-masks-proof", "mask-leak-proof", **HERE, kind=kind, switch=[f"mask:{mask}" for mask in masks]
    )
    n_of_leak = 9 if masks else 7
    assert verdicts(at) == (count + n_of_leak, 0), texts(at)
    assert "exactly the mask that the recorded pass applied" in texts(at)


def test_the_window_is_lifted_and_the_attention_beyond_it_is_measured():
    at = open_page("masks", **HERE, kind="decoder_self")
    assert "coloured where all masks are" in texts(at) and "nothing leaks" in texts(at)
    at = checked(at.toggle(key="mask-on-window").set_value(False).run())
    assert at.query_params["switch"] == "mask:window"
    leak = load(NEAR).leak(("a b c d e", "f g"), [DisableMask("window")])
    table = next(t.value for t in at.dataframe if "as switched" in t.value)
    shown = dict(zip(table.iloc[:, 0], table["as switched"], strict=True))
    for kind in ("encoder", "decoder"):
        name = f"beyond the window, {kind} self-attention"
        assert shown[f"attention {name}"] == number(leak.lifted.shares[name])
        assert leak.intact.shares[name] == 0 < leak.lifted.shares[name]
    assert leak.lifted.shares["on later tokens, decoder self-attention"] == 0


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_a_cell_beyond_the_window_is_explained_and_proved(kind):
    at = proved("attention", "entry-products-proof", model=NEAR, text="a b c d e", kind=kind, cell="3,1")
    good, bad = verdicts(at)
    assert good > 3 and bad == 0, texts(at)
    assert "the mask forbids this key" in texts(at)


def test_a_window_that_is_not_there_cannot_be_lifted():
    at = open_page("attention", model="reverse", text="a b c", switch="mask:window")
    assert plain("trained without a window of self-attention, so there is none to lift") in texts(at)
