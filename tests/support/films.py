"""The timeline of a run alone, for tests: opened by a link, with every frame computed; and what the browser gets."""

import base64
import json
from typing import Any

import numpy as np
from page_runs import PINNED
from streamlit.testing.v1 import AppTest

from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Lab
from transformer.runs import run_folder
from transformer.runs.status import run_folder as folder_of

STEPS = [0, 1, 2, 4, 8, 16, 19, 20]


TEXT = PINNED[0]


def draw(run_id: str) -> None:
    from pages.shared.url.session import enter_page
    from pages.training.timeline.panel import timeline_panel

    enter_page("Runs")
    timeline_panel(run_id)


def opened(run_id: str, **parameters: str) -> AppTest:
    """The timeline alone, opened by a link with these query parameters, with every frame computed."""
    at = AppTest.from_function(draw, args=(run_id,), default_timeout=120)
    for name, value in parameters.items():
        at.query_params[name] = value
    return whole(at.run())


def whole(at: AppTest) -> AppTest:
    """The same once nothing is left to compute."""
    for _ in range(50):
        assert not at.exception, [element.value for element in at.exception]
        if not any(button.key == "timeline-cancel" for button in at.button):
            return at
        at.run()
    raise AssertionError("the film is never whole")


def film(at: AppTest) -> dict:
    found = [json.loads(element.proto.json) for element in at.get("bidi_component") if element.proto.json]
    return next(data for data in found if "frames" in data)


def large(data: dict, index: int) -> np.ndarray:
    """The chosen head's weights in one frame, as the browser gets them."""
    sizes = [(len(frame["rows"]), len(frame["columns"])) for frame in data["frames"]]
    start = sum(rows * columns for rows, columns in sizes[:index])
    rows, columns = sizes[index]
    numbers = np.frombuffer(base64.b64decode(data["large"]), dtype=np.float32)
    return numbers[start : start + rows * columns].reshape(rows, columns)


def lab_at(run_id: str, step: int) -> Lab:
    """The model as its snapshot has it."""
    return Lab(load_checkpoint(folder_of(run_id), weights=run_folder.snapshots(run_id)[step]))


def in_url(at: AppTest, name: str) -> str:
    value = at.query_params[name]
    return value[0] if isinstance(value, list) else value


def field(at: AppTest, key: str) -> Any:
    for kind in (at.text_input, at.selectbox, at.segmented_control, at.pills, at.button):
        for element in kind:
            if element.key == key:
                return element
    raise KeyError(key)
