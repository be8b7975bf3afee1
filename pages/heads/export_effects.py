"""What is taken away of the Heads page where heads are removed or tokens erased, with the lines that do it again."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pages.heads.choices import Removal
from pages.heads.data import Measured
from pages.heads.export_survey import (
    MAP,
    MAP_IMPORTS,
    Lines,
    chosen_place,
    map_away,
    note_of,
    number_or_nan,
    pairs_lines,
    program,
)
from pages.heads.head_text import head_name
from pages.shared import loading
from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, papered
from transformer.analysis.heads.addresses import HeadAt, heads_of
from transformer.analysis.heads.leave_one_out import Faithfulness, faithfulness, received
from transformer.analysis.heads.minimal_set import Goal, MinimalSets
from transformer.analysis.heads.validation_importance import Change
from transformer.figures.heads.bars import Bar, ranking, weight_against_effect
from transformer.figures.heads.tables import effect_map
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import Table


def worth_map(
    context: PageContext,
    removal: Removal,
    worth: str,
    measured: Measured | None,
    values: Mapping[HeadAt, float],
    quantity: str,
) -> Export:
    """The map of what heads are worth."""
    reach = max(map(abs, values.values()), default=1.0) or 1.0
    imports, lines = _worths(removal, worth, measured)
    lines = [*lines, *MAP, "reach = max(map(abs, values.values())) or 1.0"]
    look = f"quantity={quantity!r}, limits=(-reach, reach), diverging=True, chosen={chosen_place(context)!r}"
    lines.append(f"figure = head_map(numbers, blocks, {look})")
    python = program(context, [*imports, *MAP_IMPORTS], lines)
    name, limits = _named(context, f"{worth}-{removal}", measured), (-reach, reach)
    return map_away(context, name, {**values}, quantity, limits, True, python, [], note_of(measured))


def worth_ranking(
    context: PageContext,
    removal: Removal,
    worth: str,
    measured: Measured | None,
    values: Mapping[HeadAt, float],
    changes: Mapping[HeadAt, Change],
    quantity: str,
) -> Export:
    """All heads in the order of what they are worth, with their intervals."""
    rising = worth != "loss"
    order = sorted(values, key=lambda at: values[at] if rising else -values[at])
    bars = [bar_of(at, values[at], changes.get(at)) for at in order]
    imports, lines = _worths(removal, worth, measured)
    imports += [
        "from transformer.figures.heads.bars import Bar, ranking",
        "from transformer.figures.heads.tables import Block",
    ]
    interval = f"lambda at: (changes[at].{worth}.low, changes[at].{worth}.high)" if changes else "lambda at: ()"
    lines += [
        f"ends = {interval}",
        f"order = sorted(values, key=values.get{'' if rising else ', reverse=True'})",
        "numbers = [values[at] for at in order]",
        "named = lambda at: f'{Block(at.kind, at.layer).name} · head {at.head}'",
        "bars = [Bar(named(at), at.kind, values[at], *ends(at)) for at in order]",
        f"figure = ranking(bars, quantity={quantity!r})",
    ]
    table = np.array([[number_or_nan(bar.value), number_or_nan(bar.low), number_or_nan(bar.high)] for bar in bars])
    tables = (Table(quantity, table, [bar.name for bar in bars], ["value", "low", "high"]),)
    figure = papered(ranking(bars, quantity=quantity, dark=is_dark()), dark=is_dark(), width=720)
    python = program(context, imports, lines)
    return Export(_named(context, f"{worth}-ranking", measured), figure, tables, python, note_of(measured))


def _named(context: PageContext, what: str, measured: Measured | None) -> str:
    """The name of a file, with the number of pairs where it was measured on some."""
    return f"{context.lab.name}-heads-{what}" + (f"-{measured.filed}" if measured else "")


def bar_of(at: HeadAt, value: float, change: Change | None) -> Bar:
    """A head in the ranking."""
    ends = (None, None) if change is None else (change.low, change.high)
    return Bar(head_name(at), at.kind, value, *ends)


def erasure_map(context: PageContext, how: str, effect: np.ndarray) -> Export:
    """What erasing each source token costs."""
    seen = context.inspection
    figure = effect_map(effect, seen.target_tokens, seen.source_tokens, dark=is_dark())
    imports, lines = _erased(how)
    imports.append("from transformer.figures.heads.tables import effect_map")
    lines.append("figure = effect_map(numbers, seen.target_tokens, seen.source_tokens)")
    table = Table("nats lost", effect, *_sides(context))
    python = program(context, imports, lines)
    return Export(f"{context.lab.name}-erasure-{how}", papered(figure, dark=is_dark(), width=760), (table,), python)


def evidence_dots(context: PageContext, how: str, at: HeadAt, effect: np.ndarray) -> Export:
    """A head's weights against what erasing costs, and how well all heads agree with it."""
    seen = context.inspection
    weights = seen.cross.weights[at.layer, at.head]
    sides = seen.target_tokens, seen.source_tokens
    figure = weight_against_effect(weights, effect, *sides, kind="cross", dark=is_dark())
    imports, lines = _erased(how)
    imports.append("from transformer.figures.heads.bars import weight_against_effect")
    lines += [
        f"weights = seen.cross.weights[{at.layer}, {at.head}]",
        "sides = seen.target_tokens, seen.source_tokens",
        "figure = weight_against_effect(weights, numbers, *sides, kind='cross')",
    ]
    tables = tuple(Table(name, array, *_sides(context)) for name, array in (("weight", weights), ("nats lost", effect)))
    python = program(context, imports, lines)
    tables += (_correlations(context, effect),)
    return Export(f"{context.lab.name}-{at}-evidence", papered(figure, dark=is_dark(), width=640), tables, python)


