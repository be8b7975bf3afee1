"""Both sides of Two at once: models with their last weights or those of a snapshot, and what they decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pages.shared import loading
from pages.shared.cache import cached
from pages.shared.context import left_out_text
from transformer.checkpoints.settings import CheckpointError, find_checkpoint
from transformer.checkpoints.store import load_checkpoint
from transformer.interventions import Intervention
from transformer.lab import Inspection, Lab
from transformer.runs.run_folder import snapshots
from transformer.runs.status import RunError

N_SENTENCES = 6
"""The number of example sentences on which heads are matched, beside the page's own: enough to tell heads apart, and
few enough to wait for."""


@dataclass(frozen=True)
class Side:
    """A model at a step of its run, a sentence, and what the model made of it."""

    lab: Lab
    step: str
    """The step of a snapshot; empty for the weights at the end of its run."""
    seen: Inspection
    left_out: tuple[str, ...]
    """Sentences about switches that this model cannot take."""

    @property
    def name(self) -> str:
        """Returns the model's name, with its step if it is a snapshot."""
        return f"{self.lab.name}, step {int(self.step):,}" if self.step else self.lab.name


def steps_of(name: str) -> tuple[str, ...]:
    """Returns the steps at which weights of this model were kept; none for a shipped one."""
    return tuple(str(step) for step in _snapshots(name))


def get_lab_at(name: str, step: str) -> Lab:
    """Returns the model, at a step of its run where one is named; CheckpointError where there is no such thing."""
    if not step:
        return loading.get_lab(name)
    kept = {str(number): path for number, path in _snapshots(name).items()}
    if step not in kept:
        found = f"there are {', '.join(list(kept)[:12])}" if kept else "it kept none"
        raise CheckpointError(f"there is no snapshot of step {step} of {name}: {found}")
    return _snapshot(name, str(kept[step]))


def side(name: str, step: str, text: str, switches: Sequence[Intervention]) -> Side:
    """Decodes a text with a model at a step; CheckpointError or ValueError where that cannot be done."""
    lab = get_lab_at(name, step)
    usable, left_out = [], []
    for spec in switches:
        try:
            lab.resolved([spec], n_source=len(loading.get_sentence(lab, text).ids))
            usable.append(spec)
        except ValueError as error:
            left_out.append(left_out_text(spec, error, f" for {name}"))
    return Side(lab, step, loading.get_inspection(lab, text, usable), tuple(left_out))


def matched_texts(first: Side) -> tuple[str, ...]:
    """Returns the sentences on which heads are matched: the page's, and examples of its model."""
    return tuple(dict.fromkeys((first.seen.text, *loading.examples(first.lab)[:N_SENTENCES])))


def _written_ns(name: str, path: str) -> int:
    return Path(path).stat().st_mtime_ns


@cached(max_entries=6, spinner="Opening a snapshot", shared=True, also=_written_ns)
def _snapshot(name: str, path: str) -> Lab:
    return Lab(load_checkpoint(find_checkpoint(name, folders=False), weights=Path(path)))


def _snapshots(name: str) -> dict[int, Path]:
    try:
        return snapshots(name)
    except RunError:
        return {}
