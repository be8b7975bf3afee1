"""Archives damaged by chance: either it is noticed, in a sentence, or what came in can be listed, loaded and drawn."""

import json

import pytest
from archives import contents, loaded, repacked
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from transformer.checkpoints.store import load_checkpoint
from transformer.lab import load
from transformer.runs import run_folder
from transformer.runs.status import RunError
from transformer.runs.status import run_folder as folder_of

pytestmark = pytest.mark.usefixtures("only_the_origin")


@examples(max_examples=60)
@given(data=st.data())
def test_no_damage_of_bytes_does_more_than_be_refused(packed, data):
    """Either the damage is noticed, in a sentence, or it touched nothing of the model."""
    raw = bytearray(packed)
    match data.draw(st.sampled_from(["flip", "cut", "grow", "swap"])):
        case "flip":
            for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4)):
                raw[place] = data.draw(st.integers(0, 255))
        case "cut":
            raw = raw[: data.draw(st.integers(0, len(raw) - 1))]
        case "grow":
            raw += data.draw(st.binary(min_size=1, max_size=64))
        case "swap":
            place, other = (data.draw(st.integers(0, len(raw) - 65)) for _ in range(2))
            raw[place : place + 64] = raw[other : other + 64]
    try:
        run_id = loaded(bytes(raw))
    except RunError as error:
        assert "\n" not in str(error)
    else:
        assert load_checkpoint(folder_of(run_id)).model is not None
        run_folder.delete(run_id)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@examples(max_examples=60)
@given(data=st.data())
def test_no_value_in_a_config_or_history_does_more_than_be_refused(packed, data):
    """What is let in can be listed, loaded and drawn."""
    file = data.draw(st.sampled_from(["config.json", "metrics.jsonl", "samples.jsonl", "about.json"]))
    lines = contents(packed)[file].decode().splitlines() if file.endswith("l") else [contents(packed)[file].decode()]
    index = data.draw(st.integers(0, len(lines) - 1))
    content = json.loads(lines[index])
    inside = (
        content[data.draw(st.sampled_from(["model", "train", "corpus", "resolved"]))] if "model" in content else content
    )
    target = data.draw(st.sampled_from([content, inside]))
    target[data.draw(st.sampled_from(sorted(target)))] = data.draw(JSON)
    lines[index] = json.dumps(content)
    changed = repacked(packed, {file: ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")})
    try:
        run_id = loaded(changed)
    except RunError as error:
        assert "\n" not in str(error)
    else:
        (run,) = (run for run in run_folder.list_runs() if run.id == run_id)
        assert sorted(run_folder.metrics(run_id), key=lambda row: row["step"]) and run.loadable
        run_folder.samples(run_id)
        load(run_id).inspect("a")
        run_folder.delete(run_id)