def _correlations(context: PageContext, effect: np.ndarray) -> Table:
    """The rank correlations of the page's table; NaN where there is none."""
    values = {}
    for at in heads_of(context.lab.model):
        if at.kind != "decoder_self":
            weights = context.inspection.attention(at.kind).weights[at.layer, at.head].astype(np.float64)
            own = faithfulness(weights, effect) if at.kind == "cross" else Faithfulness(math.nan, 0, math.nan)
            values[head_name(at)] = own.per_token, own.n_tokens, own.pooled, received(weights, effect)
    columns = ["within a token", "tokens", "over all cells", "of the sums"]
    return Table("rank correlation", np.array(list(values.values())), list(values), columns)


def found_sets(
    context: PageContext, goal: Goal, heads: Sequence[HeadAt], exact: int, most: int, found: MinimalSets
) -> Export:
    """What is written without each of the sets found; where there is none, without the one that came nearest."""
    piece = context.lab.tokenizer.piece
    sets = [trial for trial in found.sets if trial.written]
    names = ["all heads", *(" ".join(map(str, s.heads)) + ", cut off" * (not s.ended) for s in sets)]
    outputs = [context.inspection.target_ids, *(trial.written for trial in sets)]
    if not sets:
        switches = [*context.view.switches, *found.nearest.switches]
        outputs.append(loading.get_inspection(context.lab, context.view.text, switches).target_ids)
        names.append(f"nearest: {' '.join(map(str, found.nearest.heads))}")
    changed = _changed(outputs)
    rows = [[piece(token) for token in ids] for ids in outputs]
    imports = [
        "import numpy as np",
        "from transformer.analysis.heads.addresses import HeadAt, heads_of",
        "from transformer.analysis.heads.minimal_set import Goal, minimal_set",
        "from transformer.figures.steps.outputs import outputs_figure",
    ]
    among = sorted({at.kind for at in heads})
    lines = [
        f"heads = [at for at in heads_of(lab.model) if at.kind in {among!r}]",
        *_left_out(context, heads, among),
        f"ids, goal = (seen.source_ids, seen.target_ids), {goal!r}",
        f"found = minimal_set(lab.model, *ids, goal, heads, switches=seen.interventions, exact={exact}, most={most})",
        "sets = [trial for trial in found.sets if trial.written]",
        "outputs = [seen.target_ids, *(trial.written for trial in sets)]",
        "names = ['all heads', *(' '.join(map(str, s.heads)) + ', cut off' * (not s.ended) for s in sets)]",
        *_nearest(context, found),
        "rows = [[lab.tokenizer.piece(token) for token in ids] for ids in outputs]",
        "width = max(map(len, outputs))",
        "padded = np.array([[*ids, *[-1] * (width - len(ids))] for ids in outputs])",
        "numbers = (padded != padded[0]) & (padded >= 0)",
        "figure = outputs_figure(rows, names, numbers)",
    ]
    figure = papered(outputs_figure(rows, names, changed, dark=is_dark()), dark=is_dark())
    steps = [f"step {step}" for step in range(changed.shape[1])]
    ids = np.array([[*row, *[-1] * (changed.shape[1] - len(row))] for row in outputs])
    tables = (Table("changed", changed.astype(int), names, steps), Table("token ids", ids, names, steps))
    sizes = [f"{n} head{'s' * (n != 1)}" for n in range(1, len(found.tried) + 1)]
    tables += (Table("sets tried", np.array([found.tried]), ["sets"], sizes),)
    note = ""
    if not sets:
        tables += (Table("missed by, nats", np.array([[found.nearest.margin]]), ["nearest"], ["nats"]),)
        note = f"none found up to {sizes[-1]}: the nearest set"
    return Export(f"{context.lab.name}-smallest-sets", figure, tables, program(context, imports, lines), note)


