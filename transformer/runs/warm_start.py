"""Warm starts: a run that begins with the weights of another run or shipped model.

The weights are copied into the new run's folder when it is made, so that it does not matter what becomes of the other.
No torch here: making a run must be quick. Shapes are compared once more when the trainer loads them (state.py).
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.checkpoints.settings import (
    START_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    Parent,
    Settings,
    find_checkpoint,
    read_settings,
    step_in,
)
from transformer.config import AnyModelConfig
from transformer.runs.status import RunError, check_own
from transformer.text.tokenizer import Tokenizer, TokenizerError, load_tokenizer

_OF_ALL = ("vocab_size", "d_model", "n_encoder_layers", "n_decoder_layers", "tie_embeddings", "tie_output")
MUST_MATCH = {
    "transformer": (*_OF_ALL, "n_heads", "d_ff", "norm", "positions", "score"),
    "conv": (*_OF_ALL, "kernel", "dilated", "separable"),
    "rnn": (*_OF_ALL, "cell", "bidirectional", "attention", "input_feeding"),
}
"""Settings of a model that its weights depend on, by family."""
_LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class Start:
    """Weights to begin with, and what they belong to."""

    weights: Path
    settings: Settings
    """The settings of the model that they were taken from."""
    parent: Parent

    def copy_to(self, folder: Path) -> Parent:
        """Copies the weights into a run's folder; returns the parent with the step that the copy stands at."""
        copy = folder / START_FILE
        shutil.copyfile(self.weights, copy)
        return Parent(run=self.parent.run, step=self.parent.step if self.is_own else step_of(copy))

    @property
    def is_own(self) -> bool:
        """Tells whether these are the weights that the run began with, not those that it has by now."""
        return self.weights.name == START_FILE


def start_of(name: str) -> Start:
    """The weights that a run or shipped model has by now; RunError where there are none to begin with, or it is
    somebody else's."""
    try:
        folder = find_checkpoint(name, folders=False)
        settings = read_settings(folder)
    except CheckpointError as error:
        raise RunError(f"this run cannot begin with the weights of {name!r}: {error}") from error
    check_own(folder, "continue it")
    weights = folder / WEIGHTS_FILE
    if not weights.is_file():
        raise RunError(f"{name} has no weights yet to begin with: let it train for a moment first")
    return Start(weights, settings, Parent(run=folder.name, step=step_of(weights)))


def same_start(folder: Path, settings: Settings) -> Start | None:
    """The weights that a run began with, to train it again; None where they were random. RunError where they are gone,
    or the run is somebody else's."""
    check_own(folder, "train it again")
    if settings.parent is None:
        return None
    if not (folder / START_FILE).is_file():
        raise RunError(
            f"{folder.name} began with the weights of {settings.parent.run}, which did not come with it: continue from "
            "another model, or train anew"
        )
    return Start(folder / START_FILE, settings, settings.parent)


def check_start(start: Start, model: AnyModelConfig, tokenizer: Tokenizer) -> None:
    """RunError naming the settings or the vocabulary that do not fit these weights."""
    theirs, name = start.settings.model, start.parent.run
    needed = (*MUST_MATCH[model.family], *(("max_length",) if theirs.positions == "learned" else ()))
    if theirs.family != model.family:
        needed = ("family",)
    apart = [item for item in needed if getattr(theirs, item) != getattr(model, item)]
    if apart:
        both = ", ".join(f"{item} {getattr(theirs, item)} there and {getattr(model, item)} here" for item in apart)
        raise RunError(f"the weights of {name} do not fit: {both}; take the sizes of {name}, or begin anew")
    try:
        known = load_tokenizer(start.weights.parent)
    except TokenizerError as error:
        raise RunError(f"this run cannot begin with the weights of {name}: {error}") from error
    if (strange := _first_strange(_pieces(known), _pieces(tokenizer))) is not None:
        raise RunError(
            f"the weights of {name} belong to another vocabulary (token {strange[0]} is {strange[1]!r} there and "
            f"{strange[2]!r} here): take the corpus and tokenizer of {name}, or begin anew"
        )


def step_of(weights: Path) -> int:
    """The step noted in a safetensors file; 0 where it notes none. RunError where it is none."""
    return step_in(notes_of(weights))


def notes_of(weights: Path) -> dict[str, Any]:
    """The notes in a safetensors file, read without its tensors: eight bytes of length, then JSON."""
    try:
        with weights.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, _LONGEST_HEADER)))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{weights} is damaged or no safetensors file: {error}") from error
    notes = header.get("__metadata__") if isinstance(header, dict) else None
    return notes if isinstance(notes, dict) else {}


def _pieces(tokenizer: Tokenizer) -> list[str]:
    return [tokenizer.piece(token) for token in range(tokenizer.vocab_size)]


def _first_strange(theirs: Sequence[str], ours: Sequence[str]) -> tuple[int, str, str] | None:
    pairs = enumerate(zip(theirs, ours, strict=True))  # vocab_size was compared before
    return next(((token, there, here) for token, (there, here) in pairs if there != here), None)
