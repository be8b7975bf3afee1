"""The Train page for its tests: its fields by name, its button, and measurements that say what a test wants."""

import json
from typing import ClassVar

from page_models import checked
from page_runs import button

from pages.training.plan_text import parsed, written
from transformer.runs.benchmark import Benchmark


def opened(at, *, key="more"):
    """The page with one of its expanders opened."""
    at.session_state[f"train-{key}"] = True
    return checked(at.run())


def field(at, name):
    for kind in (at.number_input, at.text_input, at.selectbox, at.text_area, at.toggle):
        for element in kind:
            if element.key == f"train-{name}":
                return element
    raise KeyError(name)


def fill(at, name, value):
    """The page after a value was entered in a field; None empties it."""
    element = field(at, name)
    return checked(element.set_value(written(value) if element.type == "text_input" else value).run())


def shows(at, name):
    """Returns what a field shows, with numbers parsed."""
    element = field(at, name)
    return parsed(name, element.value) if element.type == "text_input" else element.value


def press_train(at):
    return checked(train_button(at).click().run())


def train_button(at):
    return button(at, "Train")


def bars(at):
    """Returns the data given to the component with the readings."""
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    return next(data for data in found if isinstance(data, dict) and "readings" in data)


class Measurements:
    """A stand-in for measuring on the server: returns what a test sets in `found`, records requests."""

    found = None
    begun: ClassVar[list] = []

    @classmethod
    def find(cls, work):
        return cls.found

    @classmethod
    def begin(cls, work, tokenizer, watcher):
        cls.begun.append(work)


MEASURED = Benchmark(
    **{"step_s": 0.03, "evaluation_s": 0.5, "snapshot_s": 0.01, "scoring_s": 2.0, "steps": 40},
    **{"n_parameters": 235_008, "device": "cpu", "precision": "float32", "threads": 2},
)


def pairs(count):
    return "".join(f"the word{i} is here\tle mot{i} est ici\tCC-BY\n" for i in range(count)).encode()
