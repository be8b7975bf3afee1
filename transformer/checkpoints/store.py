"""Models on disk: config.json, tokenizer, weights as safetensors. No pickle anywhere; nothing is seen half-written.

A shipped checkpoint and a run are the same kind of folder, and load the same way.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from typing_extensions import TypeVar

from transformer.checkpoints.metric_rows import metric_rows
from transformer.checkpoints.settings import (
    CARD_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    SAMPLES_FILE,
    WEIGHTS_FILE,
    CheckpointError,
    Found,
    Settings,
    find_checkpoint,
    list_checkpoints,
    pickle_note,
    read_settings,
    step_in,
    write_settings,
)
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.files import last_of, new_folder, replacing
from transformer.model.families import AnyModel, build_model
from transformer.model.seq2seq import Seq2Seq
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer, TokenizerError, load_tokenizer
from transformer.training.state import Weights, check_values, check_weights, load_weights

POSITIONS_FILE = "positions.safetensors"
"""The learned position tables on the way, where they are learned; written by position_history.py."""
_PROBED_TOKENS = 8

__all__ = [
    "POSITIONS_FILE",
    "Checkpoint",
    "CheckpointError",
    "Found",
    "export_checkpoint",
    "find_checkpoint",
    "list_checkpoints",
    "load_checkpoint",
    "load_tensors",
    "save_checkpoint",
    "save_tensors",
]


Model = TypeVar("Model", bound=Seq2Seq, default=Transformer)
"""The family of a model: a Transformer where nothing else is said."""


@dataclass(frozen=True)
class Checkpoint(Generic[Model]):
    """A model with everything that belongs to it. Shared by readers: change nothing in it."""

    name: str
    folder: Path
    settings: Settings
    model: Model
    """The model in eval mode, float32, on the CPU."""
    tokenizer: Tokenizer
    step: int
    """The training step at which the weights stood."""
    card: str
    """CARD.md; empty while a run is going on."""
    weights_file: Path
    """The file of the weights: the folder's, or a snapshot's."""
    written_ns: int
    """The time at which that file was last written before it was read, in nanoseconds."""

    @property
    def model_config(self) -> AnyModelConfig:
        return self.settings.model

    @property
    def train_config(self) -> TrainConfig:
        return self.settings.train

    @property
    def corpus_config(self) -> CorpusConfig:
        return self.settings.corpus


def load_checkpoint(folder: Path, *, weights: Path | None = None) -> Checkpoint:
    """The model in a folder, with the folder's weights or those of another file of the same run (a snapshot).

    Raises CheckpointError naming what is missing, damaged, foreign or contradictory.
    """
    settings = read_settings(folder)
    try:
        tokenizer = load_tokenizer(folder)
    except TokenizerError as error:
        raise CheckpointError(str(error)) from error
    if tokenizer.vocab_size != settings.model.vocab_size:
        raise CheckpointError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} entries and the model {settings.model.vocab_size}"
        )
    path = weights or folder / WEIGHTS_FILE
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {path.name} yet{pickle_note(folder)}")
    written_ns = path.stat().st_mtime_ns  # before reading: a file replaced meanwhile counts as another one
    tensors, notes = load_tensors(path)
    model = _with_weights(settings.model, tensors, path)
    card = folder / CARD_FILE
    found = Checkpoint(
        name=folder.resolve().name,
        folder=folder,
        settings=settings,
        model=model,
        tokenizer=tokenizer,
        step=step_in(notes),
        card=card.read_text(encoding="utf-8", errors="replace") if card.is_file() else "",
        weights_file=path.resolve(),
        written_ns=written_ns,
    )
    return cast(Checkpoint, found)  # of any family: who takes a Transformer apart asks whether it is one


def history(folder: Path) -> list[dict]:
    """The rows of a folder's metrics.jsonl; of a step that was done twice (after a resume) the later one."""
    return last_of(metric_rows(folder), lambda row: (row["split"], row["step"]))


def save_checkpoint(
    folder: Path, settings: Settings, tokenizer: Tokenizer, weights: Weights, *, step: int = 0, card: str = ""
) -> None:
    """Writes a new checkpoint folder, whole or not at all; FileExistsError where the folder is already there."""
    with new_folder(folder) as temporary:
        write_settings(temporary, settings)
        tokenizer.save(temporary)
        save_tensors(temporary / WEIGHTS_FILE, weights, {"step": str(step)})
        (temporary / CARD_FILE).write_text(card, encoding="utf-8")


def export_checkpoint(run: Path, folder: Path) -> None:
    """Copies what makes a checkpoint of a run into a new folder, under that folder's name: no state, and of snapshots
    the learned positions alone.

    CheckpointError where the run is no loadable model, FileExistsError where the folder is already there.
    """
    checkpoint = load_checkpoint(run)
    with new_folder(folder) as temporary:
        kept = {CONFIG_FILE, WEIGHTS_FILE, METRICS_FILE, SAMPLES_FILE, CARD_FILE, POSITIONS_FILE}
        for path in run.iterdir():
            if path.name in kept or path.name.startswith("tokenizer."):
                shutil.copyfile(path, temporary / path.name)
        write_settings(temporary, replace(checkpoint.settings, name=folder.name))


def save_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str]) -> None:
    """Writes tensors and text notes as one safetensors file, atomically: notes never stand beside other tensors."""
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata=notes)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and notes of a safetensors file; CheckpointError where it is missing or damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    except FileNotFoundError:
        raise CheckpointError(f"there is no {path}") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged or no safetensors file: {error}") from error


def _with_weights(config: AnyModelConfig, weights: Weights, path: Path) -> AnyModel:
    try:
        check_values(weights)
        model = _built(config, weights).eval().requires_grad_(False)
        load_weights(model, weights)
        _check_outputs(model)
    except (ValueError, RuntimeError, MemoryError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    return model


def _built(config: AnyModelConfig, weights: Weights) -> AnyModel:
    """The model before its weights are filled in; ValueError where there is no room for it since they do not fit."""
    try:
        with _NothingDrawn():
            return build_model(config)
    except (RuntimeError, MemoryError):
        with torch.device("meta"):  # takes no room, and a second when it is first used
            check_weights(build_model(config), weights)
        raise


def _check_outputs(model: AnyModel) -> None:
    """ValueError where a short pass overflows: weights that are each in order can be too large for one another."""
    config = model.config
    ids = torch.linspace(0, config.vocab_size - 1, min(_PROBED_TOKENS, config.max_length)).long()[None]
    if not model(ids, ids, torch.ones_like(ids, dtype=torch.bool)).isfinite().all():
        raise ValueError("a short text already gives outputs that are not finite numbers: the weights are too large")


class _NothingDrawn(TorchFunctionMode):
    """Weights made under it hold whatever their memory held: those of a file follow at once, and drawing random ones
    before took most of the time."""

    _DRAWS = (Tensor.uniform_, Tensor.normal_, nn.init.normal_, nn.init.kaiming_uniform_, nn.init.uniform_)

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return func(*args, **kwargs) if func not in self._DRAWS else args[0] if args else kwargs["tensor"]