def _nearest(context: PageContext, found: MinimalSets) -> list[str]:
    """The lines that decode without the nearest set, where none was found."""
    if found.sets:
        return []
    return [
        f"without = lab.inspect({context.view.text!r}, [*seen.interventions, *found.nearest.switches])",
        "outputs.append(without.target_ids)",
        "names.append('nearest: ' + ' '.join(map(str, found.nearest.heads)))",
    ]


def _left_out(context: PageContext, heads: Sequence[HeadAt], among: Sequence[str]) -> list[str]:
    """The lines that leave out heads which are off already."""
    off = [str(at) for at in heads_of(context.lab.model) if at.kind in among and at not in heads]
    return [f"heads = [at for at in heads if str(at) not in {off!r}]  # off already"] if off else []


def _changed(outputs: Sequence[Sequence[int]]) -> np.ndarray:
    width = max(map(len, outputs))
    padded = np.array([[*ids, *[-1] * (width - len(ids))] for ids in outputs])
    return (padded != padded[0]) & (padded >= 0)


def _worths(removal: Removal, worth: str, measured: Measured | None) -> Lines:
    """The lines that measure what every head is worth."""
    means = ", means=lab.head_means.means" if removal == "mean" else ""
    if worth == "sentence" or measured is None:
        return ["from transformer.analysis.heads.importance import output_effects"], [
            "ids = seen.source_ids, seen.target_ids, seen.interventions",
            f"effects = output_effects(lab.model, *ids{means})",
            "values = {effect.at: effect.log_prob for effect in effects}",
        ]
    imports, lines = pairs_lines(measured)
    imports.append("from transformer.analysis.heads.validation_importance import validation_importance")
    return imports, [
        *lines,
        f"found = validation_importance(lab.model, pairs, lab.tokenizer{means})",
        "changes = {head.at: head for head in found.heads}",
        f"values = {{at: head.{worth}.value for at, head in changes.items()}}",
    ]


def _erased(how: str) -> Lines:
    return ["from transformer.analysis.heads.leave_one_out import erasure"], [
        f"ids = seen.source_ids, seen.target_ids, {how!r}, seen.interventions",
        "numbers = leave_one_out(lab.model, *ids)",
    ]


def _sides(context: PageContext) -> tuple[list[str], list[str]]:
    seen = context.inspection
    rows, columns = (
        [f"{i} {token}" for i, token in enumerate(side)] for side in (seen.target_tokens, seen.source_tokens)
    )
    return rows, columns
