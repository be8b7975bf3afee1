"""What is taken away of the Heads page: maps, bars and dots of heads, with the lines that measure them again."""

from collections.abc import Mapping, Sequence

import numpy as np

from pages.heads.choices import Measure
from pages.heads.data import Measured
from pages.heads.head_text import head_name, looked_at, sublayer_of, value_of
from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered
from transformer.analysis.heads.addresses import HeadAt, sublayers_of
from transformer.analysis.heads.similarity import alike
from transformer.analysis.heads.survey import Survey
from transformer.figures.heads.bars import profile_bars
from transformer.figures.heads.tables import Sublayer, head_map, likeness_map
from transformer.figures.tables import Table
from transformer.model.kinds import AttentionKind

Values = Mapping[HeadAt, float | None]
Lines = tuple[list[str], list[str]]
"""What is imported, and what is done with it."""

MAP = [
    "rows = blocks_of(lab.model)",
    "numbers = np.array([[values.get(at, np.nan) for at in row] for row in rows], dtype=float)",
    "blocks = [Block(row[0].kind, row[0].layer) for row in rows]",
]
MAP_IMPORTS = [
    "import numpy as np",
    "from transformer.analysis.heads.addresses import blocks_of",
    "from transformer.figures.heads.tables import Block, head_map",
]


def role_map(
    context: PageContext,
    measured: Measured,
    found: Survey,
    column: str,
    measure: Measure,
    columns: Sequence[str],
    *,
    quantity: str,
    top: float,
) -> Export:
    """The map of a column, with the whole table."""
    at = {
        "error_rate": "p.written.error_rate if p.written else np.nan",
        "accuracy": "p.written.accuracy if p.written else np.nan",
        "error_rate_read": "p.read.error_rate if p.read else np.nan",
        "entropy": "p.entropy",
        "largest": "p.largest",
    }.get(column, f"p.{measure}.get({column!r}, np.nan)")
    values: Values = {p.at: value_of(p, column, measure) for p in found.profiles}
    imports, lines = _surveyed(measured)
    lines = [*lines, f"values = {{p.at: {at} for p in found.profiles}}", *MAP]
    look = f"quantity={quantity!r}, limits=(0.0, {top!r}), chosen={chosen_place(context)!r}"
    lines.append(f"figure = head_map(numbers, blocks, {look})")
    table = np.array([[number_or_nan(value_of(p, name, measure)) for name in columns] for p in found.profiles])
    whole = Table("all columns", table, [head_name(p.at) for p in found.profiles], list(columns))
    name = f"{context.lab.name}-heads-{column}-{measured.filed}"
    python = program(context, [*imports, *MAP_IMPORTS], lines)
    return map_away(context, name, values, quantity, (0.0, top), False, python, [whole], note_of(measured))


def head_profile(context: PageContext, measured: Measured, found: Survey, at: HeadAt) -> Export:
    """Where one head's weight goes."""
    own = found.by_head[at]
    names = list(own.weight)
    titles = [looked_at(name, at.kind) for name in names]
    weights, even = [own.weight[name] for name in names], [found.even[at.kind][name] for name in names]
    imports, lines = _surveyed(measured)
    imports += [
        "from transformer.analysis.heads.addresses import HeadAt",
        "from transformer.figures.heads.bars import profile_bars",
    ]
    lines += [
        f"at = {at!r}",
        "weight, even = found.by_head[at].weight, found.even[at.kind]",
        f"names, titles = {names!r}, {titles!r}",
        "numbers = [weight[name] for name in names]",
        "figure = profile_bars(numbers, [even[name] for name in names], titles, kind=at.kind)",
    ]
    table = Table("mean weight", np.array([weights, even]).T, names, ["this head", "an even head"])
    figure = papered(profile_bars(weights, even, titles, kind=at.kind, dark=is_dark()), dark=is_dark(), width=640)
    return Export(
        f"{context.lab.name}-{at}-{measured.filed}",
        figure,
        (table,),
        program(context, imports, lines),
        note_of(measured),
    )


