"""The subjects of views: a model, a decoded sentence, a comparison, a batch, runs, a plan, a text."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from transformer.analysis.attention.mask_leakage import Leak
from transformer.analysis.trace.trace import Trace
from transformer.config import AnyModelConfig, CorpusConfig, TrainConfig
from transformer.data.corpora import CORPORA
from transformer.experiments.plan import Study
from transformer.inspection.inspection import Comparison, Inspection
from transformer.interventions import Intervention
from transformer.lab import Lab
from transformer.runs.position_moments import LearnedTable
from transformer.runs.status import SNAPSHOTS
from transformer.views.view import Origin

PARSE = "from transformer.interventions import parse_intervention"


@dataclass(frozen=True)
class Model:
    """A model, without a sentence."""

    lab: Lab

    @property
    def origin(self) -> Origin:
        """Loads the model."""
        return model_origin(self.lab)


@dataclass(frozen=True)
class LearnedPositions:
    """A model's learned position table at one moment, None for a model without."""

    lab: Lab
    learned: LearnedTable | None

    @property
    def origin(self) -> Origin:
        """Loads the model and reads the table."""
        model, learned = model_origin(self.lab), self.learned
        if learned is None:
            return model.then("learned = None")
        return model.then(
            f"learned = learned_table(lab.checkpoint, {learned.stack!r}, {learned.moment!r})",
            imports=["from transformer.runs.position_moments import learned_table"],
            caption=f"{self.lab.name} · {learned.stack} · {learned.moment}",
        )


@dataclass(frozen=True)
class PairedStudy:
    """A paired study of positions."""

    study: Study

    @property
    def origin(self) -> Origin:
        """Reads the study."""
        name = self.study.name
        imports = ("from transformer.experiments.study import load_study",)
        return Origin(name, name, imports, (f"study = load_study({name!r})",))


@dataclass(frozen=True)
class Decoding:
    """A sentence decoded under switches."""

    lab: Lab
    seen: Inspection

    @property
    def origin(self) -> Origin:
        """Loads the model and decodes the sentence."""
        return decoding_origin(self.lab, self.seen)


@dataclass(frozen=True)
class Traced:
    """A decoded sentence with one recorded pass over it and its output."""

    lab: Lab
    seen: Inspection
    trace: Trace

    @property
    def origin(self) -> Origin:
        """Decodes the sentence and records the pass."""
        step = f", step={self.trace.last}" if self.trace.sees_later else ""
        return decoding_origin(self.lab, self.seen).then(f"trace = lab.trace(seen{step})")


@dataclass(frozen=True)
class Compared:
    """A sentence decoded without and with switches."""

    lab: Lab
    comparison: Comparison

    @property
    def origin(self) -> Origin:
        """Loads the model and decodes the sentence twice."""
        after = self.comparison.after
        line = f"comparison = lab.compare({after.text!r}, {switches_in_python(after.interventions)})"
        return _switched(self.lab, line, after.text, after.interventions)


@dataclass(frozen=True)
class SideBySide:
    """Two models on one sentence, or two sentences through one model."""

    first: Lab
    left: Inspection
    second: Lab
    right: Inspection

    @property
    def origin(self) -> Origin:
        """Loads the models, one only if they are the same, and decodes both sentences."""
        same = self.first.checkpoint.weights_file == self.second.checkpoint.weights_file
        imports, loaded = _loaded(self.first)
        more_imports, loaded_second = ((), "first") if same else _loaded(self.second)
        if self.left.interventions or self.right.interventions:
            more_imports = (*more_imports, PARSE)
        sides = ((_stem(self.first), self.left), (_stem(self.second), self.right))
        return Origin(
            stem="-and-".join(dict.fromkeys(stem for stem, _ in sides)),
            caption=" — ".join(_caption(stem, seen.text, seen.interventions) for stem, seen in sides),
            imports=(*imports, *more_imports),
            lines=(
                f"first = {loaded}",
                f"second = {loaded_second}",
                decoding_line("left", "first", self.left),
                decoding_line("right", "second", self.right),
            ),
        )


@dataclass(frozen=True)
class Batch:
    """Sentences read as one batch, with all masks and without some."""

    lab: Lab
    leak: Leak

    @property
    def origin(self) -> Origin:
        """Loads the model and reads the batch."""
        line = f"leak = lab.leak({self.leak.texts!r}, {switches_in_python(self.leak.off)})"
        return _switched(self.lab, line, " / ".join(self.leak.texts), self.leak.off)


