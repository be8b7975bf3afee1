"""What is taken away of one step of a decoding: its candidates, where it looked, and the roads around it."""

from collections.abc import Sequence

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from pages.steps.branches import Walk
from pages.steps.candidates import N_CANDIDATES, candidates_figure, next_of_reference, row_figure, step_candidates
from pages.steps.choices import Choices
from pages.steps.loading import Baseline, get_usual
from transformer.figures.tables import Table, numbered
from transformer.lab import AttentionKind

WITHOUT = "without the switches"


def take_step_away(context: PageContext, walk: Walk, chosen: Choices) -> None:
    """The popover under a step's three pictures."""
    figures = {
        "candidates": lambda: _candidates(context, walk, chosen),
        "cross-attention": lambda: _row(context, walk, AttentionKind.CROSS),
        "self-attention": lambda: _row(context, walk, AttentionKind.DECODER_SELF),
    }
    take_away(context, "decoder-steps", figures, key="take-step")


def road_lines(context: PageContext, walk: Walk, imports: Sequence[str]) -> list[str]:
    """The first lines of a program about a road: `seen` is what was decoded on it."""
    lines = opening_lines(context, imports)
    if forced := dict(walk.road.forced):
        lines.append(f"seen = lab.inspect(seen.text, seen.interventions, {forced!r})  # the tokens that were forced")
    return lines


def _candidates(context: PageContext, walk: Walk, chosen: Choices) -> Export:
    usual, step = _usual(context, walk), walk.step
    wanted = next_of_reference(context, walk, chosen)
    also = f"{{seen.target_ids[{step}]{f', {wanted}' * (wanted is not None)}}}"
    imports = [
        "from transformer.analysis.steps.candidates import candidates",
        "from transformer.figures.steps.candidates import candidate_bars",
        *["import math"] * (usual is not None),
    ]
    more = "" if wanted is None else f", reference=found.ids.index({wanted})"
    more += ", before=before" * (usual is not None) + ", logarithmic=True" * (chosen.scale == "log")
    lines = [
        *road_lines(context, walk, imports),
        f"found = candidates(seen.log_probs[{step}], {N_CANDIDATES}, {also})",
        "tokens = [lab.tokenizer.piece(token) for token in found.ids]",
        f"written = found.ids.index(seen.target_ids[{step}])",
        "numbers = found.probabilities",
        *["usual = lab.without_switches(seen)"] * (usual is not None),
        *[f"before = [math.exp(usual[{step}, token]) for token in found.ids]"] * (usual is not None),
        f"figure = candidate_bars(tokens, numbers, written=written{more})",
    ]
    figure = candidates_figure(context, walk, chosen, usual)
    found = step_candidates(context, walk, chosen)
    tokens = numbered([context.lab.tokenizer.piece(token) for token in found.ids])
    values, columns = [found.probabilities], ["probability"]
    if usual is not None:
        values.append(tuple(np.exp(usual.log_probs[step][list(found.ids)]).tolist()))
        columns.append(WITHOUT)
    table = Table("probability", np.array(values).T, tokens, columns)
    name = f"{context.lab.name}-step{step}-candidates"
    return Export(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _row(context: PageContext, walk: Walk, kind: AttentionKind) -> Export:
    usual, step, attention = _usual(context, walk), walk.step, walk.road.attention(kind)
    n_keys = step + 1 if kind == "decoder_self" else len(attention.keys)
    average = context.view.head is None
    read = f"head_average({{}}, {context.layer})" if average else f"{{}}[{context.layer}, {context.head}]"
    imports = [
        "from transformer.figures.steps.candidates import row_bars",
        *["from transformer.analysis.heads.importance import head_average"] * average,
    ]
    old = f"lab.attention_on(seen, ())[{kind!r}].weights"
    lines = [
        *road_lines(context, walk, imports),
        f"numbers = {read.format(f'seen.{kind}.weights')}[{step}][:{n_keys}]",
        *[f"before = {read.format(old)}[{step}][:{n_keys}]"] * (usual is not None),
        f"keys = seen.{kind}.keys[:{n_keys}]",
        f"figure = row_bars(numbers, keys, kind={kind!r}{', before=before' * (usual is not None)})",
    ]
    figure = row_figure(context, attention, step, usual, n_keys)
    weights = np.array([trace.x for trace in figure.data])  # type: ignore[attr-defined]
    rows = [attention.queries[step], f"{attention.queries[step]}, {WITHOUT}"][: len(weights)]
    table = Table("weight", weights, rows, numbered(attention.keys[:n_keys]))
    head = "average" if average else f"head{context.head}"
    name = f"{context.lab.name}-step{step}-{kind}-layer{context.layer}-{head}"
    return Export(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _usual(context: PageContext, walk: Walk) -> Baseline | None:
    return get_usual(context.lab, walk.road) if context.view.switches else None
