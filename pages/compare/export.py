"""What is taken away of Two at once: both outputs, a head of each side, their difference, and heads matched."""

from collections.abc import Callable, Sequence

import numpy as np

from pages.compare.loading import Side, texts_of
from pages.compare.matching import Compared, Facing, Pair
from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, decoding_line, papered, take_away
from transformer.analysis.comparison.head_matching import Matching, Place
from transformer.figures.attention.comparison import aligned_figure, difference_figure
from transformer.figures.attention.head_matching import matching_figure
from transformer.figures.attention.matrix import AXIS_TITLES
from transformer.figures.export import matrix_figure
from transformer.figures.tables import Table, numbered


def take_outputs_away(context: PageContext, pair: Pair) -> None:
    """The popover under both outputs."""
    _take(context, pair, "outputs", lambda: _outputs(pair))


def take_head_away(context: PageContext, facing: Facing, name: str) -> None:
    """The popover under the head of one side."""
    _take(context, facing.pair, name, lambda: _head(facing, name))


def take_two_difference_away(context: PageContext, facing: Facing) -> None:
    """The popover under the difference of both heads."""
    _take(context, facing.pair, "difference", lambda: _difference(facing))


def take_matching_away(context: PageContext, facing: Facing) -> None:
    """The popover under the distances between all heads."""
    _take(context, facing.pair, "matching", lambda: _matching(facing))


def _take(context: PageContext, pair: Pair, name: str, make: Callable[[], Export]) -> None:
    said = " — ".join(" · ".join((side.name, side.seen.text)) for side in (pair.first, pair.second))
    switches = " ".join(map(str, context.view.switches))
    take_away(
        context, "two-at-once", {name: make}, key=f"take-two-{name}", said=f"{said}{' · ' * bool(switches)}{switches}"
    )


def _outputs(pair: Pair) -> Export:
    first, second = pair.first.seen, pair.second.seen
    figure = aligned_figure(
        (first.target_tokens, second.target_tokens),
        (first.probabilities, second.probabilities),
        pair.aligned,
        names=pair.labels,
        dark=is_dark(),
    )
    tables = tuple(
        Table(name, seen.probabilities[:, None], numbered(seen.target_tokens), ["probability"])
        for name, seen in (("left", first), ("right", second))
    )
    lines = [
        *_opening(
            pair, ["from transformer.inspection.token_alignment import align", _figure("comparison", "aligned_figure")]
        ),
        "tokens = left.target_tokens, right.target_tokens",
        "numbers = left.probabilities, right.probabilities",
        f"figure = aligned_figure(tokens, numbers, align(*tokens), names={pair.labels!r})",
    ]
    return Export(f"{_name(pair)}-outputs", figure, tables, "\n".join(lines))


def _head(facing: Facing, name: str) -> Export:
    _, side, (layer, head) = next(shown for shown in facing.sides if shown[0] == name)
    kind, attention = facing.kind, side.seen.attention(facing.kind)
    weights, titles = attention.weights[layer, head], AXIS_TITLES[kind]
    figure = matrix_figure(
        weights,
        attention.queries,
        attention.keys,
        kind=kind,
        titles=titles,
        mask=attention.mask[layer],
        dark=is_dark(),
    )
    lines = [
        *_opening(facing.pair, [_figure("export", "matrix_figure")]),
        f"attention = {name}.{kind}",
        f"numbers = attention.weights[{layer}, {head}]",
        "figure = matrix_figure(",
        f"    numbers, attention.queries, attention.keys, kind={kind!r},",
        f"    titles={titles!r}, mask=attention.mask[{layer}],",
        ")",
    ]
    table = Table("weight", weights, numbered(attention.queries), numbered(attention.keys))
    file = f"{_name(facing.pair)}-{name}-{kind}-layer{layer}-head{head}"
    return Export(file, figure, (table,), "\n".join(lines))


def _difference(facing: Facing) -> Export:
    compared, kind = facing.compared, facing.kind
    assert isinstance(compared, Compared), "a difference is drawn"
    left, right = facing.weights
    queries, keys = compared.first.queries, compared.first.keys
    figure = difference_figure(
        left, right, queries, keys, kind=kind, mask=facing.mask, names=("left", "right"), dark=is_dark()
    )
    lines = [
        *_opening(facing.pair, ["import numpy as np", _figure("comparison", "difference_figure")]),
        *_recorded(facing, compared),
        f"queries, keys = {list(queries)!r}, {list(keys)!r}",
        "numbers = after - before",
        "figure = difference_figure(",
        f"    before, after, queries, keys, kind={kind!r}, mask=mask, names=('left', 'right'),",
        ")",
    ]
    rows, columns = numbered(queries), numbered(keys)
    tables = tuple(
        Table(name, values, rows, columns)
        for name, values in (("left", left), ("right", right), ("right minus left", right - left))
    )
    return Export(
        f"{_name(facing.pair)}-difference-{kind}{_place(facing.here)}{_place(facing.there)}",
        papered(figure, dark=is_dark(), width=max(560, figure.layout.meta["smallest_width"])),  # type: ignore[attr-defined]
        tables,
        "\n".join(lines),
    )


