"""The recorded pass of the Walkthrough, computed once for all who look at the same sentence under the same switches."""

from collections.abc import Sequence

from pages.shared.cache import cached
from pages.shared.controls import PageContext
from pages.shared.loading import get_inspection
from transformer.analysis.trace.trace import Trace, record_pass, sees_later
from transformer.interventions import Intervention
from transformer.lab import Lab


def get_walk(context: PageContext, step: int) -> Trace:
    """The pass over the scene's sentence and the output decoded from it, the step's own one where each step has other
    numbers; read-only, shared."""
    own = step if sees_later(context.lab.model, context.inspection.interventions) else None
    return _walk(context.lab, context.view.text, context.view.switches, own)


@cached(max_entries=16, spinner="Recording one pass", shared=True)
def _walk(lab: Lab, text: str, switches: Sequence[Intervention], step: int | None) -> Trace:
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
