"""bertviz's head view: no network, inert tokens, any depths and lengths."""

import json
import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from pages.common.bertviz_view import MAX_TOKENS, head_view_height, head_view_html
from transformer.lab import KIND_SITES, Attention, AttentionKind, Inspection

SOURCE = ("▁the", "</script>", "<b>x</b>", "<!--", "</s>")
TARGET = ("<s>", "▁le", "שלום")


def attention(kind: AttentionKind, n_layers: int, queries: tuple[str, ...], keys: tuple[str, ...]) -> Attention:
    shape = (n_layers, 2, len(queries))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(keys)), shape).astype(np.float32)
    return Attention(kind, weights, np.ones((n_layers, len(queries), len(keys)), dtype=bool), queries, keys)


def inspection(source: tuple[str, ...] = SOURCE, target: tuple[str, ...] = TARGET) -> Inspection:
    """Three encoder and two decoder layers, sentences of different length."""
    values: dict[str, Any] = {field.name: None for field in fields(Inspection)}
    values["encoder_self"] = attention("encoder_self", 3, source, source)
    values["decoder_self"] = attention("decoder_self", 2, target, target)
    values["cross"] = attention("cross", 2, target, source)
    made = object.__new__(Inspection)
    made.__dict__.update(values)
    return made


def parameters(html: str) -> dict[str, Any]:
    """What bertviz's script is given, read as a browser reads it."""
    found = re.search(r"const params = (\{.*?\}); // HACK", html)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("kind", KIND_SITES)
def test_nothing_is_fetched(kind: AttentionKind) -> None:
    html = head_view_html(inspection(), kind)
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", html)
    assert "cdnjs" not in html
    assert "@import" not in html


@pytest.mark.parametrize("kind", KIND_SITES)
def test_different_depths_and_lengths_are_shown_whole(kind: AttentionKind) -> None:
    given = inspection()
    (shown,) = parameters(head_view_html(given, kind))["attention"]
    expected = given.attention(kind)
    assert np.shape(shown["attn"]) == expected.weights.shape
    assert np.abs(np.array(shown["attn"]) - expected.weights).max() <= 5.1e-5  # rounded to four decimals
    assert shown["left_text"] == list(expected.queries)
    assert shown["right_text"] == list(expected.keys)


def test_a_token_cannot_end_the_script_it_stands_in() -> None:
    html = head_view_html(inspection(), "encoder_self")
    harmless = head_view_html(inspection(source=("a", "b", "c")), "encoder_self")
    assert html.count("</script") == harmless.count("</script")
    assert html.count("<!--") == harmless.count("<!--")
    assert "\\u003c/script>" in html
    assert parameters(html)["attention"][0]["left_text"] == list(SOURCE)
    assert "<b>x" not in html


def test_the_same_inspection_gives_the_same_document() -> None:
    assert head_view_html(inspection(), "cross") == head_view_html(inspection(), "cross")


def test_long_sentences_are_cut_and_the_document_says_so() -> None:
    long = inspection(source=tuple(f"w{index}" for index in range(MAX_TOKENS + 6)))
    html = head_view_html(long, "cross")
    (shown,) = parameters(html)["attention"]
    assert np.shape(shown["attn"]) == (2, 2, len(TARGET), MAX_TOKENS)
    assert f"first {MAX_TOKENS} of {MAX_TOKENS + 6} tokens" in html
    assert "Shown: the first" not in head_view_html(inspection(), "cross")


def test_columns_are_as_wide_as_the_longest_token() -> None:
    word = "Donaudampfschifffahrtsgesellschaft"
    html = head_view_html(inspection(source=(word, "</s>")), "cross")
    width = re.search(r"const BOXWIDTH = (\d+);", html)
    assert width and int(width[1]) > 9 * len(word)


def test_the_height_grows_with_the_longer_side() -> None:
    assert head_view_height(inspection(), "encoder_self") > head_view_height(inspection(), "decoder_self")
    assert head_view_height(inspection(), "cross") == head_view_height(inspection(), "encoder_self")


def test_the_chosen_layer_and_head_are_shown_first() -> None:
    first = parameters(head_view_html(inspection(), "encoder_self", layer=2, head=1))
    assert (first["layer"], first["heads"]) == (2, [1])
    assert parameters(head_view_html(inspection(), "encoder_self"))["heads"] is None
