"""What is taken away of the roads of a sentence: as lines, as one tree, and two of them side by side."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from transformer.analysis.steps.branches import road_changes
from transformer.figures.steps.outputs import outputs_figure
from transformer.figures.tables import Table, numbered
from transformer.lab import Inspection

WITHOUT = "without the switches"
_SAID = ("probability",)


def take_roads_away(context: PageContext, roads: Sequence[Inspection], usual: Inspection | None) -> None:
    """The popover under the roads as lines; `usual` is the output without the switches, where there are any."""

    def away() -> Export:
        shown = _named(dict(enumerate(roads))) if usual is None else {WITHOUT: usual, **_named(dict(enumerate(roads)))}
        own = len(shown) - len(roads)
        probabilities = [road.probabilities for road in shown.values()]
        figure = outputs_figure(
            [road.target_tokens for road in shown.values()],
            list(shown),
            road_changes(list(shown.values()), own),
            probabilities=probabilities,
            dark=is_dark(),
        )
        imports = [
            "from transformer.analysis.steps.branches import road_changes",
            "from transformer.figures.steps.outputs import outputs_figure",
        ]
        lines = [
            *_road_lines(context, roads, imports),
            "shown = roads"
            if usual is None
            else "shown = [lab.inspect(seen.text), *roads]  # without the switches first",
            "tokens, numbers = zip(*[(road.target_tokens, road.probabilities) for road in shown])",
            f"changed = road_changes(shown, {own})",
            f"figure = outputs_figure(tokens, {list(shown)!r}, changed, probabilities=numbers)",
        ]
        return _away(context, "output-and-roads", figure, shown, lines)

    take_away(context, "decoder-steps", {"roads": away}, key="take-roads")


def take_tree_away(
    context: PageContext, roads: Sequence[Inspection], names: Sequence[str], walked: int, tree: go.Figure
) -> None:
    """The popover under the tree of roads."""

    def away() -> Export:
        imports = [
            "from transformer.analysis.steps.branches import road_twigs",
            "from transformer.figures.steps.branches import branches_figure",
        ]
        lines = [
            *_road_lines(context, roads, imports),
            f"names = {list(names)!r}",
            "numbers = [road.probabilities for road in roads]",
            f"figure = branches_figure(road_twigs(roads, names, {walked}))",
        ]
        return _away(context, "roads", tree, _named(dict(enumerate(roads))), lines)

    take_away(context, "decoder-steps", {"tree": away}, key="take-tree")


def take_pair_away(
    context: PageContext, roads: Sequence[Inspection], names: Sequence[str], pair: tuple[int, int], drawn: go.Figure
) -> None:
    """The popover under two roads side by side."""

    def away() -> Export:
        own = [names[index] for index in pair]
        lines = [
            *_road_lines(context, roads, ["from transformer.figures.steps.branches import two_branches_figure"]),
            f"pair = roads[{pair[0]}], roads[{pair[1]}]",
            "numbers = [road.probabilities for road in pair]",
            f"figure = two_branches_figure({own!r}, [road.target_tokens for road in pair], numbers)",
        ]
        return _away(context, "two-roads", drawn, _named({index: roads[index] for index in pair}), lines)

    take_away(context, "decoder-steps", {"two roads": away}, key="take-pair")


def _road_lines(context: PageContext, roads: Sequence[Inspection], imports: Sequence[str]) -> list[str]:
    """The first lines of a program about several roads: `roads` are the sentence's decodings, the model's own first."""
    forced = [f"    lab.inspect(seen.text, seen.interventions, {dict(road.forced)!r})," for road in roads[1:]]
    return [
        *opening_lines(context, imports),
        "roads = [  # tokens that are forced: {step: id}",
        "    seen,",
        *forced,
        "]",
    ]


def _named(roads: Mapping[int, Inspection]) -> dict[str, Inspection]:
    return {f"road {index}" if index else "output": road for index, road in roads.items()}


def _away(
    context: PageContext, name: str, figure: go.Figure, roads: Mapping[str, Inspection], lines: Sequence[str]
) -> Export:
    """A picture of roads is as wide as its labels need."""
    width = max(640, figure.layout.meta["smallest_width"])  # type: ignore[attr-defined]
    tables = tuple(
        Table(name, road.probabilities[:, None], numbered(road.target_tokens), _SAID) for name, road in roads.items()
    )
    return Export(f"{context.lab.name}-{name}", papered(figure, dark=is_dark(), width=width), tables, "\n".join(lines))
