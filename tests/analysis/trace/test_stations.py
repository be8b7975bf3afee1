"""The walk through a forward pass: every station of models of every kind, computed again from what it let in."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from random_models import random_ids, random_model

from transformer.analysis.trace.comparison import EXACT, open_station
from transformer.analysis.trace.source import LONGEST, lines_of, snippets_of
from transformer.analysis.trace.steps import Station, missing_stations, n_layers, sites_of, stations
from transformer.analysis.trace.trace import record_pass
from transformer.decoding.greedy import greedy
from transformer.interventions import (
    AblateHeads,
    AblateResidual,
    AblateSublayer,
    DisableMask,
    EditPositions,
    MaskEntry,
    PatchActivation,
    SetAttentionRow,
    compile_interventions,
)
from transformer.model.taps import Site

KINDS = {
    "the paper's": {},
    "pre-norm": {"norm": "pre"},
    "without norm": {"norm": "none"},
    "without residuals": {"residual": False},
    "without residuals, pre-norm": {"residual": False, "norm": "pre"},
    "bare": {"residual": False, "norm": "none", "scale_scores": False, "causal_mask": False, "positions": "none"},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "alibi, unscaled": {"positions": "alibi", "scale_scores": False},
    "unscaled": {"scale_scores": False},
    "gelu, untied": {"activation": "gelu", "tie_embeddings": False, "tie_output": False, "output_bias": True},
    "one layer": {"n_encoder_layers": 1, "n_decoder_layers": 1},
}
SOURCE = 6


def walked(model, switches=()):
    """The recorded pass of a sentence that the model decoded under these switches."""
    source = random_ids(1, SOURCE)
    source[0, -1] = model.config.eos_id
    tap = compile_interventions(switches, model)
    steps = list(greedy(model, source, max_length=5, tap=tap))
    return record_pass(
        model,
        source[0].tolist(),
        [int(step.tokens[0]) for step in steps],
        switches,
        log_probs=torch.cat([step.log_probs for step in steps]).numpy(),
        source_again=source[0].tolist(),
    )


def opened(model, walk):
    """Every station of every layer."""
    for station in stations(model):
        for layer in range(n_layers(model, station.stack) if station.in_layer else 1):
            yield open_station(model, walk, station, layer)


@pytest.mark.parametrize("kind", KINDS)
def test_every_stations_equation_gives_what_the_pass_computed(kind):
    model = random_model(**KINDS[kind])
    walk = walked(model)
    for found in opened(model, walk):
        assert found.check.holds, (str(found.station), found.layer, found.check)
        assert found.check.tolerance == 0 or found.station.name not in EXACT
        assert found.comes_out and not found.switched
        for shown in (*found.comes_in, *found.comes_out):
            assert shown.values.ndim == 3 or shown.values.ndim == 2
            assert np.isfinite(shown.values).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_was_changed_is_noticed_at_the_station_that_computes_it(kind):
    model = random_model(**KINDS[kind], d_ff=8)
    walk = walked(model)
    for site, tensor in walk.offered.items():
        if site.tensor in ("residual", "input"):
            continue  # what a block hands on is compared where it was computed
        spoilt = ~tensor if tensor.dtype == torch.bool else tensor + 0.01
        other = replace(walk, offered={**walk.offered, site: spoilt})
        (own,) = (s for s in stations(model) if site in sites_of(s, site.layer or 0, model))
        assert not open_station(model, other, own, site.layer or 0).check.holds, f"nobody noticed {site}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_station_shows_a_few_lines_of_the_source(kind):
    model = random_model(**KINDS[kind])
    for station in stations(model):
        found = snippets_of(station, model)
        assert found, station
        for snippet in found:
            assert 1 <= snippet.text.count("\n") + 1 <= LONGEST, (station, snippet)
            assert snippet.file.startswith("transformer/") and snippet.text.strip()


def test_a_line_that_is_gone_is_an_error_that_names_it():
    with pytest.raises(ValueError, match=r"snippets_of has no line with 'no such line' any more"):
        lines_of(snippets_of, "no such " + "line")
    with pytest.raises(ValueError, match="after"):
        lines_of(snippets_of, "match station.name", "never " + "written")


def test_the_order_is_that_of_the_paper():
    names = [str(station) for station in stations(random_model())]
    assert names[:4] == ["encoder.ids", "encoder.embedding", "encoder.positions", "encoder.self.qkv"]
    attention = ["qkv", "products", "scaled", "masked", "weights", "context", "concat", "output", "add"]
    assert [n.split(".")[2] for n in names if n.startswith("decoder.cross")] == attention
    assert names[-2:] == ["decoder.logits", "decoder.probabilities"]
    assert len(set(names)) == len(names)


def test_parts_that_a_model_never_had_are_no_stations_and_are_named():
    bare = random_model(**KINDS["bare"])
    gone, own = set(missing_stations(bare)), set(stations(bare))
    assert not gone & own
    assert {Station("encoder", None, "positions"), Station("decoder", "cross", "scaled")} <= gone
    assert Station("encoder", "ffn", "add") in gone
    assert missing_stations(random_model()) == ()


@pytest.mark.parametrize(
    "spec",
    [
        AblateHeads("decoder", 0, "cross", (1,)),
        AblateSublayer("encoder", 1, "ffn"),
        AblateResidual("decoder", 1, "self"),
        MaskEntry("decoder", 0, "cross", 2, 1),
        SetAttentionRow("encoder", 0, "self", 1, 2, 3),
        SetAttentionRow("encoder", 0, "self", 1, 2, "uniform"),
        DisableMask("causal"),
        EditPositions("encoder", "remove"),
    ],
    ids=str,
)
def test_a_switch_is_marked_where_it_acts_and_the_equations_still_hold(spec):
    model = random_model()
    walk = walked(model, (spec,))
    marked = []
    for found in opened(model, walk):
        assert found.check.holds, (str(found.station), found.check)
        marked += [(found.layer, found.station, switched) for switched in found.switched]
    sites = spec.sites(model)
    assert len(marked) == len(sites)
    assert all(switched.spec == spec and switched.moved > 0 for _, _, switched in marked)
    assert {layer for layer, _, _ in marked} == {site.layer or 0 for site in sites}


LATER = {"lifted": ({}, (DisableMask("causal"),)), "never there": ({"causal_mask": False}, ())}


@pytest.mark.parametrize("kind", LATER)
def test_where_later_tokens_are_seen_each_steps_own_pass_has_the_numbers_of_the_decoding(kind):
    parts, switches = LATER[kind]
    model = random_model(**parts)
    source = [7, 9, 11, 2]
    steps = list(
        greedy(
            model,
            torch.tensor([source]),
            max_length=5,
            tap=compile_interventions(switches, model),
            record=lambda site: site.stack == "decoder",
        )
    )
    log_probs = torch.cat([step.log_probs for step in steps]).numpy()
    target = [int(step.tokens[0]) for step in steps]
    assert len(target) > 2
    softmax = Station("decoder", None, "probabilities")
    for index, step in enumerate(steps):
        walk = record_pass(model, source, target, switches, log_probs=log_probs, source_again=source, step=index)
        assert walk.sees_later and walk.last == index and len(walk.inputs) == index + 1
        assert step.recording is not None
        for site, decoded in step.recording.items():
            mine = walk.taken[site][-1] if site.tensor == "logits" else walk.taken[site]
            np.testing.assert_allclose(mine, decoded[0], atol=1e-6, err_msg=str(site))
        np.testing.assert_array_equal(walk.taken[Site.parse("decoder.logits")][-1], step.row_logits[0])
        assert all(found.check.holds for found in opened(model, walk))
        (shown,) = open_station(model, walk, softmax).comes_out
        assert abs(float(shown.values[index, target[index]]) - np.exp(log_probs[index, target[index]])) < 1e-6
    whole = record_pass(model, source, target, switches, log_probs=log_probs, source_again=source)
    assert len(whole.inputs) == len(target)  # nothing said: the last step's
    earlier = open_station(model, whole, softmax).comes_out[0].values[0, target[0]]
    assert abs(float(earlier) - np.exp(log_probs[0, target[0]])) > 1e-4  # why each step needs its own


def test_a_step_that_does_not_exist_has_no_pass():
    model = random_model(causal_mask=False)
    log_probs = np.zeros((2, model.config.vocab_size), np.float32)
    with pytest.raises(ValueError, match="step 2 does not exist: there are steps 0 to 1"):
        record_pass(model, [5, 2], [7, 2], log_probs=log_probs, source_again=[5, 2], step=2)


@pytest.mark.parametrize(
    "spec",
    [
        MaskEntry("decoder", 0, "cross", 2, 1),
        SetAttentionRow("decoder", 0, "self", 1, 2, "uniform"),
        EditPositions("decoder", "shift", 2),
        EditPositions("decoder", "same", tokens=(1, 3)),
        PatchActivation(Site.parse("decoder.1.cross.heads"), 1, (), "another"),
        PatchActivation(Site.parse("decoder.0.self.k"), None, ((0, 2),), "another"),
        PatchActivation(Site.parse("decoder.0.ffn.output"), None, (), "another"),
    ],
    ids=str,
)
def test_every_other_switch_leaves_one_pass_for_all_steps(spec):
    model = random_model()
    if isinstance(spec, PatchActivation):
        spec = spec.filled(model, [9, 4, 12, 2])
    walk = walked(model, (spec,))
    assert not walk.sees_later
    found = open_station(model, walk, Station("decoder", None, "probabilities"))
    assert "of all" in found.check.how and found.check.holds and found.check.tolerance <= 1e-5


@pytest.mark.parametrize("kind", KINDS)
def test_every_site_belongs_to_exactly_one_station(kind):
    model = random_model(**KINDS[kind])
    owned = [
        site
        for station in stations(model)
        for layer in range(n_layers(model, station.stack) if station.in_layer else 1)
        for site in sites_of(station, layer, model)
    ]
    assert len(owned) == len(set(owned))
    assert set(model.sites()) <= set(owned)


def test_what_does_not_exist_is_refused_in_a_sentence():
    model = random_model()
    walk = walked(model)
    with pytest.raises(ValueError, match=r"this model has no station encoder\.final"):
        open_station(model, walk, Station("encoder", None, "final"))
    with pytest.raises(ValueError, match="layer 9 does not exist: the decoder has layers 0 to 2"):
        open_station(model, walk, Station("decoder", "cross", "weights"), 9)
