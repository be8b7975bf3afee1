"""A model in double precision, for checks and references."""

from collections import OrderedDict
from copy import deepcopy
from typing import TypeVar

from torch import nn

Model = TypeVar("Model", bound=nn.Module)


def in_double(model: Model) -> Model:
    """Returns a copy of a model in double precision.

    The copy shares the settings and the empty tables of hooks: to copy these one by one takes most of deepcopy's time,
    and nothing here registers a hook (tests/test_architecture.py).
    """
    parts = [part for module in model.modules() for part in vars(module).values()]
    shared = {id(part): part for part in parts if isinstance(part, OrderedDict) and not part}
    if config := getattr(model, "config", None):
        shared[id(config)] = config
    return deepcopy(model, shared).double()
