"""What views are of, and the lines of Python that make it: a model, a decoded sentence, a comparison, a batch, runs,
a plan, a text."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from transformer.analysis.attention.mask_leakage import Leak
from transformer.analysis.trace.trace import Trace
from transformer.config import CorpusConfig, ModelConfig, TrainConfig
from transformer.data.corpora import CORPORA
from transformer.experiments.plan import Study
from transformer.inspection.inspection import Comparison, Inspection
from transformer.interventions import Intervention
from transformer.lab import Lab
from transformer.runs.position_moments import LearnedTable
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
class LearnedPositions:
    """A model's learned position table at one moment, None for a model without; `data` takes `lab, learned`."""

    lab: Lab
    learned: LearnedTable | None

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"lab": self.lab, "learned": self.learned}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        load = f"lab = load({self.lab.name!r})"
        if self.learned is None:
            return Opening((_LOAD,), (load, "learned = None"))
        line = f"learned = learned_table(lab.checkpoint, {self.learned.stack!r}, {self.learned.moment!r})"
        return Opening((_LOAD, "from transformer.runs.position_moments import learned_table"), (load, line))

    @property
    def stem(self) -> str:
        """The model's name."""
        return self.lab.name

    @property
    def caption(self) -> str:
        """The model, the stack and the moment."""
        learned = self.learned
        return self.lab.name if learned is None else f"{self.lab.name} · {learned.stack} · {learned.moment}"


@dataclass(frozen=True)
class PairedStudy:
    """A paired study of positions; `data` takes `study`."""

    study: Study

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"study": self.study}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        imports = ("from transformer.experiments.study import load_study",)
        return Opening(imports, (f"study = load_study({self.study.name!r})",))

    @property
    def stem(self) -> str:
        """The study's name."""
        return self.study.name

    @property
    def caption(self) -> str:
        """The study's name."""
        return self.study.name


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


@dataclass(frozen=True)
class Plan:
    """A model and a training that are only planned; `data` takes `model, train`."""

    model: ModelConfig
    train: TrainConfig

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"model": self.model, "train": self.train}

    @property
    def opening(self) -> Opening:
        """See `Subject`."""
        lines = f"model = {_changes(self.model)}", f"train = {_changes(self.train)}"
        return Opening(("from transformer.config import ModelConfig, TrainConfig",), lines)

    @property
    def stem(self) -> str:
        """The first part of the names of files."""
        return "plan"

    @property
    def caption(self) -> str:
        """The size of the model and the steps of training."""
        model, train = self.model, self.train
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers"
        return f"{layers}, d_model {model.d_model}, {train.max_steps:,} steps"


@dataclass(frozen=True)
class Text:
    """The text that a run would learn from; `data` takes `corpus`."""

    corpus: CorpusConfig

    @property
    def given(self) -> Mapping[str, Any]:
        """See `Subject`."""
        return {"corpus": self.corpus}

    @property
    def opening(self) -> Opening:
        """See `Subject`. Of a file the name alone: its place on this machine is of no use elsewhere."""
        corpus = replace(self.corpus, name=self._name)
        lines = (f"corpus = {_changes(corpus)}",)
        if self.corpus.name not in CORPORA:
            lines = (f"# Put {self._name!r}, the file that was uploaded, beside this file.", *lines)
        return Opening(("from transformer.config import CorpusConfig",), lines)

    @property
    def stem(self) -> str:
        """The corpus's name."""
        return Path(self.corpus.name).stem

    @property
    def caption(self) -> str:
        """The corpus's name."""
        return self._name

    @property
    def _name(self) -> str:
        return self.corpus.name if self.corpus.name in CORPORA else Path(self.corpus.name).name


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


def _changes(config: ModelConfig | TrainConfig | CorpusConfig) -> str:
    """The config in Python, without what it has by default."""
    changed = (field for field in fields(config) if getattr(config, field.name) != field.default)
    return f"{type(config).__name__}({', '.join(f'{f.name}={getattr(config, f.name)!r}' for f in changed)})"


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
