"""Tests of the bytes the Attention page sends for 6 layers x 8 heads x 128 tokens; benchmarks/ measures time."""

import json

import numpy as np
import pytest
from page_models import WAIT_S, checked, open_page, texts
from six_by_eight import N_TOKENS, NAME, SENTENCE, save_six_by_eight
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from pages.shared.components.head_grid import SIDE
from transformer.lab import load

LIMIT_BYTES = 2_000_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of runs with the model."""
    folder = tmp_path_factory.mktemp("runs")
    save_six_by_eight(folder, d_model=64)
    return folder


@pytest.fixture(autouse=True)
def models(runs, monkeypatch):
    monkeypatch.setenv("ATTENTION_LAB_RUNS", str(runs))


@pytest.fixture
def sent(monkeypatch):
    """The bytes of all messages of each run of the page, by what they hold."""
    sizes: list[dict[str, int]] = []
    messages = LocalScriptRunner.forward_msgs

    def counted(runner):
        found: dict[str, int] = {}
        for message in messages(runner):
            name = message.WhichOneof("type")
            if name == "delta" and message.delta.WhichOneof("type") == "new_element":
                name = message.delta.new_element.WhichOneof("type")
            found[name] = found.get(name, 0) + message.ByteSize()
        sizes.append(found)
        return messages(runner)

    monkeypatch.setattr(LocalScriptRunner, "forward_msgs", counted)
    return sizes


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_the_first_paint_sends_at_most_two_megabytes(sent, kind):
    at = open_page("attention", model=NAME, text=SENTENCE, kind=kind)
    data = [json.loads(element.proto.json) for element in at.get("bidi_component")]
    assert [6, 8, SIDE, SIDE] in [found["shape"] for found in data if "shape" in found]
    assert "each pixel is the largest weight in its patch" in texts(at)
    assert [N_TOKENS, N_TOKENS] in [found["shape"] for found in data if "shape" in found]
    assert sum(sent[-1].values()) <= LIMIT_BYTES, sent[-1]


@pytest.mark.parametrize(
    "parameters",
    [
        {"combine": "max", "words": "merged", "threshold": "0.01", "specials": "hidden"},
        {"show": "norms"},
        {"show": "rollout"},
        {"show": "entropy"},
        {"picture": "bertviz"},
        {"picture": "bertviz-model"},
        {"picture": "bertviz-neuron"},
    ],
)
def test_no_other_picture_sends_more(sent, parameters):
    checked(open_page("attention", model=NAME, text=SENTENCE, **parameters))
    assert sum(sent[-1].values()) <= LIMIT_BYTES, sent[-1]


def test_the_output_is_as_long_as_the_sentence():
    weights = load(NAME).inspect(SENTENCE).cross.weights
    assert weights.shape == (6, 8, N_TOKENS, N_TOKENS) and np.isfinite(weights).all()
    assert WAIT_S
