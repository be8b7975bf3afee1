"""Which switches can be used together on a sentence: those that cannot are left out with a sentence. Draws nothing."""

from collections.abc import Sequence
from dataclasses import replace

from pages.shared import loading
from pages.shared.interventions import intervention_names
from pages.shared.url.view_state import Problem, View, merged
from transformer.interventions import Intervention, compile_interventions
from transformer.lab import Lab


def with_usable_switches(view: View, lab: Lab) -> tuple[View, tuple[Problem, ...]]:
    """The view with the switches that fit its sentence and one another, complete, and why others had to give way."""
    kept: list[Intervention] = []
    misfits: list[Problem] = []
    for spec in view.switches:
        try:
            kept.append(usable(spec, lab, view.text, kept))
        except ValueError as error:
            misfits.append(Problem("switch", intervention_names.left_out(spec, error)))
    return replace(view, switches=merged(kept)), tuple(misfits)


def usable(spec: Intervention, lab: Lab, text: str, others: Sequence[Intervention] = ()) -> Intervention:
    """The switch with all that it needs; ValueError where model, sentence or other switches rule it out."""
    compile_interventions([*others, spec], lab.model)
    n_tokens = lab.n_source_tokens(text)
    spec.check_source(n_tokens)
    (complete,) = loading.get_resolved(lab, [spec])
    complete.check_source(n_tokens)
    return complete
