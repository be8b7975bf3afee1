"""The contents of a capsule as plain values, written as JSON and read back without trusting a word of it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np
from pandas import DataFrame

from transformer.checkpoints.settings import is_name
from transformer.figures.tables import cells, matrix_table
from transformer.runs.labels import LONGEST_NOTE
from transformer.text.token_ids import valid_text

FORMAT = "attention-lab-capsule"
FORMAT_VERSION = 1
MAX_DECODINGS, MAX_MODELS, MAX_FIGURES, MAX_TABLES = 8, 8, 200, 2_000
MAX_CELLS = 400_000
"""Numbers of all figures together that a capsule carries; those of the figures after that are left out."""
_LONGEST = 100_000
"""Characters of a text."""
_SHA256 = re.compile(r"[0-9a-f]{64}")

Parameters = Mapping[str, str | list[str]]
Part = TypeVar("Part")


class CapsuleError(Exception):
    """A capsule cannot be written, read or trusted; the message says why."""


@dataclass(frozen=True, kw_only=True)
class SavedModel:
    """A model as a capsule names it: a shipped one by its name and checksums alone, any other with its files."""

    name: str
    shipped: bool
    step: int
    weights: str
    """The SHA-256 of the weights' file."""
    tokenizer: str
    """The SHA-256 of the tokenizer's files."""
    config: str
    """The SHA-256 of the model's settings."""

    @property
    def folder(self) -> str:
        """The place of its files in the capsule."""
        return f"models/{self.name}/"

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """All that must be equal for two models to compute the same."""
        return self.weights, self.tokenizer, self.config


@dataclass(frozen=True, kw_only=True)
class SavedDecoding:
    """A decoded sentence, but for its arrays."""

    model: str
    text: str
    switches: tuple[str, ...]
    forced: tuple[tuple[int, int], ...]
    """Steps at which a token was forced, each with its id."""
    source_tokens: tuple[str, ...]
    target_tokens: tuple[str, ...]
    translation: str


@dataclass(frozen=True, kw_only=True)
class SavedFigure:
    """A figure as it stood on the page: the view in Python, and its numbers."""

    key: str
    """Its key on the page, by which it is found again."""
    title: str
    view: str
    tables: tuple[DataFrame, ...]
    """Empty where there are too many numbers to carry."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All of a capsule that a person may want to read; figures, arrays and models lie beside it."""

    page: str
    """The end of the page's address; empty for an analysis that no page shows."""
    title: str
    parameters: Parameters
    """The state of the page, as its link has it."""
    models: tuple[SavedModel, ...]
    decodings: tuple[SavedDecoding, ...]
    notes: str = ""
    lesson: Parameters = field(default_factory=dict)
    """The state of the Lessons page; empty where no lesson was open."""
    versions: Mapping[str, str] = field(default_factory=dict)
    created: str = ""

    def model(self, name: str) -> SavedModel:
        """Returns the model of this name; CapsuleError where the capsule names none."""
        for model in self.models:
            if model.name == name:
                return model
        raise CapsuleError(f"it names no model {name!r}")


def manifest_json(manifest: Manifest) -> bytes:
    """Returns the text of capsule.json."""
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(manifest)}
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def read_manifest(content: bytes) -> Manifest:
    """Returns what capsule.json says; CapsuleError for anything that `manifest_json` does not write."""
    given = _Fields(_parsed(content, "capsule.json"), "capsule.json")
    if given.content.get("format") != FORMAT:
        raise CapsuleError(f"its capsule.json does not say that its format is {FORMAT}")
    if (version := given.content.get("format_version")) != FORMAT_VERSION:
        said = str(version)[:20]
        raise CapsuleError(f"it has format version {said}; this copy of Attention Lab reads version {FORMAT_VERSION}")
    manifest = Manifest(
        page=given.text("page", 80),
        title=given.text("title", 200),
        parameters=given.parameters("parameters"),
        models=given.parts("models", MAX_MODELS, _read_model),
        decodings=given.parts("decodings", MAX_DECODINGS, _read_decoding),
        notes=given.text("notes", LONGEST_NOTE),
        lesson=given.parameters("lesson"),
        versions=given.versions("versions"),
        created=given.text("created", 80),
    )
    if len({model.name for model in manifest.models}) < len(manifest.models):
        raise CapsuleError("its capsule.json names a model twice")
    for decoding in manifest.decodings:
        manifest.model(decoding.model)
    return manifest


def figures_json(figures: Sequence[SavedFigure]) -> bytes:
    """Returns the text of figures.json; tables beyond MAX_CELLS are left out."""
    room, content = MAX_CELLS, []
    for figure in figures[:MAX_FIGURES]:
        n_cells = sum(table.size for table in figure.tables)
        tables = figure.tables if n_cells <= room else ()
        room -= n_cells if tables else 0
        content.append({**_texts_of(figure), "tables": [_table_content(table) for table in tables]})
    return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def read_figures(content: bytes) -> tuple[SavedFigure, ...]:
    """Returns what figures.json says; CapsuleError for anything that `figures_json` does not write."""
    wrapped = _Fields({"figures": _parsed(content, "figures.json")}, "figures.json")
    return wrapped.parts("figures", MAX_FIGURES, _read_figure)


def _texts_of(figure: SavedFigure) -> dict[str, str]:
    return {"key": figure.key, "title": figure.title, "view": figure.view}


