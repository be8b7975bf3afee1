"""Two at once: every figure is checked and exported, whatever is on its two sides."""

import dataclasses

import numpy as np
import pytest
from page_exports import opened, with_menus
from page_models import CLASSIC, OTHER_SEED, PRONOUNS, REVERSE, WIDE, open_page, texts

from transformer.inspection.inspection import Inspection
from transformer.lab import Lab

pytestmark = pytest.mark.usefixtures("two_seeds")

SIDES = {
    "seeds": {"other": OTHER_SEED},
    "switched": {"other": OTHER_SEED, "switch": ["off:decoder.0.cross:1", "row:encoder.0.self.1:2:uniform"]},
    "without a causal mask": {"other": OTHER_SEED, "switch": "mask:causal"},
    "sentences": {"two": "sentences", "other_text": WIDE},
    "sentences of other lengths": {"two": "sentences", "other_text": "The animal crossed the street."},
    "steps": {"model": OTHER_SEED, "other": OTHER_SEED, "other_at": "10"},
    "vocabularies": {"other": REVERSE},
}
BADGES = ("output-pair", "head-pair", "head-matching")


def proved(**parameters):
    """The page with all its badges open."""
    at = open_page("compare", **{"model": PRONOUNS, "text": CLASSIC, "layer": "0", **parameters})
    return with_menus(at, *(f"{badge}-proof" for badge in BADGES))


@pytest.mark.parametrize(
    ("sides", "kind", "badges"),
    [
        ("seeds", "cross", 3),
        ("switched", "encoder_self", 3),
        ("without a causal mask", "decoder_self", 3),
        ("sentences", "decoder_self", 2),
        ("sentences of other lengths", "encoder_self", 2),
        ("steps", "cross", 3),
        ("vocabularies", "cross", 2),
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

    proved(kind="encoder_self", other=OTHER_SEED, head="1")  # what is shown is remembered honestly
    monkeypatch.setattr(Lab, "attention_on", attention_on)
    said = texts(proved(kind="encoder_self", other=OTHER_SEED, head="1")).replace("\\", "")
    assert ":red[**Each distance is the mean Jensen-Shannon distance" in said


def test_a_probability_that_is_shown_wrong_turns_its_check_red(monkeypatch):
    honest = vars(Inspection)["probabilities"].func
    monkeypatch.setattr(Inspection, "probabilities", property(lambda seen: honest(seen) * 0.9))
    said = texts(proved(other=OTHER_SEED, text="The dog did not cross the street because it was too tired."))
    assert said.count(":red[**") == 2 and "**2 of 5 checks fail.**" in said


@pytest.mark.parametrize("badge", BADGES)
def test_every_figure_can_be_exported_and_its_link_names_what_the_page_chose(badge):
    at = opened("compare", f"{badge}-export", kind="cross", **SIDES["seeds"])
    (link,) = (block.value for block in at.code if block.value.startswith("http"))
    assert "other=" in link
