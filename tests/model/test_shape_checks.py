"""The option `--check-shapes`: asserts that the checks are really on, in every process that runs tests."""

import pytest
import torch
from jaxtyping import TypeCheckError

from transformer.model.masks import padding_mask


def test_a_wrong_shape_and_a_wrong_type_are_refused(request):
    if not request.config.getoption("--check-shapes"):
        pytest.skip("shapes are not checked in this run")
    assert padding_mask(torch.ones(2, 3, dtype=torch.long), 0).all()
    for ids in (torch.ones(3, dtype=torch.long), torch.ones(2, 3)):
        with pytest.raises(TypeCheckError):
            padding_mask(ids, 0)
