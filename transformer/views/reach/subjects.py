"""The subjects of the views of what came before attention: a probed vector, and models that read the same sentences."""

from dataclasses import dataclass
from pathlib import Path

from transformer.analysis.heads.pair_sample import PairSample
from transformer.analysis.reach.vector_probe import VectorProbe
from transformer.inspection.inspection import Inspection
from transformer.lab import Lab
from transformer.views.subjects import model_origin
from transformer.views.view import Origin


@dataclass(frozen=True)
class Probed:
    """A recurrent model with the probes of its fixed vector."""

    lab: Lab
    found: VectorProbe

    @property
    def origin(self) -> Origin:
        """Loads the model and fits the probes."""
        return model_origin(self.lab).then(
            "found = probe_vector(lab.checkpoint)",
            imports=["from transformer.analysis.reach.vector_probe import probe_vector"],
        )


@dataclass(frozen=True)
class SameSentence:
    """Models with what each makes of the same sentence, without switches."""

    labs: tuple[Lab, ...]
    seen: tuple[Inspection, ...]

    @property
    def origin(self) -> Origin:
        """Loads the models and decodes the sentence with each."""
        text = self.seen[0].text
        line = f"seen = tuple(lab.inspect({text!r}) for lab in labs)"
        return _loaded(self.labs).then(line, caption=f"{_names(self.labs)} · {text}")


@dataclass(frozen=True)
class SamePairs:
    """Models that read the same validation pairs, those of the first model's corpus."""

    labs: tuple[Lab, ...]
    sample: PairSample

    @property
    def origin(self) -> Origin:
        """Loads the models and reads the pairs."""
        return _loaded(self.labs).then(
            f"sample = validation_sample(labs[0].checkpoint, {len(self.sample.pairs)})",
            imports=["from transformer.analysis.heads.pair_sample import validation_sample"],
            caption=f"{_names(self.labs)} · measured on {self.sample.description}",
        )


def _loaded(labs: tuple[Lab, ...]) -> Origin:
    """Returns the lines that load the models as `labs`."""
    origins = [model_origin(lab) for lab in labs]
    loaded = [line.removeprefix("lab = ") for origin in origins for line in origin.lines]
    imports = dict.fromkeys(line for origin in origins for line in origin.imports)
    names = "-and-".join(Path(lab.name).name for lab in labs)
    return Origin(names, _names(labs), tuple(imports), (f"labs = ({', '.join(loaded)},)",))


def _names(labs: tuple[Lab, ...]) -> str:
    return ", ".join(lab.name for lab in labs)
