"""The kinds of attention: where each stands in a model, and the name that links and data files hold."""

import pytest
from random_models import random_model

from transformer.model.kinds import AttentionKind


def test_each_kind_names_an_attention_that_the_model_has_in_all_its_layers():
    model = random_model(n_encoder_layers=3, n_decoder_layers=2)
    weights = {(site.stack, site.sublayer, site.layer) for site in model.sites() if site.tensor == "weights"}
    named = {(*kind.where, layer) for kind in AttentionKind for layer in range(kind.n_layers(model.config))}
    assert named == weights and len(weights) == 3 + 2 + 2


@pytest.mark.parametrize("kind", AttentionKind)
def test_a_kind_is_found_by_its_place_and_by_its_name(kind):
    assert AttentionKind.at(*kind.where) is kind
    assert AttentionKind(str(kind)) is kind


def test_a_kind_stands_for_its_name_in_tables_links_and_programs():
    assert {"cross": 1}[AttentionKind.CROSS] == 1
    assert f"kind={AttentionKind.DECODER_SELF}" == "kind=decoder_self"
    assert repr(AttentionKind.ENCODER_SELF) == "'encoder_self'"


@pytest.mark.parametrize(("stack", "sublayer"), [("encoder", "cross"), ("decoder", "ffn")])
def test_a_place_without_attention_is_refused(stack, sublayer):
    with pytest.raises(ValueError, match=f"the {stack} has no {sublayer}-attention"):
        AttentionKind.at(stack, sublayer)
