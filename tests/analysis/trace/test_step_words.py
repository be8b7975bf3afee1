"""The words and the places on the map of every step, for models of every kind."""

from itertools import pairwise

import pytest
from random_models import random_model

from transformer.analysis.trace.diagram import draw_map
from transformer.analysis.trace.steps import find_step, steps
from transformer.figures.trace.diagram import WIDTH

KINDS = {
    "paper": {},
    "pre": {"norm": "pre", "positions": "rotary", "activation": "gelu"},
    "alibi": {"positions": "alibi", "norm": "pre", "residual": False},
    "windowed": {"window": 2},
    "bare": {"causal_mask": False, "scale_scores": False, "residual": False, "norm": "none", "positions": "none"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_has_its_words_and_its_place_on_the_map(kind):
    model = random_model(**KINDS[kind])
    order = steps(model)
    for chosen in order:
        words = chosen.words()
        assert words.title and words.says and words.equation.count("{") == words.equation.count("}") and words.paper
        drawing = draw_map(model, chosen).data()
        (box,) = (box for box in drawing["boxes"] if box["chosen"])
        assert box["step"] == str(chosen) and box["label"] == chosen.label.replace("All layers", box["label"])
        for box in drawing["boxes"]:
            assert box["x"] >= 0 and box["x"] + box["w"] <= WIDTH
            assert box["y"] >= 0 and box["y"] + box["h"] <= drawing["height"]
        assert {box["step"] for box in drawing["boxes"] if box["step"]} <= set(map(str, order))


def test_the_words_name_no_part_that_the_model_has_not():
    def of(name, **parts):
        model = random_model(**parts)
        return find_step(model, name).words()

    embedding, context = "encoder.embedding", "encoder.self.context"
    assert "positions do not swamp" in of(embedding).says
    assert "positions" not in of(embedding, positions="rotary").says
    assert "m_h" in of(context, positions="alibi").equation and "m_h" not in of(context).equation
    assert "m_h" not in of("decoder.cross.context", positions="alibi").equation
    lone = {"norm": "pre", "residual": False}
    assert "nothing goes around it" in of("encoder.ffn.norm", **lone).says
    assert "to add" not in of("encoder.ffn.output", **lone).says
    for name in ("qkv", "concat"):
        assert "1 heads" not in of(f"encoder.self.{name}", n_heads=1).says
    assert "all 0 where nothing may be seen" in of("decoder.cross.weights").says
    for stack in ("encoder", "decoder"):
        near = of(f"{stack}.self.masked", window=2)
        assert "more than 2 places away" in near.says and "every entry stays open" not in near.says
        assert "section 4" in near.paper and "places away" not in of(f"{stack}.self.masked").says
    assert "places away" not in of("decoder.cross.masked", window=2).says


def test_boxes_of_one_stack_never_overlap():
    model = random_model(norm="pre", positions="alibi")
    order = steps(model)
    for chosen in order:
        drawing = draw_map(model, chosen).data()
        for left in (True, False):
            column = sorted((b["y"], b["h"]) for b in drawing["boxes"] if (b["x"] < WIDTH / 2) == left)
            assert all(y + h <= below for (y, h), (below, _) in pairwise(column)), str(chosen)


def test_a_model_without_scaling_shows_the_gap():
    model = random_model(scale_scores=False)
    chosen = find_step(model, "decoder.cross.products")
    drawing = draw_map(model, chosen)
    assert "no ÷ √dₖ" in [box.label for box in drawing.boxes if box.ghost]
