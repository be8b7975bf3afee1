"""The subjects of the views of what came before attention: a probed vector, and models that read the same sentences."""

from dataclasses import dataclass

from transformer.analysis.reach.vector_probe import VectorProbe
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
