"""Tests of the neuron view: "Softmax" is the softmax of the q · k beside it, except where it says otherwise."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from page_models import CLASSIC, PRONOUNS, open_page
from random_models import random_model

from transformer.analysis.attention.vectors import record_vectors
from transformer.checkpoints.store import save_checkpoint
from transformer.interventions import parse_intervention
from transformer.lab import AttentionKind, load
from transformer.training.state import weights_of
from transformer.views.attention.heads import softmax_differences

pytestmark = pytest.mark.usefixtures("untrained_models")


def looked_into(kind, switches):
    """The source of a picture, its vectors, and where its weights are not the softmax of all scores drawn."""
    lab, specs = load(PRONOUNS), list(map(parse_intervention, switches))
    seen = lab.inspect(CLASSIC, specs)
    vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, *AttentionKind(kind).where)
    scores = np.einsum("lhqd,lhkd->lhqk", vectors.q, vectors.k) / np.sqrt(vectors.q.shape[-1])
    if kind == "decoder_self" and "mask:causal" not in switches:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    apart = np.abs(odds / odds.sum(axis=-1, keepdims=True) - seen.attention(kind).weights).max(axis=-1) > 1e-4
    return softmax_differences(lab, seen, kind, vectors), {tuple(map(int, at)) for at in np.argwhere(apart)}


@pytest.mark.parametrize("kind", list(AttentionKind))
@pytest.mark.parametrize(
    "switch",
    [
        "off:{}:1",
        "block:{}",
        "copy:{}.q:1>2:The cat slept.",
        "copy:{}.k.2:0>1:The cat slept.",
        "mask:causal",
        "positions:encoder:shuffle:1",
    ],
)
def test_the_scores_drawn_are_those_of_the_weights_drawn(kind, switch):
    stack, sublayer = kind.where
    assert looked_into(kind, [switch.format(f"{stack}.0.{sublayer}")]) == ((), set())


@pytest.mark.parametrize(
    ("kind", "switches", "named", "at"),
    [
        ("encoder_self", ["row:encoder.0.self.1:2:uniform"], "query 0 · 1 · 2)", {(0, 1, 2)}),
        ("cross", ["row:decoder.1.cross.3:1:2", "mask:causal"], "query 1 · 3 · 1)", {(1, 3, 1)}),
        ("decoder_self", ["row:decoder.0.self.0:2:1,0,2.5"], "query 0 · 0 · 2)", {(0, 0, 2)}),
        ("decoder_self", ["row:decoder.0.self.0:0:uniform"], "", set()),  # a single key
        ("cross", ["row:encoder.0.self.1:2:uniform"], "", set()),  # another kind
        ("cross", ["forbid:decoder.0.cross:1,2"], "key 0 · 1 · 2)", {(0, head, 1) for head in range(4)}),
        ("decoder_self", ["forbid:decoder.1.self:1,3"], "", set()),  # closed already, and not drawn
        (
            "decoder_self",
            ["forbid:decoder.1.self:1,3", "mask:causal"],
            "key 1 · 1 · 3)",
            {(1, head, 1) for head in range(4)},
        ),
    ],
)
def test_where_they_are_not_it_is_said(kind, switches, named, at):
    said, apart = looked_into(kind, switches)
    assert apart == at
    assert len(said) == bool(named) and all(sentence.endswith(f"{named}.") for sentence in said)


@pytest.mark.parametrize(
    ("kind", "switch", "named"),
    [
        ("cross", "row:decoder.1.cross.3:1:2", "query 1 · 3 · 1)"),
        ("decoder_self", "row:decoder.0.self.0:2:uniform", "query 0 · 0 · 2)"),
        ("decoder_self", "row:decoder.0.self.0:0:uniform", ""),  # a single key
        ("encoder_self", "row:decoder.1.cross.3:1:2", ""),  # another kind
    ],
)
def test_of_additive_scores_it_is_said_beside_the_rows_that_a_switch_overwrites(own_models, kind, switch, named):
    like = load(PRONOUNS)
    torch.manual_seed(1)
    model = random_model(**{**asdict(like.model.config), "score": "additive"})
    settings = replace(like.checkpoint.settings, name="additive", model=model.config)
    save_checkpoint(own_models / "additive", settings, like.tokenizer, weights_of(model))
    lab, at = load("additive"), AttentionKind(kind)
    seen = lab.inspect(CLASSIC, [parse_intervention(switch)])
    vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, *at.where)
    additive, *others = softmax_differences(lab, seen, at, vectors)
    assert additive.startswith("This model's scores are additive")
    assert len(others) == bool(named) and all(sentence.endswith(f"{named}.") for sentence in others)


@pytest.mark.parametrize("kind", list(AttentionKind))
def test_of_a_window_it_is_said_until_a_switch_lifts_it(own_models, kind):
    like = load(PRONOUNS)
    model = random_model(**{**asdict(like.model.config), "window": 2})
    settings = replace(like.checkpoint.settings, name="near", model=model.config)
    save_checkpoint(own_models / "near", settings, like.tokenizer, weights_of(model))
    for lifted in ([], ["mask:window"]):
        seen = load("near").inspect(CLASSIC, list(map(parse_intervention, lifted)))
        vectors = record_vectors(load("near").model, seen.source_ids, seen.interventions, *kind.where)
        said = softmax_differences(load("near"), seen, kind, vectors)
        assert bool(said) == (kind is not AttentionKind.CROSS and not lifted)
        assert all("more than 2 places away" in sentence for sentence in said)


def test_it_is_said_in_the_drawing_itself():
    at = open_page(
        "attention", model=PRONOUNS, text=CLASSIC, picture="bertviz-neuron", switch="row:decoder.0.cross.1:2:uniform"
    )
    (frame,) = at.get("iframe")
    assert "A switch overwrote rows of weights" in frame.proto.srcdoc
