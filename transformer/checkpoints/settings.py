"""config.json of a checkpoint or run, read and written; where both are kept, and how one is found by name.

No torch here: listing runs must be quick. Loading weights is store.py's.
"""

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePath
from typing import Any

from transformer.access.ownership import may_see, visible
from transformer.config import FAMILIES, AnyModelConfig, CorpusConfig, Precision, TrainConfig
from transformer.files import PROJECT_FOLDER, read_json, runs_folder, write_text

FORMAT = "attention-lab"
FORMAT_VERSION = 1
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "weights.safetensors"
METRICS_FILE = "metrics.jsonl"
SAMPLES_FILE = "samples.jsonl"
CARD_FILE = "CARD.md"
ABOUT_FILE = "about.json"
"""Labels of a run: a person's note, and the names that it had before."""
START_FILE = "start.safetensors"
"""The weights that a run began with, where it continues another one."""
SHIPPED_FOLDER = PROJECT_FOLDER / "checkpoints"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_PICKLES = (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt")
_MAX_STEP_DIGITS = 12
_TEXTS = {"name", "command", "credit", "created"}


class CheckpointError(Exception):
    """A checkpoint or run cannot be found, read or trusted; the message names what is wrong."""


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """The values of `auto` since the run started. They stay: another precision or thread count gives other sums."""

    device: str
    precision: Precision
    threads: int

    def __post_init__(self) -> None:
        TrainConfig(
            device=self.device, precision=self.precision, threads=self.threads
        )  # refuses what these must not be


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
    model: AnyModelConfig
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
    """None for a run that began with random weights."""
    resolved: Resolved | None = None
    """None until the run has started."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Version of each package that the numbers depend on."""


def write_settings(folder: Path, settings: Settings) -> None:
    """Writes config.json, atomically."""
    write_text(folder / CONFIG_FILE, settings_json(settings))


def settings_json(settings: Settings) -> str:
    """The text of config.json."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION} | asdict(settings)
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def read_settings(folder: Path) -> Settings:
    """The settings in a folder's config.json; CheckpointError saying what is missing, foreign or contradictory."""
    if not folder.is_dir():
        raise CheckpointError(f"there is no folder {folder}")
    path = folder / CONFIG_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not a checkpoint: it has no {CONFIG_FILE}{pickle_note(folder)}") from None
    except (OSError, ValueError, RecursionError) as error:
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


def step_in(notes: Mapping[str, Any]) -> int:
    """The training step in the notes of a file of weights; 0 where they hold none that a run can reach."""
    note = notes.get("step", "0")
    return int(note) if isinstance(note, str) and note.isdecimal() and len(note) <= _MAX_STEP_DIGITS else 0


def pickle_note(folder: Path) -> str:
    """The clause to add to a refusal where the folder holds pickled weights; else nothing."""
    pickled = sorted(path.name for path in folder.iterdir() if is_pickle(path))
    if not pickled:
        return ""
    return f"; it holds {pickled[0]}, and pickled weights are refused because reading them can run any code"


def is_name(text: str) -> bool:
    """Tells whether the text can be a run's id or a checkpoint's name, which never leaves its folder."""
    return _NAME.fullmatch(text) is not None


def as_name(wanted: str) -> str:
    """Returns the name of a run that is nearest to a text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[:60] or "run"


def free_names(wanted: str, *, numbered: bool = False) -> Iterator[str]:
    """Yields names that no run and no shipped checkpoint has: the one that is wanted, then the same with a number;
    `numbered`: with a number from the first."""
    base = as_name(wanted)
    for number in itertools.count(1):
        name = base if number == 1 and not numbered else f"{base}-{number}"
        if not any(os.path.lexists(root / name) for root in (SHIPPED_FOLDER, runs_folder())):
            yield name


@dataclass(frozen=True)
class Found:
    """A checkpoint that can be loaded."""

    name: str
    folder: Path
    shipped: bool


def list_checkpoints() -> tuple[Found, ...]:
    """Shipped checkpoints by name, then runs that have weights and that one may look at, the newest first."""
    shipped = [Found(path.name, path, True) for path in sorted(_with_weights(SHIPPED_FOLDER))]
    newest_first = sorted(visible(_with_weights(runs_folder())), key=lambda path: path.stat().st_ctime, reverse=True)
    return (*shipped, *(Found(path.name, path, False) for path in newest_first))


def find_checkpoint(name: str, *, folders: bool = True) -> Path:
    """The folder of a shipped checkpoint's name, a run's id or (unless `folders` is False) a path; only of a run that
    one may look at.

    The name that a run had before it got another one leads to it too, as long as nothing else is called so.
    CheckpointError that lists what there is. Pass folders=False for a name that came out of a URL.
    """
    if is_name(name):
        if (SHIPPED_FOLDER / name / CONFIG_FILE).is_file():
            return SHIPPED_FOLDER / name
        if (runs_folder() / name / CONFIG_FILE).is_file() and may_see(runs_folder() / name):
            return runs_folder() / name
        if (now := renamed(name)) is not None:
            return runs_folder() / now
    if folders and name and Path(name).expanduser().is_dir():
        return Path(name).expanduser()
    existing = ", ".join(found.name for found in list_checkpoints()) or "none yet: train one first"
    raise CheckpointError(f"there is no model {name!r}; the models here are: {existing}")


def renamed(name: str) -> str | None:
    """Returns the present name of the run that once had this name; None where none had that one may look at."""
    root = runs_folder()
    folders = sorted(root.iterdir()) if root.is_dir() else []
    found = (path.name for path in folders if is_name(path.name) and name in formerly(path) and may_see(path))
    return next(found, None)


def formerly(folder: Path) -> tuple[str, ...]:
    """The names that a run had before, the last one at the end."""
    names = read_json(folder / ABOUT_FILE).get("formerly")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def is_pickle(path: Path | PurePath) -> bool:
    """Tells whether a file's name says that it holds pickled weights, which are never read here."""
    return path.suffix.lower() in _PICKLES


def _with_weights(root: Path) -> list[Path]:
    if not root.is_dir():
        return []
    return [path for path in root.iterdir() if is_name(path.name) and (path / WEIGHTS_FILE).is_file()]


def _parsed(content: dict[str, Any]) -> Settings:
    given = dict(_known(Settings, content, "config.json"))
    for name in ("model", "train", "corpus"):
        if name not in given:
            raise ValueError(f"the {name} settings are missing")
    for name, kind in (("model", _family(given["model"])), ("train", TrainConfig), ("corpus", CorpusConfig)):
        given[name] = kind(**_known(kind, given[name], name))
    if given.get("resolved") is not None:
        given["resolved"] = _plain(Resolved, given["resolved"], "resolved")
    if given.get("parent") is not None:
        given["parent"] = _plain(Parent, given["parent"], "parent")
    pinned = given.get("pinned", [])
    if not isinstance(pinned, list) or not all(isinstance(text, str) for text in pinned):
        raise ValueError("pinned must be a list of texts")
    given["pinned"] = tuple(pinned)
    _check_texts(given)
    return Settings(**given)


def _family(content: object) -> type[AnyModelConfig]:
    """The class of a model's settings; a Transformer's where none is named, as before there were others."""
    name = content.get("family", "transformer") if isinstance(content, dict) else "transformer"
    if not isinstance(name, str) or name not in FAMILIES:
        raise ValueError(f"the model's family ({name!r}) must be one of: {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _check_texts(given: Mapping[str, Any]) -> None:
    """Refuses numbers and lists where a text is due, as a foreign or hand-edited file may hold them."""
    for name in _TEXTS & given.keys():
        if not isinstance(given[name], str):
            raise ValueError(f"{name} ({given[name]!r}) must be a text")
    versions = given.get("versions", {})
    if not isinstance(versions, Mapping) or not all(isinstance(version, str) for version in versions.values()):
        raise ValueError("versions must be texts by name")


def _plain(kind: type[Resolved] | type[Parent], content: object, place: str) -> Any:
    """A part of the settings that holds texts and whole numbers alone."""
    given = _known(kind, content, place)
    for item in fields(kind):
        wanted = int if item.type is int else str
        if type(value := given.get(item.name)) is not wanted:
            raise ValueError(f"{item.name} ({value!r}) must be a {'whole number' if wanted is int else 'text'}")
    return kind(**given)


def _known(kind: type, content: object, place: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{place} must be an object")
    if unknown := sorted(content.keys() - {item.name for item in fields(kind)}):
        raise ValueError(f"{place} holds {unknown[0]!r}, which this program does not know")
    return content
