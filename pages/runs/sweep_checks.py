"""The checks of a sweep's chart and table: what each run reached, and the setting that it ran with."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pages.shared.checks import badge
from pages.training.compare import QUANTITIES, Entry, last_of
from pages.training.data import progress_of
from pages.training.differences import said
from pages.training.run_checks import held, measured_again
from transformer.analysis.checks import Check
from transformer.analysis.training.run_checks import check_last
from transformer.checkpoints.settings import CONFIG_FILE
from transformer.figures.training.sweeps import Mark

_IN_TABLE = ("exact match", "validation loss")


@dataclass(frozen=True)
class _Reached:
    """What stands on the page of a run: a quantity, and the step at which it was measured."""

    entry: Entry
    quantity: str
    value: float | None
    step: int


def check_marks(setting: str, marks: Mapping[str, Mark], shown: Sequence[Entry], quantity: str) -> None:
    """Of the chart and the table: each run's last values, its setting as its file has it, and its evaluation again."""
    reached = [
        _Reached(entry, name, marks[entry.name].y if name == quantity else last_of(entry, name), _step(entry, name))
        for entry in shown
        for name in dict.fromkeys((quantity, *_IN_TABLE))
    ]

    def run() -> Iterable[Check]:
        yield _check_setting(setting, marks, shown)
        for one in reached:
            what = QUANTITIES[one.quantity]
            yield check_last(
                one.entry.name,
                one.entry.folder,
                what.split,
                what.column,
                one.value,
                step=one.step,
                factor=100 if what.percent else 1,
                ended=not one.entry.active,
            )
        for entry in shown:
            yield from measured_again(entry.folder, several=max(2, len(shown)))[0]

    steps = tuple((one.entry.name, one.quantity, one.value, one.step) for one in reached if not one.entry.active)
    badge(held(run, "proof-sweep", (setting, tuple(marks), quantity, steps)), key="proof-sweep")


def _step(entry: Entry, quantity: str) -> int:
    return int(progress_of(entry.folder).last(QUANTITIES[quantity].split, "step") or 0)


def _check_setting(setting: str, marks: Mapping[str, Mark], shown: Sequence[Entry]) -> Check:
    section, _, name = setting.partition(".")
    off = 0
    for entry in shown:
        found = json.loads((entry.folder / CONFIG_FILE).read_text(encoding="utf-8"))[section][name]
        off += marks[entry.name].value not in (found, said(found))
    how = f"{CONFIG_FILE} of {len(shown)} runs read again; runs that differ"
    return Check(f"Each run had the {setting} under which it stands", off, 0, how)
