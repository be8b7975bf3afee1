"""The recorded pass of the Walkthrough, computed once for all who look at the same sentence under the same switches."""

from collections.abc import Sequence

from pages.common.controls import Scene
from pages.common.loading import get_inspection
from pages.shared.cache import cached
from transformer.analysis.whole_pass import WholePass, record_pass, sees_later
from transformer.interventions import Intervention
from transformer.lab import Lab


def get_walk(scene: Scene, step: int) -> WholePass:
    """The pass over the scene's sentence and the output decoded from it, the step's own one where each step has other
    numbers; read-only, shared."""
    own = step if sees_later(scene.lab.model, scene.inspection.interventions) else None
    return _walk(scene.lab, scene.view.text, scene.view.switches, own)


@cached(max_entries=16, spinner="Recording one pass", shared=True)
def _walk(lab: Lab, text: str, switches: Sequence[Intervention], step: int | None) -> WholePass:
    seen = get_inspection(lab, text, switches)
    return record_pass(
        lab.model,
        seen.source_ids,
        seen.target_ids,
        seen.interventions,
        log_probs=seen.log_probs,
        source_again=(*lab.tokenizer.encode(text), lab.model.config.eos_id),
        step=step,
    )
