"""bertviz's three views: no network, inert tokens, any depths and lengths, and a limit that is said."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import ndarray

from transformer.figures.bertviz import Shown, View, head_view, model_view, neuron_view
from transformer.figures.bertviz.shown import MAX_NUMBERS, MAX_TOKENS
from transformer.figures.bertviz.views import HEAD_LINES, MODEL_LINES, NEURON_TOKENS

SOURCE = ("▁the", "</script>", "<b>x</b>", "<!--", "</s>")
TARGET = ("<s>", "▁le", "שלום")


def shown(
    queries: tuple[str, ...] = TARGET, keys: tuple[str, ...] = SOURCE, n_layers: int = 3, n_heads: int = 2, **more: Any
) -> Shown:
    shape = (n_layers, n_heads, len(queries))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(keys)), shape).astype(np.float32)
    return Shown(weights, queries, keys, **more)


def vectors(given: Shown, side: tuple[str, ...], d_head: int = 4) -> ndarray:
    shape = (*given.weights.shape[:2], len(side), d_head)
    return np.random.default_rng(len(side)).normal(size=shape).astype(np.float32)


def neuron(given: Shown, **more: Any) -> View:
    return neuron_view(given, vectors(given, given.queries), vectors(given, given.keys), **more)


VIEWS: list[Callable[..., View]] = [head_view, model_view, neuron]


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_fetched(view):
    html = view(shown()).html
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", html)
    assert "cdnjs" not in html and "@import" not in html and "PYTHON_PARAMS" not in html


@pytest.mark.parametrize("view", VIEWS)
def test_different_depths_and_lengths_are_shown_whole(view):
    given = shown()
    found = view(given).attention()
    assert np.shape(found["attn"]) == given.weights.shape
    assert np.abs(np.array(found["attn"]) - given.weights).max() <= 5.1e-5  # rounded to four decimals
    assert found["left_text"] == list(given.queries)
    assert found["right_text"] == list(given.keys)


@pytest.mark.parametrize("view", VIEWS)
def test_a_token_cannot_end_the_script_it_stands_in(view):
    html = view(shown()).html
    harmless = view(shown(keys=("a", "b", "c", "d", "e"))).html
    assert html.count("</script") == harmless.count("</script")
    assert html.count("<!--") == harmless.count("<!--")
    assert "\\u003c/script>" in html and "<b>x" not in html
    assert view(shown()).attention()["right_text"] == list(SOURCE)


@pytest.mark.parametrize("view", VIEWS)
def test_the_same_attention_gives_the_same_document(view):
    assert view(shown()) == view(shown())


@pytest.mark.parametrize("view", VIEWS)
def test_dark_documents_are_dark(view):
    assert "color-scheme: dark" in view(shown(), dark=True).html and "color-scheme: light" in view(shown()).html


@pytest.mark.parametrize(("view", "most"), [(head_view, MAX_TOKENS), (model_view, MAX_TOKENS), (neuron, NEURON_TOKENS)])
def test_long_sentences_are_cut_and_the_document_says_so(view, most):
    long = tuple(f"w{index}" for index in range(most + 6))
    drawn = view(shown(keys=long))
    assert np.shape(drawn.attention()["attn"]) == (3, 2, len(TARGET), most)
    assert f"first {most} of {most + 6} tokens" in drawn.html
    assert "Shown: the first" not in view(shown()).html


@pytest.mark.parametrize("view", VIEWS)
def test_six_layers_of_eight_heads_and_128_tokens_stay_sane(view):
    tokens = tuple(f"token{index}" for index in range(128))
    given = shown(tokens, tokens, n_layers=6, n_heads=8, layer=4)
    drawn = (
        neuron_view(given, vectors(given, tokens, 64), vectors(given, tokens, 64)) if view is neuron else view(given)
    )
    assert len(drawn.html) < 2_000_000
    layers, heads, queries, keys = np.shape(drawn.attention()["attn"])
    assert layers * heads * queries * keys <= MAX_NUMBERS
    assert heads * queries * keys * (layers if view is model_view else 1) <= max(HEAD_LINES, MODEL_LINES)
    if view is neuron:
        assert "Only layer 4" in drawn.html
        assert (drawn.parameters()["layer"], drawn.parameters()["layer_names"]) == (0, [4])
    assert "of 128 tokens" in drawn.html


def test_columns_are_as_wide_as_the_longest_token():
    word = "Donaudampfschifffahrtsgesellschaft"
    width = re.search(r"const BOXWIDTH = (\d+);", head_view(shown(keys=(word, "</s>"))).html)
    assert width and int(width[1]) > 9 * len(word)


@pytest.mark.parametrize("view", VIEWS)
def test_the_height_grows_with_the_longer_side(view):
    longer = view(shown(keys=tuple("abcdefghij"))).height
    assert longer > view(shown()).height
    assert view(shown(tuple("abcdefghij"), TARGET)).height == view(shown(TARGET, tuple("abcdefghij"))).height


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_said_above_a_drawing_has_room(view):
    assert view(shown(said="A long sentence. " * 30)).height == view(shown()).height + 6 * 16


def test_the_chosen_layer_and_head_are_shown_first():
    first = head_view(shown(layer=2), alone=1).parameters()
    assert (first["layer"], first["heads"]) == (2, [1])
    assert head_view(shown()).parameters()["heads"] is None
    found = neuron(shown(layer=2, head=1), row=1).parameters()
    assert (found["layer"], found["head"], found["row"]) == (2, 1, 1)


def test_the_neuron_view_gets_q_and_k_of_the_pass():
    given = shown()
    q, k = vectors(given, given.queries), vectors(given, given.keys)
    found = neuron_view(given, q, k).attention()
    assert np.abs(np.array(found["queries"]) - q).max() <= 5.1e-5
    assert np.abs(np.array(found["keys"]) - k).max() <= 5.1e-5
    assert neuron_view(given, q, k, causal=True).parameters()["bidirectional"] is False


@pytest.mark.parametrize("view", VIEWS)
def test_heads_that_are_off_are_handed_over_and_named(view):
    drawn = view(shown(off=frozenset({(1, 0), (0, 1)})))
    assert drawn.parameters()["off"] == [[0, 1], [1, 0]]
    assert "Grey: switched off" in drawn.html and "0 · 1, 1 · 0" in drawn.html
    assert "Grey:" not in view(shown()).html


@pytest.mark.parametrize("view", VIEWS)
def test_heads_at_their_mean_are_grey_too_and_not_called_off(view):
    drawn = view(shown(off=frozenset({(1, 0)}), at_mean=frozenset({(0, 1)})))
    assert drawn.parameters()["off"] == [[0, 1], [1, 0]]
    assert drawn.parameters()["at_mean"] == [[0, 1]]
    off, at_mean = drawn.html.split("Grey: ")[1:]
    assert "switched off" in off and "head 1 · 0)" in off
    assert "at its mean" in at_mean and "head 0 · 1)" in at_mean
    assert "Grey: switched off" not in view(shown(at_mean=frozenset({(0, 1)}))).html


def test_no_head_has_the_colour_of_one_that_is_off():
    found = head_view(shown()).parameters()
    for colour in found["colours"]:
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        assert max(red, green, blue) - min(red, green, blue) > 30
