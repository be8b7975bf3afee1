"""A capsule in a notebook: its saved numbers, its models, and the check of both.

from transformer.capsules import load_capsule

capsule = load_capsule("analysis.attnlab")
capsule.seen.translation                 # decoded again, here and now
capsule.probabilities                    # as they were saved
capsule.figures[0].tables[0]             # the numbers of a figure, a DataFrame
[row for row in capsule.verify() if not row.holds]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from transformer.capsules.arrays import LOG_PROBS, TARGET_IDS, weights_name
from transformer.capsules.capsule import Capsule, read_capsule, verify
from transformer.capsules.comparison import Compared
from transformer.capsules.contents import CapsuleError, Manifest, SavedFigure
from transformer.capsules.models import OpenedModel, open_model
from transformer.inspection.inspection import Inspection
from transformer.interventions import parse_intervention
from transformer.lab import Lab
from transformer.model.kinds import AttentionKind, KindName


@dataclass(frozen=True)
class LoadedCapsule:
    """A capsule with its models open. The properties speak of its first decoding."""

    capsule: Capsule
    models: Mapping[str, OpenedModel]
    """By their names in the capsule."""

    @property
    def manifest(self) -> Manifest:
        """The page, the sentences, the switches, the notes, the versions."""
        return self.capsule.manifest

    @property
    def figures(self) -> tuple[SavedFigure, ...]:
        """The figures of its page with their tables."""
        return self.capsule.figures

    @property
    def lab(self) -> Lab:
        """The model."""
        return self.models[self._first.model].lab

    @cached_property
    def seen(self) -> Inspection:
        """The sentence decoded again here."""
        first = self._first
        return self.lab.inspect(first.text, map(parse_intervention, first.switches), dict(first.forced))

    @property
    def probabilities(self) -> Float[ndarray, " step"]:
        """The saved probability of each written token."""
        saved = self.capsule.results[0]
        return np.exp(saved[LOG_PROBS][np.arange(len(saved[TARGET_IDS])), saved[TARGET_IDS]])

    def weights(self, kind: KindName = "cross") -> Float[ndarray, "layer head query key"]:
        """Returns the saved weights of a kind of attention."""
        return self.capsule.results[0][weights_name(AttentionKind(kind))]

    def verify(self) -> tuple[Compared, ...]:
        """Decodes every sentence again and compares all numbers with the saved ones."""
        return verify(self.capsule, self.models)

    @property
    def _first(self):
        if not self.manifest.decodings:
            raise CapsuleError("it holds no decoded sentence")
        return self.manifest.decodings[0]


def load_capsule(path: str | Path) -> LoadedCapsule:
    """Reads a capsule and opens its models; CapsuleError where it cannot be read, trusted or opened."""
    try:
        with Path(path).open("rb") as file:
            capsule = read_capsule(file)
            return LoadedCapsule(capsule, {model.name: open_model(model, file) for model in capsule.manifest.models})
    except CapsuleError as error:
        raise CapsuleError(f"{path}: {error}") from error
