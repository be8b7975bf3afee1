"""Plans of convolutional models on the Train page."""

import pytest
from page_models import field, open_page, texts

from pages.train.plan_errors import faults
from pages.training.plans import Plan, recommended
from transformer.config import ConvolutionalConfig, ModelConfig


def test_a_plan_of_it_is_its_recipe_and_goes_there_and_back():
    plan = recommended("reverse")
    other = plan.with_family("conv")
    model, _, _ = other.configs()
    assert isinstance(model, ConvolutionalConfig) and (model.kernel, model.d_model) == (3, 64)
    assert other == recommended("reverse", "conv") and faults(other) == {}
    assert other.with_family("rnn").with_family("transformer") == plan and isinstance(plan.configs()[0], ModelConfig)


def test_a_link_carries_it():
    plan = Plan(**{**vars(recommended("sort", "conv")), "kernel": 5, "separable": True, "dilated": False})
    parameters = {name: [value] if isinstance(value, str) else value for name, value in plan.parameters().items()}
    assert Plan.read(parameters) == (plan, ())


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        ({"kernel": 4}, "kernel", "Kernel (4) must be odd: take 3 or 5"),
        ({"n_decoder_layers": 9}, "n_decoder_layers", "at most 8"),
        ({"d_model": 0}, "d_model", "at least 1"),
    ],
    ids=str,
)
def test_what_cannot_work_is_said_at_its_field(changes, name, said):
    found = faults(Plan(**{**vars(recommended("reverse", "conv")), **changes}))
    assert set(found) == {name} and said in found[name]


def test_the_page_shows_its_fields_and_no_others():
    at = open_page("train", corpus="reverse", family="conv", look="costs")
    numbers = {box.label for box in at.number_input}
    assert {"Kernel", "d_model"} <= numbers and "Heads" not in numbers
    assert {"Dilated", "Separable"} <= {toggle.label for toggle in at.toggle}
    assert not {"Cell", "Attention", "Positions"} & {box.label for box in at.selectbox}
    assert "Parameters | **" in texts(at)
    field(at.selectbox, "Model").select("rnn").run()
    assert "Cell" in {box.label for box in at.selectbox} and not at.exception