def likeness(context: PageContext, measured: Measured, found: Survey, kind: AttentionKind, closest: float) -> Export:
    """The distances of the heads of a kind, in groups."""
    distances, heads = found.distances[kind], [p.at for p in found.of_kind(kind)]
    groups = alike(distances, closest)
    order = [head for group in groups for head in group]
    names = [f"{heads[i].layer}·{heads[i].head}" for i in order]
    numbers = distances[np.ix_(order, order)]
    sizes = [len(group) for group in groups]
    imports, lines = _surveyed(measured)
    imports += [
        "import numpy as np",
        "from transformer.analysis.heads.similarity import alike",
        "from transformer.figures.heads.tables import likeness_map",
    ]
    lines += [
        f"distances = found.distances[{kind!r}]",
        f"groups = alike(distances, {closest!r})",
        "order = [head for group in groups for head in group]",
        "numbers = distances[np.ix_(order, order)]",
        f"heads = [p.at for p in found.of_kind({kind!r})]",
        "names = [f'{heads[i].layer}·{heads[i].head}' for i in order]",
        f"figure = likeness_map(numbers, names, kind={kind!r}, sizes=[len(group) for group in groups])",
    ]
    figure = papered(likeness_map(numbers, names, kind=kind, sizes=sizes, dark=is_dark()), dark=is_dark(), width=760)
    python = program(context, imports, lines)
    name, table = f"{context.lab.name}-{kind}-alike-{measured.filed}", Table("distance", numbers, names, names)
    return Export(name, figure, (table,), python, note_of(measured))


def map_away(
    context: PageContext,
    name: str,
    values: Values,
    quantity: str,
    limits: tuple[float, float],
    diverging: bool,
    python: str,
    more: Sequence[Table],
    note: str,
) -> Export:
    """A map of all heads, and the tables beside it."""
    rows = sublayers_of(context.lab.model)
    numbers = np.array([[number_or_nan(values.get(at)) for at in row] for row in rows])
    sublayers = [sublayer_of(row[0]) for row in rows]
    look = {"quantity": quantity, "limits": limits, "diverging": diverging, "chosen": chosen_place(context)}
    figure = head_map(numbers, sublayers, **look, dark=is_dark())
    table = Table(quantity, numbers, [b.name for b in sublayers], [f"head {i}" for i in range(numbers.shape[1])])
    return Export(name, papered(figure, dark=is_dark(), width=640), (table, *more), python, note)


def chosen_place(context: PageContext) -> tuple[int, int]:
    """The row and column of the head in hand on a map of all heads."""
    sublayers = [sublayer_of(row[0]) for row in sublayers_of(context.lab.model)]
    return sublayers.index(Sublayer(context.view.kind, context.layer)), context.head


def _surveyed(measured: Measured) -> Lines:
    imports, lines = pairs_lines(measured)
    imports.append("from transformer.analysis.heads.survey import survey")
    return imports, [*lines, f"found = survey(lab.model, pairs, lab.tokenizer, unit={measured.unit!r})"]


def pairs_lines(measured: Measured) -> Lines:
    """The lines that bring the pairs."""
    match measured.key:
        case ("validation", count):
            return [
                "from transformer.training.evaluation import fitting",
                "from transformer.data.corpus_snapshot import load_own",
            ], [
                "corpus = load_own(lab.checkpoint.settings.corpus, lab.checkpoint.folder)",
                f"pairs = fitting(corpus.validation, lab.tokenizer, lab.model.config.max_length, {count})",
            ]
    pairs = [(pair.source, pair.target) for pair in measured.pairs]
    return ["from transformer.text.pairs import Pair"], [f"pairs = [Pair(*sides) for sides in {pairs!r}]"]


def note_of(measured: Measured | None) -> str:
    """On what it was measured."""
    return "" if measured is None else f"on {measured.said}"


def program(context: PageContext, imports: Sequence[str], lines: Sequence[str]) -> str:
    """The lines from the model on."""
    return "\n".join([*opening_lines(context, imports), *lines])


def number_or_nan(value: float | None) -> float:
    """NaN where there is no number."""
    return np.nan if value is None else value
