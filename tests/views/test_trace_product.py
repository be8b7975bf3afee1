"""The matrix products of a pass, as they are drawn: factors that multiply to the recorded result."""

from dataclasses import replace

import numpy as np
import pytest

from transformer.analysis.trace.steps import steps
from transformer.interventions import parse_intervention
from transformer.lab import load
from transformer.model.transformer import Transformer
from transformer.views.trace import StepNumbers

SENTENCE = "The animal did not cross the street because it was too tired."


@pytest.fixture(scope="module")
def lab():
    return load("pronouns-en-fr")


@pytest.fixture(scope="module")
def seen(lab):
    return lab.inspect(SENTENCE)


def product(lab, seen, step, head=0):
    view = StepNumbers(step=step, layer=1, head=head)
    return view.product(view.data(lab, seen, lab.trace(seen)))


@pytest.mark.parametrize("attention", ["encoder.self", "decoder.self", "decoder.cross"])
@pytest.mark.parametrize("step", ["products", "context"])
def test_the_factors_multiply_to_what_the_pass_computed(lab, seen, attention, step):
    shown = product(lab, seen, f"{attention}.{step}", head=2)
    assert np.allclose(shown.left @ shown.right, shown.result, atol=1e-4)
    n_rows, n_columns = shown.result.shape
    assert len(shown.rows) == n_rows == len(shown.left) and shown.right.shape[1] == n_columns
    tokens = shown.columns if step == "products" else shown.inner
    assert tokens == (seen.decoder_inputs if attention == "decoder.self" else seen.source_tokens)
    assert (shown.inner if step == "products" else shown.columns) is None  # dimensions


def test_the_model_says_which_steps_are_products(lab):
    products = {str(step) for step in steps(lab.model) if step.is_product}
    attentions = ("encoder.self", "decoder.self", "decoder.cross")
    assert products == {f"{attention}.{name}" for attention in attentions for name in ("products", "context")}
    additive = Transformer(replace(lab.model.config, score="additive"))
    assert {step.name for step in steps(additive) if step.is_product} == {"context"}


def test_a_switched_head_shows_the_product_that_it_computed(lab, seen):
    off = lab.inspect(SENTENCE, interventions=[parse_intervention("off:decoder.1.cross:0")])
    shown = product(lab, off, "decoder.cross.context")
    assert np.abs(shown.result).max() > 0.1 and np.allclose(shown.left @ shown.right, shown.result, atol=1e-4)


def test_weights_go_from_0_to_1_and_other_numbers_as_far_to_both_sides(lab, seen):
    shown = product(lab, seen, "encoder.self.context")
    reach = float(np.abs(shown.right).max())
    assert shown.limits[:2] == ((0.0, 1.0), (-reach, reach))
    empty = replace(shown, result=np.zeros_like(shown.result))
    assert empty.limits[2] == (-1.0, 1.0)
