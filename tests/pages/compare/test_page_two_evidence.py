"""Two at once: every figure is proved and taken away, whatever stands on its two sides."""

import dataclasses

import numpy as np
import pytest
from page_exports import figures, opened, run_lines, same_figure
from page_models import CLASSIC, OTHER_SEED, PRONOUNS, REVERSE, WIDE, checked, open_page, texts

from transformer.inspection.inspection import Inspection
from transformer.lab import Lab

pytestmark = [pytest.mark.slow_variants, pytest.mark.usefixtures("two_seeds")]

SIDES = {
    "seeds": {"other": OTHER_SEED},
    "switched": {"other": OTHER_SEED, "switch": ["off:decoder.0.cross:1", "row:encoder.0.self.1:2:uniform"]},
    "without a causal mask": {"other": OTHER_SEED, "switch": "mask:causal"},
    "sentences": {"two": "sentences", "other_text": WIDE},
    "sentences of other lengths": {"two": "sentences", "other_text": "The animal crossed the street."},
    "steps": {"model": OTHER_SEED, "other": OTHER_SEED, "other_at": "10"},
    "vocabularies": {"other": REVERSE},
}


def proved(**parameters):
    """The page with all its badges open."""
    at = open_page("compare", **{"model": PRONOUNS, "text": CLASSIC, "layer": "0", **parameters})
    for badge in ("outputs", "left", "right", "difference", "matching"):
        at.session_state[f"proof-two-{badge}"] = True
    return checked(at.run())


@pytest.mark.parametrize(
    ("sides", "kind", "badges"),
    [
        ("seeds", "cross", 5),
        ("switched", "encoder_self", 5),
        ("without a causal mask", "decoder_self", 5),
        ("sentences", "decoder_self", 4),
        ("sentences of other lengths", "encoder_self", 4),
        ("steps", "cross", 5),
        ("vocabularies", "cross", 3),
    ],
)
def test_every_badge_opens_checks_that_hold(sides, kind, badges):
    said = texts(proved(kind=kind, **SIDES[sides]))
    assert said.count(":red[:material/close:]") == 0, said
    assert said.count("run just now:") == badges, said


def test_a_corrupted_side_turns_the_checks_red(monkeypatch):
    honest = Lab.attention_on

    def attention_on(self, *args):
        found = dict(honest(self, *args))
        weights = found["encoder_self"].weights.copy()
        weights[0, 1] = np.roll(weights[0, 1], 1, axis=-1)
        found["encoder_self"] = dataclasses.replace(found["encoder_self"], weights=weights)
        return found

    proved(kind="encoder_self", other=OTHER_SEED, head="1")  # what is drawn is remembered honestly
    monkeypatch.setattr(Lab, "attention_on", attention_on)
    said = texts(proved(kind="encoder_self", other=OTHER_SEED, head="1")).replace("\\", "")
    assert ":red[**Each distance is the mean Jensen-Shannon distance" in said


def test_a_probability_that_is_drawn_wrong_turns_its_check_red(monkeypatch):
    honest = vars(Inspection)["probabilities"].func
    monkeypatch.setattr(Inspection, "probabilities", property(lambda seen: honest(seen) * 0.9))
    said = texts(proved(other=OTHER_SEED))
    assert said.count(":red[**") == 2 and "**2 of 3 checks fail.**" in said


@pytest.mark.parametrize(
    ("sides", "figure"),
    [
        ("seeds", "outputs"),
        ("seeds", "right"),
        ("seeds", "difference"),
        ("switched", "matching"),
        ("sentences", "left"),
        ("sentences", "difference"),
        ("steps", "difference"),
    ],
)
def test_the_lines_of_python_make_the_figure_on_the_page(sides, figure):
    key = f"take-two-{figure}"
    made = same_figure(opened("compare", key, layer="0", head="1", kind="cross", **SIDES[sides]))
    assert all(np.asarray(numbers).size for numbers in made["numbers"])


def test_outputs_that_differ_are_framed():
    at = opened("compare", "take-two-outputs", **SIDES["seeds"])
    (shown,) = (f for f in figures(at) if f["layout"].get("paper_bgcolor", "").startswith("#"))
    seen, other = run_lines(at)["tokens"]
    assert len(shown["layout"].get("shapes", [])) >= (seen != other)


def test_the_link_names_what_the_page_chose_itself():
    at = opened("compare", "take-two-left")
    (link,) = (sublayer.value for sublayer in at.code if sublayer.value.startswith("http"))
    assert "/two-at-once?" in link and "other=" in link
