"""Sweeps: one setting over several values, a run for each, all else equal. They wait in the queue like any run.

A run says in its own folder to which sweep it belongs, so that a sweep outlives renaming and deleting. Not here: the
queue (queue.py), the chart (figures/sweeps.py).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from transformer.access.people import acting
from transformer.config import FAMILIES, AnyModelConfig, CorpusConfig, TrainConfig
from transformer.files import read_json, runs_folder, write_json
from transformer.runs import run_folder
from transformer.runs.queue import check_room
from transformer.runs.run_folder import Run
from transformer.runs.status import RunError, own_folder, status
from transformer.runs.warm_start import Start

SWEEP_FILE = "sweep.json"
MOST_VALUES = 24
Value = str | float | int | bool | None
_FIXED = {
    **dict.fromkeys(("model.vocab_size", "model.pad_id", "model.bos_id", "model.eos_id"), "the tokenizer sets it"),
    **dict.fromkeys(("train.evaluate_pairs", "train.test_pairs"), "it changes how a run is scored, not how it learns"),
    "model.family": "settings of one family mean nothing to another: train one run of each",
    "train.device": "it changes where a run is trained, not how it learns",
}
"""Settings that are no subject of a sweep, and why."""
_WORDS: dict[str, Value] = {"none": None, "true": True, "false": False, "on": True, "off": False}
_CONFIGS = (*(("model", config) for config in FAMILIES.values()), ("train", TrainConfig))
SETTINGS: tuple[str, ...] = tuple(
    dict.fromkeys(
        name for kind, config in _CONFIGS for item in fields(config) if (name := f"{kind}.{item.name}") not in _FIXED
    )
)
"""The settings that can be varied, in the order of config.py; those of all families of models."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """Everything that the runs of a sweep have in common."""

    model: AnyModelConfig
    train: TrainConfig
    corpus: CorpusConfig
    pinned: tuple[str, ...] | None = None
    """Sentences to follow; None takes the corpus's first examples."""
    start_from: str | Start | None = None
    """The run whose weights all of them begin with."""


@dataclass(frozen=True)
class Part:
    """One run of a sweep."""

    value: Value
    run: Run


@dataclass(frozen=True)
class Sweep:
    """The runs that differ in one setting."""

    id: str
    setting: str
    """Such as model.n_heads."""
    parts: tuple[Part, ...]
    """The runs, in the order of the values as they were asked for."""

    @property
    def active(self) -> bool:
        """Tells whether any of its runs is working or waiting."""
        return any(part.run.status.active for part in self.parts)


def setting_called(text: str) -> str:
    """The full name of a setting: "n-heads" and "model.n-heads" are model.n_heads. RunError where there is none."""
    name = text.strip().replace("-", "_")
    found = [known for known in (*SETTINGS, *_FIXED) if name in (known, known.partition(".")[2])]
    if not found:
        raise RunError(f"there is no setting {text[:40]!r}; there are {', '.join(SETTINGS)}")
    if found[0] in _FIXED:
        raise RunError(f"{found[0]} cannot be swept over: {_FIXED[found[0]]}")
    return found[0]


def values_of(setting: str, texts: Sequence[str], base: Base) -> tuple[Value, ...]:
    """The values that these texts spell, each tried with the base; RunError naming every one that cannot be."""
    setting = setting_called(setting)
    value_of(setting, base)
    faults: dict[str, str] = {}
    found: list[Value] = []
    for text in texts:
        try:
            value = _parsed(_field(setting), text.strip())
            _with(base, setting, value)
        except ValueError as error:
            faults[text] = str(error)
        else:
            if value in found and type(value) is type(found[found.index(value)]):
                faults[text] = "it is there twice"
            found.append(value)
    if faults:
        said = "; ".join(f"{text[:30]}: {why}" for text, why in faults.items())
        count = "a value" if len(faults) == 1 else f"{len(faults)} of the values"
        raise RunError(f"{count} of {setting} cannot be: {said}")
    if not 2 <= len(found) <= MOST_VALUES:
        raise RunError(f"a sweep takes 2 to {MOST_VALUES} values of {setting}, and here {_are(len(found))}")
    return tuple(found)


def value_of(setting: str, base: Base) -> Value:
    """The value that a setting has without a sweep; RunError where this family of models has no such setting."""
    kind, _, name = setting.partition(".")
    config = base.model if kind == "model" else base.train
    if name not in config.__dataclass_fields__:
        raise RunError(f"{setting} is no setting of this family of models ({base.model.family})")
    return getattr(config, name)


