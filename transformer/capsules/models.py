"""The models of a capsule: their checksums, where they are found on this machine, and how they are opened from it."""

import hashlib
import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from io import BufferedReader, BytesIO
from pathlib import Path

from transformer.capsules.contents import CapsuleError, SavedModel
from transformer.checkpoints.settings import (
    SHIPPED_FOLDER,
    WEIGHTS_FILE,
    CheckpointError,
    Found,
    list_checkpoints,
    read_settings,
)
from transformer.checkpoints.store import load_checkpoint
from transformer.lab import Lab
from transformer.runs.archive import TOKENIZER_FILES, model_members, unpack_model
from transformer.runs.untrusted_zip import ArchiveError


@dataclass(frozen=True)
class OpenedModel:
    """A model on this machine."""

    lab: Lab
    identity: SavedModel
    """Its checksums as they are here."""


def saved_model(lab: Lab) -> SavedModel:
    """Returns a model as a capsule names it; CapsuleError for a snapshot, or for weights that changed on disk."""
    checkpoint = lab.checkpoint
    if checkpoint.weights_file.name != WEIGHTS_FILE:
        raise CapsuleError(f"{lab.name} is open at an earlier step, and only its last weights can be saved")
    if not checkpoint.weights_file.is_file() or checkpoint.weights_file.stat().st_mtime_ns != checkpoint.written_ns:
        raise CapsuleError(f"{lab.name} has other weights by now: reload the page, and save again")
    shipped = checkpoint.folder.parent.resolve() == SHIPPED_FOLDER.resolve()
    return _fingerprinted(checkpoint.folder, lab.name, shipped=shipped, step=checkpoint.step)


def opened(lab: Lab) -> OpenedModel:
    """Returns a model that is here already, with its checksums."""
    return OpenedModel(lab, saved_model(lab))


def run_here(model: SavedModel, among: Iterable[Found] | None = None) -> str | None:
    """Returns the name of the run that is the same model, its own name first; None where there is none."""
    runs = [found for found in (list_checkpoints() if among is None else among) if not found.shipped]
    for found in sorted(runs, key=lambda found: found.name != model.name):
        try:
            if _fingerprinted(found.folder, model.name, shipped=False, step=0).fingerprint == model.fingerprint:
                return found.name
        except (CheckpointError, OSError):  # another model that cannot be read here is not this one
            continue
    return None


def open_model(model: SavedModel, file: BytesIO | BufferedReader) -> OpenedModel:
    """Opens the model of a capsule without making it a run here; CapsuleError where that is not possible."""
    try:
        if model.shipped:
            if not (SHIPPED_FOLDER / model.name / WEIGHTS_FILE).is_file():
                raise CapsuleError(f"this copy of Attention Lab has no shipped model {model.name!r}")
            return opened(Lab(load_checkpoint(SHIPPED_FOLDER / model.name)))
        with tempfile.TemporaryDirectory() as room:
            folder = Path(room) / model.name
            folder.mkdir()
            unpack_model(model_members(file, model.folder), folder, model.name)
            return opened(Lab(load_checkpoint(folder)))
    except (ArchiveError, CheckpointError, ValueError, RecursionError, OSError) as error:
        raise CapsuleError(f"its model {model.name} cannot be opened: {error}") from error


def _fingerprinted(folder: Path, name: str, *, shipped: bool, step: int) -> SavedModel:
    config = json.dumps(asdict(read_settings(folder).model), sort_keys=True)
    tokenizer = hashlib.sha256()
    for file in TOKENIZER_FILES:
        if (folder / file).is_file():
            tokenizer.update((folder / file).read_bytes())
    with (folder / WEIGHTS_FILE).open("rb") as file:
        weights = hashlib.file_digest(file, "sha256").hexdigest()
    return SavedModel(
        name=name,
        shipped=shipped,
        step=step,
        weights=weights,
        tokenizer=tokenizer.hexdigest(),
        config=hashlib.sha256(config.encode()).hexdigest(),
    )
