"""What is taken away of the output, and of the answer to a switch: both outputs, their tokens, a head's difference."""

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, page_shown, papered, take_away
from transformer.figures.attention.comparison import aligned_figure, difference_figure, probabilities_figure
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import Table, numbered
from transformer.inspection.inspection import AttentionShift, Comparison

SHIFT_SAID = "after minus before, on the same words"
_NAMES = "before", "after"


def take_output_away(context: PageContext) -> None:
    """The popover under the output, where no switch is set."""
    take_away(context, page_shown(), {"output": lambda: _output(context)}, key="take-output")


def take_compared_away(context: PageContext, comparison: Comparison) -> None:
    """The popover under the probabilities before and after."""
    figures = {
        "Probabilities": lambda: _probabilities(context, comparison),
        "Both outputs": lambda: _outputs(context, comparison),
    }
    take_away(context, page_shown(), figures, key="take-compared")


def take_shift_away(context: PageContext, shift: AttentionShift) -> None:
    """The popover under the difference of the chosen head."""
    take_away(context, page_shown(), {"difference": lambda: _difference(context, shift)}, key="take-shift")


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


def _probabilities(context: PageContext, comparison: Comparison) -> Export:
    tokens, kl = comparison.before.target_tokens, comparison.kl_divergence
    values = comparison.forced_before, comparison.forced_after, kl
    figure = probabilities_figure(tokens, *values, dark=is_dark())
    lines = [
        *_opening(context, "probabilities_figure"),
        "numbers = compared.forced_before, compared.forced_after, compared.kl_divergence",
        "figure = probabilities_figure(compared.before.target_tokens, *numbers)",
    ]
    table = Table("probability", np.stack(values, axis=-1), numbered(tokens), [*_NAMES, "KL divergence in nats"])
    width = max(560, figure.layout.meta["smallest_width"])  # type: ignore[attr-defined]
    name = f"{context.lab.name}-probabilities"
    return Export(name, papered(figure, dark=is_dark(), width=width), (table,), "\n".join(lines))


def _outputs(context: PageContext, comparison: Comparison) -> Export:
    before, after = comparison.before, comparison.after
    figure = aligned_figure(
        (before.target_tokens, after.target_tokens),
        (before.probabilities, after.probabilities),
        comparison.alignment,
        names=_NAMES,
        dark=is_dark(),
    )
    lines = [
        *_opening(context, "aligned_figure"),
        "before, after = compared.before, compared.after",
        "numbers = before.probabilities, after.probabilities",
        "figure = aligned_figure(",
        "    (before.target_tokens, after.target_tokens), numbers, compared.alignment, names=('before', 'after')",
        ")",
    ]
    tables = tuple(
        Table(name, seen.probabilities[:, None], numbered(seen.target_tokens), ["probability"])
        for name, seen in zip(_NAMES, (before, after), strict=True)
    )
    return Export(f"{context.lab.name}-before-and-after", figure, tables, "\n".join(lines))


def _difference(context: PageContext, shift: AttentionShift) -> Export:
    kind, layer, head = context.view.kind, context.layer, context.head
    before, after = shift.before[kind], shift.after[kind]
    old, new, mask = before.weights[layer, head], after.weights[layer, head], before.mask[layer] | after.mask[layer]
    figure = difference_figure(old, new, before.queries, before.keys, kind=kind, mask=mask, dark=is_dark())
    lines = [
        *_opening(context, "difference_figure"),
        "shift = lab.attention_shift(compared)  # on the same words, those of the output before",
        f"before, after = shift.before[{kind!r}], shift.after[{kind!r}]",
        f"old, new = before.weights[{layer}, {head}], after.weights[{layer}, {head}]",
        "numbers = new - old",
        f"mask = before.mask[{layer}] | after.mask[{layer}]",
        f"figure = difference_figure(old, new, before.queries, before.keys, kind={kind!r}, mask=mask)",
    ]
    rows, columns = numbered(before.queries), numbered(before.keys)
    tables = tuple(
        Table(name, values, rows, columns)
        for name, values in (("before", old), ("after", new), ("after minus before", new - old))
    )
    width = max(560, figure.layout.meta["smallest_width"])  # type: ignore[attr-defined]
    name = f"{context.lab.name}-difference-{kind}-layer{layer}-head{head}"
    said = f"{kind.label} · layer {layer} · head {head} · {SHIFT_SAID}"
    return Export(name, papered(figure, dark=is_dark(), width=width), tables, "\n".join(lines), said=said)


def _opening(context: PageContext, figure: str) -> list[str]:
    """The model, and the sentence compared with and without the switches."""
    *lines, decoded = opening_lines(context, [f"from transformer.figures.attention.comparison import {figure}"])
    return [*lines, decoded.replace("seen = lab.inspect(", "compared = lab.compare(", 1)]
