"""Results that are computed once and shared by all visitors: `cached`, a decorator for plain functions.

    @cached(max_entries=64, spinner="Searching")
    def get_search(lab: Lab, text: str, switches: Sequence[Intervention], *, size: int) -> SearchTree:
        ...

A function is called with the objects that it needs; what tells one call from another is found here. A model is known by
its name, its weights file and the time that file had when it was read: other weights under the same name are another
model, and a snapshot is never taken for the weights at the end. A switch is known by its URL form. A decoding is known
by what it was made from and by the probabilities that came out.

A parameter whose name begins with an underscore is not looked at. No result of a call that raised is kept. All results
together are held within a number of bytes: see serving/held.py.
"""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import wraps
from hashlib import blake2b
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import streamlit as st

from pages.shared.serving.held import Held
from pages.shared.serving.machine import cache_bytes
from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.reach.vector_probe import VectorProbe
from transformer.analysis.steps.search_tree import SearchTree
from transformer.analysis.trace.trace import Trace
from transformer.checkpoints.settings import METRICS_FILE, WEIGHTS_FILE
from transformer.experiments.plan import Study
from transformer.experiments.results import Results
from transformer.files import runs_folder
from transformer.inspection.inspection import Inspection
from transformer.interventions import INTERVENTIONS
from transformer.lab import Lab
from transformer.runs.status import STATUS_FILE
from transformer.views.training.timeline import DecodedSnapshot

Given = ParamSpec("Given")
Result = TypeVar("Result")

RESULTS = Held(cache_bytes())
"""The results of all decorated functions."""


def lab_key(lab: Lab) -> tuple[str, str, int]:
    """Returns a key that tells a model from others, from other weights under its name and from its snapshots."""
    return lab.name, str(lab.checkpoint.weights_file), lab.checkpoint.written_ns


def inspection_key(seen: Inspection) -> tuple[object, ...]:
    """Returns a key for a decoding: its inputs and every probability that came out."""
    made_from = seen.model_name, seen.text, tuple(map(str, seen.interventions)), seen.forced
    return *made_from, seen.source_ids, seen.target_ids, seen.digest


def search_key(tree: SearchTree) -> tuple[object, ...]:
    """Returns a key for a beam search: its settings and every node, of which there may be a thousand."""
    found = tuple((node.token, node.log_prob) for node in tree.nodes)
    return tree.size, tree.alpha, tree.norm, tree.early_stopping, found


def study_key(study: Study) -> tuple[object, ...]:
    """Returns a key for a study: all that its file holds, and what its runs in progress have written."""
    folders = (runs_folder() / run.id for run in study.runs if run.state == "running" and run.id)
    return study.name, blake2b(repr(study).encode()).digest(), tuple(map(folder_key, folders))


def folder_key(folder: Path) -> tuple[object, ...]:
    """Returns a key for a run's folder: its path and the times of the files that a run at work writes to."""
    paths = (folder / name for name in (METRICS_FILE, STATUS_FILE, WEIGHTS_FILE))
    return str(folder), tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in paths)


def snapshot_key(snapshot: DecodedSnapshot) -> tuple[object, ...]:
    """Returns a key for a sentence at one step of a training."""
    return str(snapshot.run), snapshot.weights, snapshot.written_ns, snapshot.text, snapshot.forced


KEYS: dict[str | type, Callable[[Any], object]] = {
    Lab: lab_key,
    Inspection: inspection_key,
    PairSample: lambda sample: sample.digest,
    DecodedSnapshot: snapshot_key,
    Trace: lambda trace: trace.digest,
    VectorProbe: lambda found: found.digest,
    type(Path()): folder_key,
    Study: study_key,
    Results: lambda results: results.digest,
    SearchTree: search_key,
    **dict.fromkeys(INTERVENTIONS, str),
}
"""The keys of objects that are not told apart by all their fields."""


def cached(
    *, max_entries: int, spinner: str = "", shared: bool = False, also: Callable[..., object] | None = None
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Remembers the results of a function for every visitor, the newest `max_entries` of them.

    A caller gets a copy of its own; with `shared` all get the same object, which is then read-only. `also` is called
    with the same arguments and says what else the result depends on, as the time of a file does.
    """

    def decorate(compute: Callable[Given, Result]) -> Callable[Given, Result]:
        shape = signature(compute)
        function = compute.__module__, compute.__qualname__, compute.__code__

        @wraps(compute)
        def found(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            given = shape.bind(*args, **kwargs)
            given.apply_defaults()
            values = [value for name, value in given.arguments.items() if not name.startswith("_")]
            key = repr(key_of((values, also(*args, **kwargs) if also else None)))

            def make() -> Result:
                with st.spinner(spinner) if spinner else nullcontext():
                    return compute(*args, **kwargs)

            result = cast(Result, RESULTS.get(function, key, make, max_entries))
            return result if shared else deepcopy(result)

        return found

    return decorate


def key_of(value: object) -> object:
    """Returns plain values, with an exact `repr`, that tell an object from others; TypeError for an unknown kind."""
    if own := KEYS.get(type(value)):
        return own(value)
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(key_of, value))
    if isinstance(value, Mapping):
        return tuple((key_of(name), key_of(held)) for name, held in value.items())
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, blake2b(value.tobytes()).digest()
    if is_dataclass(value):
        return type(value).__qualname__, *(key_of(getattr(value, field.name)) for field in fields(value))
    raise TypeError(f"{type(value).__name__} has no key: add one to KEYS in {__name__}")