def create_sweep(base: Base, setting: str, texts: Sequence[str], *, command: str = "") -> Sweep:
    """A new sweep, its runs made and none of them started. All or none: where one cannot be made, none is left."""
    setting = setting_called(setting)
    values = values_of(setting, texts, base)
    short = setting.partition(".")[2]
    stem = Path(base.corpus.name).stem
    check_room(acting().id, runs=len(values))
    sweep = _free_id(f"{stem}-{short}")
    made: list[str] = []
    try:
        for place, value in enumerate(values):
            made.append(_create(_with(base, setting, value), f"{stem}-{short}-{spelt(value)}", command))
            record = {"sweep": sweep, "setting": setting, "value": value, "place": place}
            write_json(own_folder(made[-1]) / SWEEP_FILE, record)
    except BaseException:
        for run_id in made:
            run_folder.delete(run_id)
        raise
    parts = (Part(value, run_folder.get_run(run_id)) for value, run_id in zip(values, made, strict=True))
    return Sweep(sweep, setting, tuple(parts))


def start_sweep(sweep: Sweep) -> None:
    """Queues its runs that are neither at work nor finished; RunError as `run_folder.start`."""
    for part in sweep.parts:
        now = status(part.run.id)
        if not now.active and now.state != "finished":
            run_folder.start(part.run.id)


def cancel_sweep(sweep: Sweep) -> int:
    """Takes its waiting runs out of the queue and asks those at work to stop; returns how many that were."""
    # The waiting ones first: one that is stopped makes room, and another would start in its place.
    active = [part.run.id for part in sweep.parts if status(part.run.id).active]
    for run_id in sorted(active, key=lambda run_id: not status(run_id).waiting):
        if status(run_id).active:  # it may have ended in this moment
            run_folder.stop(run_id)
    return len(active)


def sweeps_of(found: Iterable[Run]) -> tuple[Sweep, ...]:
    """The sweeps that these runs belong to, the newest first."""
    parts: dict[tuple[str, str], list[tuple[int, Part]]] = {}
    newest: dict[tuple[str, str], str] = {}
    for run in found:
        if (record := _record(run.folder)) is None:
            continue
        key = record["sweep"], record["setting"]
        parts.setdefault(key, []).append((record["place"], Part(record["value"], run)))
        newest[key] = max(newest.get(key, ""), run.settings.created)
    ordered = sorted(parts, key=lambda key: (newest[key], key), reverse=True)
    return tuple(
        Sweep(sweep, setting, tuple(part for _, part in sorted(parts[sweep, setting], key=lambda placed: placed[0])))
        for sweep, setting in ordered
    )


def spelt(value: Value) -> str:
    """A value as it is typed."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
    return str(value)


def _create(base: Base, name: str, command: str) -> str:
    return run_folder.create_run(
        base.model, base.train, base.corpus, pinned=base.pinned, name=name, command=command, start_from=base.start_from
    )


def _with(base: Base, setting: str, value: Value) -> Base:
    """The base with another value; ValueError where that contradicts the rest."""
    kind, _, name = setting.partition(".")
    changed = replace({"model": base.model, "train": base.train}[kind], **{name: value})
    return replace(base, **{kind: changed})


def _field(setting: str) -> Field:
    kind, _, name = setting.partition(".")
    return next(item for of, config in _CONFIGS if of == kind for item in fields(config) if item.name == name)


def _parsed(field: Field, text: str) -> Value:
    """The value that a text spells for this field; ValueError saying what is expected."""
    kinds = get_args(field.type) or (field.type,)
    word = _WORDS.get(text.lower(), text)
    if word is None and NoneType in kinds:
        return None
    if bool in kinds:
        if isinstance(word, bool):
            return word
        raise ValueError("it must be true or false")
    if int in kinds or float in kinds:
        return _number(text, whole=int in kinds)
    if text in kinds or str in kinds:
        return text
    raise ValueError(f"it must be one of {', '.join(str(kind) for kind in kinds)}")


def _number(text: str, *, whole: bool) -> int | float:
    plain = text.replace("_", "")
    if whole:
        if re.fullmatch(r"[+-]?\d{1,12}", plain) is None:
            raise ValueError("it must be a whole number")
        return int(plain)
    try:
        return float(plain)
    except ValueError:
        raise ValueError("it must be a number") from None


def _record(folder: Path) -> dict[str, Any] | None:
    content = read_json(folder / SWEEP_FILE)
    match content:
        case {"sweep": str(), "setting": str(setting), "place": int(), "value": None | str() | int() | float()}:
            return content if setting in SETTINGS else None
    return None


def _free_id(base: str) -> str:
    root = runs_folder()
    folders = root.iterdir() if root.is_dir() else ()
    taken = {record["sweep"] for folder in folders if (record := _record(folder)) is not None}
    numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(taken) + 2))
    return next(sweep for sweep in numbered if sweep not in taken)


def _are(count: int) -> str:
    return "is one" if count == 1 else f"are {count}"
