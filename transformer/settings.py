"""config.json of a checkpoint or run, read and written; where both are kept, and how one is found by name.

No torch here: listing runs must be quick. Loading weights is checkpoint.py's.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from transformer.config import CorpusConfig, ModelConfig, Precision, TrainConfig
from transformer.files import write_json

FORMAT = "attention-lab"
FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
METRICS_FILE = "metrics.jsonl"
SAMPLES_FILE = "samples.jsonl"
CARD_FILE = "CARD.md"
START_FILE = "start.safetensors"
"""The weights that a run began with, where it continues another one."""
SHIPPED_FOLDER = Path(__file__).resolve().parent.parent / "checkpoints"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")


class CheckpointError(Exception):
    """A checkpoint or run cannot be found, read or trusted; the message names what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What `auto` came to when the run started. It stays: another precision or thread count gives other sums."""

    device: str
    precision: Precision
    threads: int


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The model whose weights a run began with."""

    run: str
    """Its name at that time."""
    step: int
    """The step at which its weights stood."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that made a model, as config.json keeps it."""

    name: str
    """The run's id, or the shipped checkpoint's name."""
    model: ModelConfig
    train: TrainConfig
    corpus: CorpusConfig
    pinned: tuple[str, ...] = ()
    """Sentences translated at each evaluation."""
    command: str = ""
    """The command that makes it again."""
    credit: str = ""
    """Whom the sentences come from and under which licence, where the corpus does not say it itself."""
    created: str = ""
    """ISO 8601, UTC."""
    parent: Parent | None = None
    """None for a run that began with weights drawn by lot."""
    resolved: Resolved | None = None
    """None until the run has started."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version of each package that the numbers depend on."""


def write_settings(folder: Path, settings: Settings) -> None:
    """Writes config.json, atomically."""
    write_json(folder / CONFIG_FILE, {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(settings))


def read_settings(folder: Path) -> Settings:
    """The settings in a folder's config.json; CheckpointError saying what is missing, foreign or contradictory."""
    if not folder.is_dir():
        raise CheckpointError(f"there is no folder {folder}")
    path = folder / CONFIG_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not a checkpoint: it has no {CONFIG_FILE}{pickle_note(folder)}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path} was not written by this program: its format is not {FORMAT!r}")
    if content.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{path} has format version {content.get('format_version')}; this program reads version {FORMAT_VERSION}"
        )
    content = {key: value for key, value in content.items() if key not in ("format", "format_version")}
    try:
        return _parsed(content)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def pickle_note(folder: Path) -> str:
    """The clause to add to a refusal where the folder holds pickled weights; else nothing."""
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLES)
    if not pickled:
        return ""
    return f"; it holds {pickled[0]}, and pickled weights are refused because reading them can run any code"


def runs_folder() -> Path:
    """Where runs are kept: $ATTENTION_LAB_RUNS, or runs/ beside the library."""
    return Path(os.environ.get("ATTENTION_LAB_RUNS") or SHIPPED_FOLDER.parent / "runs")


def is_name(text: str) -> bool:
    """Whether the text can be a run's id or a checkpoint's name: it then never leaves its folder."""
    return _NAME.fullmatch(text) is not None


def free_names(wanted: str) -> Iterator[str]:
    """Names that no run and no shipped checkpoint has: the one that is wanted, then the same with a number."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[:60] or "model"
    for name in itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2))):
        if not any(os.path.lexists(root / name) for root in (SHIPPED_FOLDER, runs_folder())):
            yield name


@dataclass(frozen=True)
class Found:
    """A checkpoint that can be loaded."""

    name: str
    folder: Path
    shipped: bool


def list_checkpoints() -> tuple[Found, ...]:
    """Shipped checkpoints by name, then runs that have weights, the newest first."""
    shipped = [Found(path.name, path, True) for path in sorted(_with_weights(SHIPPED_FOLDER))]
    newest_first = sorted(_with_weights(runs_folder()), key=lambda path: path.stat().st_ctime, reverse=True)
    return (*shipped, *(Found(path.name, path, False) for path in newest_first))


def find_checkpoint(name: str, *, folders: bool = True) -> Path:
    """The folder of a shipped checkpoint's name, a run's id or (unless `folders` is False) a path.

    CheckpointError that lists what there is. Pass folders=False for a name that came out of a URL.
    """
    if is_name(name):
        for root in (SHIPPED_FOLDER, runs_folder()):
            if (root / name / CONFIG_FILE).is_file():
                return root / name
    if folders and name and Path(name).expanduser().is_dir():
        return Path(name).expanduser()
    existing = ", ".join(found.name for found in list_checkpoints()) or "none yet: train one first"
    raise CheckpointError(f"there is no model {name!r}; the models here are: {existing}")


def _with_weights(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return [path for path in root.iterdir() if is_name(path.name) and (path / WEIGHTS_FILE).is_file()]


def _parsed(content: dict[str, Any]) -> Settings:
    given = dict(_known(Settings, content, "config.json"))
    for name, kind in (("model", ModelConfig), ("train", TrainConfig), ("corpus", CorpusConfig)):
        if name not in given:
            raise ValueError(f"the {name} settings are missing")
        given[name] = kind(**_known(kind, given[name], name))
    if given.get("resolved") is not None:
        given["resolved"] = Resolved(**_known(Resolved, given["resolved"], "resolved"))
    if given.get("parent") is not None:
        given["parent"] = Parent(**_known(Parent, given["parent"], "parent"))
    pinned = given.get("pinned", [])
    if not isinstance(pinned, list) or not all(isinstance(text, str) for text in pinned):
        raise ValueError("pinned must be a list of texts")
    given["pinned"] = tuple(pinned)
    settings = Settings(**given)
    _check_texts(settings)
    return settings


def _check_texts(settings: Settings) -> None:
    """Refuses numbers and lists where a text is due, as a foreign or hand-edited file may hold them."""
    for name in ("name", "command", "credit", "created"):
        if not isinstance(getattr(settings, name), str):
            raise ValueError(f"{name} ({getattr(settings, name)!r}) must be a text")
    if not isinstance(settings.versions, Mapping) or not all(isinstance(v, str) for v in settings.versions.values()):
        raise ValueError("versions must be texts by name")
    for part, name, kind in (
        *((settings.resolved, name, kind) for name, kind in (("device", str), ("precision", str), ("threads", int))),
        *((settings.parent, name, kind) for name, kind in (("run", str), ("step", int))),
    ):
        if part is not None and type(value := getattr(part, name)) is not kind:
            raise ValueError(f"{name} ({value!r}) must be a {'whole number' if kind is int else 'text'}")


def _known(kind: type, content: object, place: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{place} must be an object")
    if unknown := sorted(content.keys() - {item.name for item in fields(kind)}):
        raise ValueError(f"{place} holds {unknown[0]!r}, which this program does not know")
    return content