def _recorded(facing: Facing, compared: Compared) -> list[str]:
    """The lines from both decodings to `before`, `after` and `mask`."""
    kind = facing.kind
    lines = [f"left, right = left.{kind}, right.{kind}"]
    if compared.how == "forced":
        lines = [
            "# both read what the left one wrote, teacher-forced",
            f"read = first.attention_on(left, left.interventions)[{kind!r}]",
            f"left, right = read, second.attention_on(left, right.interventions)[{kind!r}]",
        ]
    cuts = "", ""
    if compared.how == "aligned":
        lines += [f"rows = {compared.rows!r}  # positions that align", f"columns = {compared.columns!r}"]
        cuts = tuple(f"[np.ix_([r[{i}] for r in rows], [c[{i}] for c in columns])]" for i in (0, 1))
    for name, side, (layer, head), cut in (
        ("before", "left", facing.here, cuts[0]),
        ("after", "right", facing.there, cuts[1]),
    ):
        lines.append(f"{name} = {side}.weights[{layer}, {head}]{cut}")
    masks = f"left.mask[{facing.here[0]}]{cuts[0]}", f"right.mask[{facing.there[0]}]{cuts[1]}"
    return [*lines, f"mask = np.logical_or({', '.join(masks)})"]


def _matching(facing: Facing) -> Export:
    matching, pair, kind = facing.matching, facing.pair, facing.kind
    assert isinstance(matching, Matching), "heads are matched"
    chosen = matching.heads.index(facing.here)
    given = (matching.distances, matching.heads, matching.others, matching.partners)
    figure = matching_figure(*given, chosen=chosen, kind=kind, names=("left", "right"), dark=is_dark())
    lines = [
        *_opening(
            pair,
            [
                "from transformer.analysis.comparison.head_matching import Read, match_heads",
                _figure("matching", "matching_figure"),
            ],
        ),
        "reads = [], []",
        f"for text in {list(texts_of(pair.first))!r}:",
        "    seen = first.inspect(text, left.interventions)",
        "    for found, lab, side in (reads[0], first, left), (reads[1], second, right):",
        f"        shown = lab.attention_on(seen, side.interventions)[{kind!r}]",
        "        found.append(Read(shown.weights, shown.mask))",
        "matching = match_heads(*reads)",
        "numbers = matching.distances",
        "figure = matching_figure(",
        "    numbers, matching.heads, matching.others, matching.partners,",
        f"    chosen={chosen}, kind={kind!r}, names=('left', 'right'),",
        ")",
    ]
    rows = [f"left layer {layer} head {head}" for layer, head in matching.heads]
    columns = [f"right layer {layer} head {head}" for layer, head in matching.others]
    partners = np.array([[-1 if p is None else p] for p in matching.partners])
    tables = Table("distance", matching.distances, rows, columns), Table("partner", partners, rows, ["column"])
    width = max(480, round(120 + 36 * len(matching.others)))
    return Export(
        f"{_name(pair)}-matching-{kind}", papered(figure, dark=is_dark(), width=width), tables, "\n".join(lines)
    )


def _opening(pair: Pair, imports: Sequence[str]) -> list[str]:
    """Both models, and what each made of its sentence."""
    sides = [("first", "left", pair.first), ("second", "right", pair.second)]
    wanted, labs, decoded = list(imports), [], []
    for lab, seen, side in sides:
        same = lab == "second" and (side.lab.name, side.step) == (pair.first.lab.name, pair.first.step)
        labs.append("second = first" if same else f"{lab} = {_lab_line(side, wanted)}")
        decoded.append(decoding_line(seen, lab, side.seen.text, side.seen.interventions, wanted))
    return [*sorted(dict.fromkeys(wanted)), "", *labs, *decoded]


def _lab_line(side: Side, wanted: list[str]) -> str:
    if not side.step:
        wanted.append("from transformer import load")
        return f"load({side.lab.name!r})"
    wanted += [
        "from transformer.checkpoints.store import load_checkpoint",
        "from transformer.lab import Lab",
        "from transformer.runs.run_folder import snapshots",
        "from transformer.checkpoints.settings import find_checkpoint",
    ]
    name = side.lab.name
    return f"Lab(load_checkpoint(find_checkpoint({name!r}), weights=snapshots({name!r})[{int(side.step)}]))"


def _figure(module: str, name: str) -> str:
    return f"from transformer.figures.{module} import {name}"


def _name(pair: Pair) -> str:
    sides = [pair.first, pair.second][: 2 if pair.two == "models" else 1]
    return "-and-".join(side.lab.name + f"-step{side.step}" * bool(side.step) for side in sides)


def _place(place: Place) -> str:
    return f"-layer{place[0]}-head{place[1]}"
