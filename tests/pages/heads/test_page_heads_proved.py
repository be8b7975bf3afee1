"""Every figure of the Heads page has its badge, red where a number is wrong, and lines of Python that make it again."""

import json
from dataclasses import replace

import numpy as np
import pytest
from page_checks import proved, verdicts
from page_models import PRONOUNS, REVERSE, texts
from test_page_exports import drawn, figures, opened, run_lines

from transformer.analysis.heads import ablation_checks, survey_checks

pytestmark = pytest.mark.slow_variants


@pytest.fixture(autouse=True)
def few(heads_awaited, monkeypatch):
    """Few numbers are proved."""
    monkeypatch.setattr(ablation_checks, "MOST_HEADS", 4)
    monkeypatch.setattr(survey_checks, "LOOPED", 4)


FEW = {"model": REVERSE, "pairs": "50", "text": "a b c d"}
WORTH = ("proof-heads-worth", "proof-heads-ranking", "proof-heads-profile", "proof-heads-table")
SECTIONS = [
    (("proof-heads-map", "proof-heads-profile", "proof-heads-table"), {}, 6),
    (("proof-heads-map", "proof-heads-table"), {"measure": "peak", "colour": "alignment", "data": "own"}, 4),
    (("proof-heads-alike",), {"section": "alike", "heads": "cross"}, 3),
    (WORTH, {"section": "worth", "switch": "off:decoder.0.cross:1"}, 4 + 1 + 2 + 2),
    (WORTH[:2], {"section": "worth", "removal": "mean", "switch": "mean:decoder.0.self:0"}, 4 + 1),
    (WORTH[:2], {"section": "worth", "worth": "loss"}, 4 + 2),
    (WORTH[:2], {"section": "worth", "worth": "exact_match", "removal": "mean"}, 4 + 2),
    (("proof-heads-set",), {"section": "smallest", "goal": "any"}, None),
    (("proof-heads-set",), {"section": "smallest", "goal": "token", "step": "0", "exact": "1", "most": "1"}, None),
    (("proof-heads-erasure", "proof-heads-dots", "proof-heads-table"), {"section": "evidence"}, 1 + 2 + 3),
    (("proof-heads-erasure",), {"section": "evidence", "erase": "cross", "switch": "mask:causal"}, 1),
]


@pytest.mark.parametrize(("badges", "parameters", "count"), SECTIONS, ids=str)
def test_every_badge_opens_checks_that_hold(badges, parameters, count):
    at = proved("heads", *badges, **{**FEW, **parameters})
    holding, failing = verdicts(at)
    assert failing == 0, texts(at)
    assert holding > 0 if count is None else holding == count, texts(at)
    assert texts(at).count("run just now:") == len(badges)


def broken(monkeypatch, where, **changes):
    """The page's function gives an answer in which something was changed."""
    module, name = where.rsplit(".", 1)
    honest = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(where, lambda *a, **b: changes["by"](honest(*a, **b)))


def off_by(values, place=0):
    values = values.copy()
    values.flat[place] += 0.05
    return values


def of_first(field):
    def change(found):
        first = found.profiles[0]
        wrong = replace(first, weight={**first.weight, field: first.weight[field] + 0.05})
        return replace(found, profiles=(wrong, *found.profiles[1:]))

    return change


def wrong_loss(found):
    first = found.heads[0]
    wrong = replace(first, loss=replace(first.loss, value=first.loss.value + 1))
    return replace(found, heads=(wrong, *found.heads[1:]))


