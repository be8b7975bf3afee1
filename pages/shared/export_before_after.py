"""What is taken away of the output, and of the answer to a switch: both outputs, their tokens, a head's difference."""

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, page_shown, papered, take_away
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import Table, numbered


def take_output_away(context: PageContext) -> None:
    """The popover under the output, where no switch is set."""
    take_away(context, page_shown(), {"output": lambda: _output(context)}, key="take-output")


def _output(context: PageContext) -> Export:
    seen = context.inspection
    unchanged = np.zeros((1, len(seen.target_tokens)), dtype=bool)
    figure = outputs_figure(
        [seen.target_tokens], ["output"], unchanged, probabilities=[seen.probabilities], dark=is_dark()
    )
    imports = ["import numpy as np", "from transformer.figures.steps.outputs import outputs_figure"]
    lines = [
        *opening_lines(context, imports),
        "numbers = seen.probabilities",
        "unchanged = np.zeros((1, len(numbers)), dtype=bool)",
        "figure = outputs_figure([seen.target_tokens], ['output'], unchanged, probabilities=[numbers])",
    ]
    table = Table("probability", seen.probabilities[:, None], numbered(seen.target_tokens), ["probability"])
    width = max(560, figure.layout.meta["smallest_width"])  # type: ignore[attr-defined]
    away = papered(figure, dark=is_dark(), width=width)
    return Export(f"{context.lab.name}-output", away, (table,), "\n".join(lines))