def _table_content(table: DataFrame) -> dict[str, Any]:
    rows, columns = list(map(str, table.index)), list(map(str, table.columns))
    return {"name": table.index.name, "rows": rows, "columns": columns, "values": cells(table).tolist()}


def _read_model(given: "_Fields") -> SavedModel:
    name = given.text("name", 80)
    if not is_name(name):
        raise CapsuleError(f"its capsule.json names a model {name!r}, which cannot be a name")
    hashes = {each: given.text(each, 64) for each in ("weights", "tokenizer", "config")}
    if wrong := [each for each, sha in hashes.items() if not _SHA256.fullmatch(sha)]:
        raise CapsuleError(f"its capsule.json says the {wrong[0]} {hashes[wrong[0]]!r}, which is no SHA-256")
    shipped = given.content.get("shipped")
    if not isinstance(shipped, bool):
        raise CapsuleError(f"its capsule.json says shipped {str(shipped)[:40]!r}, which is neither true nor false")
    return SavedModel(name=name, shipped=shipped, step=given.whole("step"), **hashes)


def _read_decoding(given: "_Fields") -> SavedDecoding:
    forced = given.content.get("forced")
    pairs = forced if isinstance(forced, list) else [None]
    if not all(isinstance(pair, list) and len(pair) == 2 and all(map(_is_index, pair)) for pair in pairs):
        raise CapsuleError("its capsule.json has forced tokens that are not pairs of whole numbers")
    return SavedDecoding(
        model=given.text("model", 80),
        text=given.text("text"),
        switches=given.texts("switches"),
        forced=tuple((step, token) for step, token in pairs),
        source_tokens=given.texts("source_tokens"),
        target_tokens=given.texts("target_tokens"),
        translation=given.text("translation"),
    )


def _read_figure(given: "_Fields") -> SavedFigure:
    return SavedFigure(
        key=given.text("key", 200),
        title=given.text("title", 400),
        view=given.text("view"),
        tables=given.parts("tables", MAX_TABLES, _read_table),
    )


def _read_table(given: "_Fields") -> DataFrame:
    name, rows, columns = given.text("name", 1_000), given.texts("rows"), given.texts("columns")
    values = given.content.get("values")
    lines = values if isinstance(values, list) else [None]
    if not all(isinstance(line, list) and all(map(_is_cell, line)) for line in lines):
        raise CapsuleError(f"the table {name[:60]!r} in its figures.json does not hold rows of numbers or texts")
    if len(lines) != len(rows) or any(len(line) != len(columns) for line in lines):
        raise CapsuleError(f"the table {name[:60]!r} in its figures.json has other labels than values")
    kind = object if any(isinstance(cell, str) for line in lines for cell in line) else np.float64
    filled = np.array(lines, dtype=kind).reshape(len(rows), len(columns))
    return matrix_table(name, filled.astype(np.str_) if kind is object else filled, rows, columns)


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is_cell(value: object) -> bool:
    if isinstance(value, str):
        return _is_text(value)
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**63)


def _is_text(value: object, longest: int = _LONGEST) -> bool:
    """Tells whether this is a string of no more characters, and without half a character, which UTF-8 cannot write."""
    return isinstance(value, str) and len(value) <= longest and valid_text(value) == value


def _parsed(content: bytes, file: str) -> object:
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        raise CapsuleError(f"its {file} cannot be read: it is not JSON") from None


class _Fields:
    """The fields of an object in a JSON file; each reader raises CapsuleError for anything but what it is asked for."""

    def __init__(self, content: object, file: str) -> None:
        if not isinstance(content, dict):
            raise CapsuleError(f"its {file} holds {str(content)[:40]!r} where an object belongs")
        self.content, self._file = content, file

    def text(self, name: str, longest: int = _LONGEST) -> str:
        value = self.content.get(name)
        if not _is_text(value, longest):
            raise CapsuleError(f"its {self._file} says no {name}, or none that is a text of at most {longest:,}")
        return str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.content.get(name)
        if not isinstance(value, list) or not all(map(_is_text, value)):
            raise CapsuleError(f"its {self._file} says no {name}, or not as a list of texts")
        return tuple(value)

    def whole(self, name: str) -> int:
        value = self.content.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 10**12:
            raise CapsuleError(f"its {self._file} says the {name} {str(value)[:40]!r}, which is no whole number")
        return value

    def parameters(self, name: str) -> dict[str, str | list[str]]:
        value = self._object(name)
        for key, given in value.items():
            if not all(_is_text(text) for text in (key, *(given if isinstance(given, list) else [given]))):
                raise CapsuleError(f"its {self._file} has {name} that are not texts")
        return value

    def versions(self, name: str) -> dict[str, str]:
        value = self._object(name)
        if not all(_is_text(text, 200) for pair in value.items() for text in pair):
            raise CapsuleError(f"its {self._file} has {name} that are not texts")
        return value

    def parts(self, name: str, most: int, read: Callable[["_Fields"], Part]) -> tuple[Part, ...]:
        value = self.content.get(name)
        if not isinstance(value, list) or len(value) > most:
            raise CapsuleError(f"its {self._file} says no {name}, or more than {most:,}")
        return tuple(read(_Fields(part, self._file)) for part in value)

    def _object(self, name: str) -> dict[str, Any]:
        value = self.content.get(name)
        if not isinstance(value, dict):
            raise CapsuleError(f"its {self._file} says no {name}, or not as an object")
        return value
