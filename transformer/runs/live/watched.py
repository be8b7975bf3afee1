"""The files between those who watch a run at work and its trainer: watched.json one way, live.json the other.

Whoever watches names sentences and says again every few seconds that they are still wanted; the trainer answers with
what its model writes for them, between its evaluations and out of the same weights that it trains. No torch here.
"""

import base64
import binascii
import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from transformer.checkpoints.metric_rows import is_count
from transformer.files import read_json, write_json

WATCHED_FILE, LIVE_FILE = "watched.json", "live.json"
WANTED_S = 6.0
"""The seconds for which sentences are wanted after they were last named."""
MAX_SENTENCES = 8
"""The most sentences that are followed at a time; of more, the first."""


@dataclass(frozen=True)
class LiveOutput:
    """The output for one sentence with the weights of one step, and the cross-attention of the pass that wrote it."""

    step: int
    text: str
    source: tuple[str, ...]
    tokens: tuple[str, ...]
    """The output, with its end mark if it has ended."""
    probabilities: Float[ndarray, " token"]
    ended: bool
    """False where it was cut off: an untrained model writes on and on."""
    weights: Float[ndarray, "layer head query key"]
    """Cross-attention, a row for each token; no layers where the model has none."""
    mask: Bool[ndarray, "layer query key"]


def want(folder: Path, texts: Iterable[str]) -> None:
    """Names the sentences that are watched, for WANTED_S from now."""
    write_json(folder / WATCHED_FILE, {"texts": [*texts][:MAX_SENTENCES]})


def wanted(folder: Path) -> tuple[str, ...]:
    """Returns the sentences that somebody watches now."""
    path = folder / WATCHED_FILE
    try:
        age_s = time.time() - path.stat().st_mtime
    except OSError:
        return ()
    texts = read_json(path).get("texts") if age_s < WANTED_S else None
    if not isinstance(texts, list):
        return ()
    return tuple(text for text in texts if isinstance(text, str))[:MAX_SENTENCES]


def write_outputs(folder: Path, outputs: Iterable[LiveOutput]) -> None:
    """Replaces the newest outputs."""
    write_json(folder / LIVE_FILE, {"outputs": [_packed(output) for output in outputs]})


def live_outputs(folder: Path) -> dict[str, LiveOutput]:
    """Returns the newest output for each sentence that was watched; none of those that are damaged."""
    rows, found = read_json(folder / LIVE_FILE).get("outputs"), {}
    for row in rows if isinstance(rows, list) else ():
        with contextlib.suppress(KeyError, TypeError, ValueError, binascii.Error):
            output = _unpacked(row)
            found[output.text] = output
    return found


def forget(folder: Path) -> None:
    """Removes both files: nothing is at work any more, and what visitors typed is nobody else's."""
    for name in (WATCHED_FILE, LIVE_FILE):
        with contextlib.suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def _packed(output: LiveOutput) -> dict[str, Any]:
    return {
        "step": output.step,
        "text": output.text,
        "source": output.source,
        "tokens": output.tokens,
        "probabilities": output.probabilities.tolist(),
        "ended": output.ended,
        "shape": output.weights.shape,
        "weights": _base64(output.weights.astype("<f4")),
        "mask": _base64(output.mask.astype(np.uint8)),
    }


def _unpacked(row: dict[str, Any]) -> LiveOutput:
    layers, heads, queries, keys = row["shape"]
    tokens, source = _strings(row["tokens"]), _strings(row["source"])
    probabilities = np.array(row["probabilities"], dtype=np.float64)
    if not is_count(row["step"]) or not isinstance(row["text"], str) or probabilities.shape != (len(tokens),):
        raise ValueError("it is no output")
    if layers and (queries, keys) != (len(tokens), len(source)):
        raise ValueError("its weights are not those of its tokens")
    weights = np.frombuffer(base64.b64decode(row["weights"]), "<f4").reshape(layers, heads, queries, keys)
    mask = np.frombuffer(base64.b64decode(row["mask"]), np.uint8).reshape(layers, queries, keys).astype(bool)
    return LiveOutput(row["step"], row["text"], source, tokens, probabilities, row["ended"] is True, weights, mask)


def _strings(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("not a list of strings")
    return tuple(values)


def _base64(array: ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