@dataclass(frozen=True)
class Runs:
    """The folders of runs or models."""

    runs: tuple[Path, ...]

    @property
    def origin(self) -> Origin:
        """Finds the folders by their names."""
        names = tuple(run.name for run in self.runs)
        return Origin(
            stem=names[0] if len(names) == 1 else f"{len(names)}-runs",
            caption=", ".join(names),
            imports=("from transformer.checkpoints.store import find_checkpoint",),
            lines=(f"runs = tuple(find_checkpoint(name) for name in {names!r})",),
        )


@dataclass(frozen=True)
class Plan:
    """A model and a training that are only planned."""

    model: AnyModelConfig
    train: TrainConfig

    @property
    def origin(self) -> Origin:
        """Writes both configs; the caption is the size of the model and the steps of training."""
        model, train = self.model, self.train
        layers = f"{model.n_encoder_layers} + {model.n_decoder_layers} layers"
        return Origin(
            stem="plan",
            caption=f"{layers}, d_model {model.d_model}, {train.max_steps:,} steps",
            imports=(f"from transformer.config import {type(model).__name__}, TrainConfig",),
            lines=(f"model = {_config_in_python(model)}", f"train = {_config_in_python(train)}"),
        )


@dataclass(frozen=True)
class Text:
    """The text that a run would learn from."""

    corpus: CorpusConfig

    @property
    def origin(self) -> Origin:
        """Writes the config, with the bare name of a file: its place on this machine is of no use elsewhere."""
        shipped = self.corpus.name in CORPORA
        name = self.corpus.name if shipped else Path(self.corpus.name).name
        lines = [f"corpus = {_config_in_python(replace(self.corpus, name=name))}"]
        if not shipped:
            lines.insert(0, f"# Put {name!r}, the file that was uploaded, beside this file.")
        imports = ("from transformer.config import CorpusConfig",)
        return Origin(Path(name).stem, name, imports, tuple(lines))


def model_origin(lab: Lab) -> Origin:
    """Returns the line that loads a model as `lab`."""
    imports, loaded = _loaded(lab)
    return Origin(lab.name, lab.name, imports, (f"lab = {loaded}",))


def decoding_origin(lab: Lab, seen: Inspection) -> Origin:
    """Returns the lines that load a model as `lab` and decode a sentence with it as `seen`."""
    return _switched(lab, decoding_line("seen", "lab", seen), seen.text, seen.interventions)


def decoding_line(name: str, lab: str, seen: Inspection) -> str:
    """Returns the line that decodes a sentence as it was decoded, with the model called `lab`."""
    arguments = [repr(seen.text)]
    if seen.interventions or seen.forced:
        arguments.append(switches_in_python(seen.interventions))
    if seen.forced:
        arguments.append(repr(dict(seen.forced)))
    return f"{name} = {lab}.inspect({', '.join(arguments)})"


def switches_in_python(switches: Iterable[Intervention]) -> str:
    """Returns a Python list of the switches, which needs the import PARSE unless it is empty."""
    return f"[{', '.join(f'parse_intervention({str(switch)!r})' for switch in switches)}]"


def _switched(lab: Lab, line: str, text: str, switches: tuple[Intervention, ...]) -> Origin:
    """Returns the lines that load a model and read a text under switches."""
    imports = [PARSE] if switches else []
    return model_origin(lab).then(line, imports=imports, caption=_caption(lab.name, text, switches))


def _caption(name: str, text: str, switches: Iterable[Intervention]) -> str:
    return " · ".join(filter(None, (name, text, " ".join(map(str, switches)))))


def _snapshot_step(lab: Lab) -> int | None:
    """Returns the step of the run at which a model's weights were kept; None for the weights at the end."""
    file = lab.checkpoint.weights_file
    return int(file.stem) if file.parent.name == SNAPSHOTS and file.stem.isdecimal() else None


def _stem(lab: Lab) -> str:
    step = _snapshot_step(lab)
    return lab.name if step is None else f"{lab.name}-step{step}"


def _loaded(lab: Lab) -> tuple[tuple[str, ...], str]:
    """Returns the imports and the expression that load a model, or a snapshot of its run."""
    step = _snapshot_step(lab)
    if step is None:
        return ("from transformer import load",), f"load({lab.name!r})"
    imports = (
        "from transformer.checkpoints.settings import find_checkpoint",
        "from transformer.checkpoints.store import load_checkpoint",
        "from transformer.lab import Lab",
        "from transformer.runs.run_folder import snapshots",
    )
    return imports, f"Lab(load_checkpoint(find_checkpoint({lab.name!r}), weights=snapshots({lab.name!r})[{step}]))"


def _config_in_python(config: AnyModelConfig | TrainConfig | CorpusConfig) -> str:
    """Returns the config in Python, without its defaults."""
    changed = (field for field in fields(config) if getattr(config, field.name) != field.default)
    return f"{type(config).__name__}({', '.join(f'{f.name}={getattr(config, f.name)!r}' for f in changed)})"