BROKEN = [
    ("head_roles.survey", of_first("previous"), {"colour": "previous"}, "proof-heads-map", 1),
    (
        "head_roles.survey",
        lambda found: replace(found, distances={k: off_by(v, 1) for k, v in found.distances.items()}),
        {"section": "alike", "heads": "cross"},
        "proof-heads-alike",
        1,
    ),
    (
        "head_worth.output_effects",
        lambda found: (replace(found[0], log_prob=found[0].log_prob + 0.05), *found[1:]),
        {"section": "worth"},
        "proof-heads-worth",
        1,
    ),
    (
        "head_worth.validation_importance",
        wrong_loss,
        {"section": "worth", "worth": "loss", "kind": "encoder_self", "layer": "0", "head": "0"},
        "proof-heads-worth",
        1,
    ),
    ("head_worth.validation_importance", wrong_loss, {"section": "worth", "worth": "loss"}, "proof-heads-ranking", 1),
    (
        "head_search.minimal_set",
        lambda found: replace(found, sets=(replace(found.sets[0], written=(7, 7)), *found.sets[1:])),
        {"section": "smallest", "goal": "any"},
        "proof-heads-set",
        1,
    ),
    ("head_evidence.erasure", off_by, {"section": "evidence"}, "proof-heads-erasure", 1),
    (
        "head_evidence.agreement",
        lambda found: replace(found, per_token=found.per_token + 0.05),
        {"section": "evidence"},
        "proof-heads-dots",
        1,
    ),
    ("head_evidence.received", lambda rho: rho + 0.05, {"section": "evidence"}, "proof-heads-table", 1),
]


@pytest.mark.parametrize(("where", "by", "parameters", "badge", "count"), BROKEN)
def test_a_number_that_is_wrong_turns_its_badge_red(where, by, parameters, badge, count, monkeypatch, request):
    broken(monkeypatch, f"pages.shared.{where}", by=by)
    text = f"e f g {'abcdhijkl'[BROKEN.index((where, by, parameters, badge, count))]}"  # nothing of it is remembered
    pairs = {"data": "own", "lines": f"{text}\na b\nc d e"}
    at = proved("heads", badge, **{**FEW, "text": text, **pairs, **parameters})
    assert verdicts(at)[1] == count, texts(at)
    assert ":red[:material/error: **" in texts(at)


def same(at) -> None:
    """The lines make the numbers and the figure that the page offers."""
    made = run_lines(at)
    (shown,) = (f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    own = json.loads(made["figure"].to_json())
    for mine, theirs in zip(drawn(own), drawn(shown), strict=True):
        assert np.array_equal(mine.astype(np.float32), theirs.astype(np.float32), equal_nan=True)
    for mine, theirs in zip(own["data"], shown["data"], strict=True):
        assert mine["type"] == theirs["type"] and mine.get("x") == theirs.get("x")
        assert mine.get("error_x", {}).get("array") == theirs.get("error_x", {}).get("array")
        assert mine["type"] == "heatmap" or mine.get("y") == theirs.get("y")
    assert np.asarray(made["numbers"], dtype=float).size > 0


OTHER = {"section": "worth", "data": "own"}
AWAY = [
    ({"colour": "alignment"}, "Map"),
    ({"colour": "error_rate", "data": "own", "model": PRONOUNS, "text": "The cat slept."}, "Map"),
    ({"measure": "peak", "kind": "cross", "head": "2"}, "The head in hand"),
    ({"section": "alike", "heads": "decoder_self", "closest": "0.7"}, None),
    ({"section": "worth", "switch": "mean:encoder.0.self:1"}, "Map"),
    ({"section": "worth", "removal": "mean"}, "Ranking"),
    ({**OTHER, "worth": "loss"}, "Ranking"),
    ({**OTHER, "worth": "exact_match", "removal": "mean"}, "Map"),
    ({**OTHER}, "Mean attention"),
    ({"section": "smallest", "goal": "any", "heads": "cross", "switch": "off:decoder.0.cross:1"}, None),
    ({"section": "smallest", "goal": "token", "step": "0", "into": "2", "exact": "1", "most": "1"}, None),
    ({"section": "evidence", "erase": "cross"}, "Effects"),
    ({"section": "evidence", "kind": "cross", "head": "3"}, "Weight against effect"),
]


@pytest.mark.parametrize(("parameters", "which"), AWAY, ids=str)
def test_the_lines_of_python_make_the_figure(parameters, which):
    at = opened("heads", "take-heads", **{**FEW, **parameters})
    if which is not None:
        at.segmented_control(key="take-heads-which").set_value(which)
        at.session_state["take-heads"] = True
        at.run()
    same(at)
