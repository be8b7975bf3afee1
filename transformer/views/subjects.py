"""What views are of, and the lines of Python that make it: a model, a decoded sentence, a comparison, a batch, runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.analysis.attention.mask_leakage import Leak
from transformer.analysis.trace.trace import Trace
from transformer.inspection.inspection import Comparison, Inspection
from transformer.interventions import Intervention
from transformer.lab import Lab
from transformer.runs.status import SNAPSHOTS
from transformer.views.view import Opening

_LOAD = "from transformer import load"
_PARSE = "from transformer.interventions import parse_intervention"


@dataclass(frozen=True)
class Model:
    """A model, without a sentence; `data` takes `lab`."""

    lab: Lab

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        return _then(self.lab)

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model's name."""
        return self.lab.name


@dataclass(frozen=True)
class Decoding:
    """A sentence decoded under switches; `data` takes `lab, seen`."""

    lab: Lab
    seen: Inspection

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        return _then(self.lab, decoding_line("seen", "lab", self.seen), self.seen.interventions)

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model, the sentence and the switches."""
        return _caption(self.lab.name, self.seen.text, self.seen.interventions)


@dataclass(frozen=True)
class Traced:
    """A decoded sentence with one recorded pass over it and its output; `data` takes `lab, seen, trace`."""

    lab: Lab
    seen: Inspection
    trace: Trace

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "seen": self.seen, "trace": self.trace}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        decoded = Decoding(self.lab, self.seen).opening
        step = f", step={self.trace.last}" if self.trace.sees_later else ""
        return Opening(decoded.imports, (*decoded.lines, f"trace = lab.trace(seen{step})"))

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model, the sentence and the switches."""
        return Decoding(self.lab, self.seen).caption


@dataclass(frozen=True)
class Compared:
    """A sentence decoded without and with switches; `data` takes `lab, comparison`."""

    lab: Lab
    comparison: Comparison

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "comparison": self.comparison}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        after = self.comparison.after
        line = f"comparison = lab.compare({after.text!r}, {_switches(after.interventions)})"
        return _then(self.lab, line, after.interventions)

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model, the sentence and the switches."""
        after = self.comparison.after
        return _caption(self.lab.name, after.text, after.interventions)


@dataclass(frozen=True)
class SideBySide:
    """Two models on one sentence, or two sentences through one model; `data` takes `first, left, second, right`."""

    first: Lab
    left: Inspection
    second: Lab
    right: Inspection

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"first": self.first, "left": self.left, "second": self.second, "right": self.right}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        same = self.first.checkpoint.weights_file == self.second.checkpoint.weights_file
        imports, loaded = _loaded(self.first)
        also, again = ((), "first") if same else _loaded(self.second)
        specs = (*self.left.interventions, *self.right.interventions)
        lines = (
            f"first = {loaded}",
            f"second = {again}",
            decoding_line("left", "first", self.left),
            decoding_line("right", "second", self.right),
        )
        return Opening((*imports, *also, *((_PARSE,) if specs else ())), lines)

    @property
    def stem(self) -> str:
        """The names of both models, with the step of a snapshot."""
        return "-and-".join(dict.fromkeys(map(_stem, (self.first, self.second))))

    @property
    def caption(self) -> str:
        """The models, the sentences and the switches of both."""
        sides = ((self.first, self.left), (self.second, self.right))
        return " — ".join(_caption(_stem(lab), seen.text, seen.interventions) for lab, seen in sides)


@dataclass(frozen=True)
class Batch:
    """Sentences read as one batch, with all masks and without some; `data` takes `lab, leak`."""

    lab: Lab
    leak: Leak

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "leak": self.leak}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        line = f"leak = lab.leak({self.leak.texts!r}, {_switches(self.leak.off)})"
        return _then(self.lab, line, self.leak.off)

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model, the sentences and the masks that are off."""
        return _caption(self.lab.name, " / ".join(self.leak.texts), self.leak.off)


@dataclass(frozen=True)
class Runs:
    """Folders of runs or models; `data` takes `runs`, a tuple of paths."""

    runs: tuple[Path, ...]

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"runs": self.runs}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        names = tuple(run.name for run in self.runs)
        line = f"runs = tuple(find_checkpoint(name) for name in {names!r})"
        return Opening(("from transformer.checkpoints.store import find_checkpoint",), (line,))

    @property
    def stem(self) -> str:
        """The run's name, or how many there are."""
        return self.runs[0].name if len(self.runs) == 1 else f"{len(self.runs)}-runs"

    @property
    def caption(self) -> str:
        """The names of the runs."""
        return ", ".join(run.name for run in self.runs)


def decoding_line(name: str, lab: str, seen: Inspection) -> str:
    """The line that decodes a sentence as it was decoded, with the model called `lab`."""
    arguments = [repr(seen.text)]
    if seen.interventions or seen.forced:
        arguments.append(_switches(seen.interventions))
    if seen.forced:
        arguments.append(repr(dict(seen.forced)))
    return f"{name} = {lab}.inspect({', '.join(arguments)})"


def snapshot_step(lab: Lab) -> int | None:
    """Returns the step of the run at which a model's weights were kept; None for the weights at the end."""
    file = lab.checkpoint.weights_file
    return int(file.stem) if file.parent.name == SNAPSHOTS and file.stem.isdecimal() else None


def _stem(lab: Lab) -> str:
    step = snapshot_step(lab)
    return lab.name if step is None else f"{lab.name}-step{step}"


def _loaded(lab: Lab) -> tuple[tuple[str, ...], str]:
    """The imports and the expression that load a model, or a snapshot of its run."""
    step = snapshot_step(lab)
    if step is None:
        return (_LOAD,), f"load({lab.name!r})"
    imports = (
        "from transformer.checkpoints.settings import find_checkpoint",
        "from transformer.checkpoints.store import load_checkpoint",
        "from transformer.lab import Lab",
        "from transformer.runs.run_folder import snapshots",
    )
    return imports, f"Lab(load_checkpoint(find_checkpoint({lab.name!r}), weights=snapshots({lab.name!r})[{step}]))"


def _then(lab: Lab, line: str = "", switches: Iterable[Intervention] = ()) -> Opening:
    """Loads the model, then runs the line; switches are parsed where there are any."""
    imports, loaded = _loaded(lab)
    if tuple(switches):
        imports = (*imports, _PARSE)
    return Opening(imports, (f"lab = {loaded}", line) if line else (f"lab = {loaded}",))


def _switches(specs: Iterable[Intervention]) -> str:
    return f"[{', '.join(f'parse_intervention({str(spec)!r})' for spec in specs)}]"


def _caption(name: str, text: str, switches: Iterable[Intervention]) -> str:
    return " · ".join(filter(None, (name, text, " ".join(map(str, switches)))))
