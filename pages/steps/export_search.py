"""What is taken away of a beam search and of samples."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from pages.steps.branches import Walk
from pages.steps.choices import Choices
from transformer.analysis.steps.candidates import candidates
from transformer.analysis.steps.samples import Sampling, Sample
from transformer.analysis.steps.search_tree import SearchTree
from transformer.figures.tables import Table, numbered


def take_search_away(
    context: PageContext, chosen: Choices, tree: SearchTree, index: int, drawn: go.Figure, attention: go.Figure
) -> None:
    """The popover under a search's tree and the attention of one of its hypotheses."""
    figures = {
        "tree": lambda: _tree(context, chosen, tree, index, drawn),
        "attention": lambda: _attention(context, chosen, tree, index, attention),
    }
    take_away(context, "decoder-steps", figures, key="take-search")


def _search_lines(context: PageContext, chosen: Choices, imports: Sequence[str]) -> list[str]:
    settings = f"size={chosen.beam}, alpha={chosen.alpha!r}, norm={chosen.norm!r}"
    settings += f", early_stopping={chosen.stop == 'early'}"
    return [
        *opening_lines(context, ["from transformer.analysis.steps.search_tree import search_tree", *imports]),
        f"tree = search_tree(lab.model, seen.source_ids, seen.interventions, {settings})",
    ]


def _tree(context: PageContext, chosen: Choices, tree: SearchTree, index: int, figure: go.Figure) -> Export:
    lines = [
        *_search_lines(context, chosen, ["from transformer.figures.steps.search_tree import Branch, tree_figure"]),
        "numbers = [node.score for node in tree.nodes]",
        "branches = [",
        "    Branch(n.step, lab.tokenizer.piece(n.token), n.parent, n.log_prob, n.score, n.fate, n.on_best, n.fate)",
        "    for n in tree.nodes",
        "]",
        f"figure = tree_figure(branches, chosen={index})",
    ]
    columns = ["step", "token", "continues", "rank", "log-probability", "score", "best way"]
    rows = [
        (n.step, n.token, -1 if n.parent is None else n.parent, n.rank, n.log_prob, n.score, n.on_best)
        for n in tree.nodes
    ]
    names = numbered([f"{context.lab.tokenizer.piece(n.token)}, {n.fate}" for n in tree.nodes])
    table = Table("candidates", np.array(rows, dtype=np.float64), names, columns)
    return Export(f"{context.lab.name}-beam{chosen.beam}", _papered(figure), (table,), "\n".join(lines))


def _attention(context: PageContext, chosen: Choices, tree: SearchTree, index: int, figure: go.Figure) -> Export:
    average = context.view.head is None
    read = f"head_average({{}}, {context.layer})" if average else f"{{}}[{context.layer}, {context.head}]"
    imports = [
        "from transformer.figures.attention.matrix import head_heatmap",
        *["from transformer.analysis.heads.importance import head_average"] * average,
    ]
    lines = [
        *_search_lines(context, chosen, imports),
        f"numbers = {read.format(f'tree.attention({index})')}",
        f"written = [lab.tokenizer.piece(node.token) for node in tree.path({index})]",
        "figure = head_heatmap(numbers, written, seen.cross.keys, kind='cross')",
    ]
    written = numbered([context.lab.tokenizer.piece(node.token) for node in tree.path(index)])
    (heat, *_) = figure.data
    table = Table("weight", np.asarray(heat.z), written, numbered(context.inspection.cross.keys))  # type: ignore[attr-defined]
    name = f"{context.lab.name}-beam{chosen.beam}-candidate{index}-attention"
    return Export(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def take_samples_away(
    context: PageContext, chosen: Choices, draw: Sampling, found: Sequence[Sample], shown: int, drawn: go.Figure
) -> None:
    """The popover under a tree of samples."""
    figures = {"tree": lambda: _samples(context, chosen, draw, found, shown, drawn)}
    take_away(context, "decoder-steps", figures, key="take-samples")


def take_distribution_away(context: PageContext, walk: Walk, draw: Sampling, drawn: go.Figure) -> None:
    """The popover under the distribution that is drawn from."""
    take_away(
        context, "decoder-steps", {"distribution": lambda: _distribution(context, walk, draw, drawn)}, key="take-draw"
    )


def _distribution(context: PageContext, walk: Walk, draw: Sampling, figure: go.Figure) -> Export:
    step, switched = walk.step, bool(context.view.switches)
    lines = opening_lines(
        context,
        [
            "import numpy as np",
            "from transformer.analysis.steps.candidates import candidates",
            "from transformer.analysis.steps.samples import Sampling",
            "from transformer.figures.steps.candidates import candidate_bars",
        ],
    )
    if forced := dict(walk.road.forced):
        lines.append(f"seen = lab.inspect(seen.text, seen.interventions, {forced!r})")
    usual = f"draw.of(lab.without_switches(seen)[{step}], never=lab.model.config.pad_id)"
    before = "np.exp(usual[list(found.ids)]).tolist()" if switched else "found.probabilities"
    name = "without the switches" if switched else "the model's own"
    lines += [
        f"draw = {draw!r}",
        f"drawn = draw.of(seen.log_probs[{step}], never=lab.model.config.pad_id)",
        *[f"usual = {usual}"] * switched,
        f"found = candidates(seen.log_probs[{step}], 10)",
        "tokens = [lab.tokenizer.piece(token) for token in found.ids]",
        "numbers = np.exp(drawn[list(found.ids)]).tolist()",
        f"figure = candidate_bars(tokens, numbers, written=None, before={before}, before_name={name!r})",
    ]
    bars, marks = figure.data
    found = candidates(walk.road.log_probs[step], len(bars.x))  # type: ignore[attr-defined]
    columns = {"drawn from": bars.x, "the model's own": found.probabilities, name: marks.x}  # type: ignore[attr-defined]
    rows = numbered([context.lab.tokenizer.piece(token) for token in found.ids])
    table = Table("probability", np.array(list(columns.values()), dtype=np.float64).T, rows, list(columns))
    away = f"{context.lab.name}-step{step}-draw"
    return Export(away, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _samples(
    context: PageContext, chosen: Choices, draw: Sampling, found: Sequence[Sample], shown: int, figure: go.Figure
) -> Export:
    n = sum(drawn.count for drawn in found)
    imports = [
        "from transformer.analysis.steps.branches import prefix_tree",
        "from transformer.analysis.steps.samples import Sampling, draws",
        "from transformer.figures.steps.branches import TreeToken, branches_figure",
    ]
    lines = [
        *opening_lines(context, imports),
        f"found = draw_samples(lab.model, seen.source_ids, seen.interventions, {draw!r}, n={n}, seed={chosen.seed})",
        "numbers = [drawn.count for drawn in found]",
        "tree = prefix_tree([drawn.ids for drawn in found], numbers)",
        f"kept = [branch for branch in tree if branch.outputs[0] < {shown}]",
        "places = {id(branch): place for place, branch in enumerate(kept)}",
        "greedy = lab.inspect(seen.text, seen.interventions).target_ids",
        "twigs = [",
        "    TreeToken(",
        "        b.step, lab.tokenizer.piece(b.token), b.row,",
        "        None if b.parent is None else places[id(tree[b.parent])],",
        f"        f'{{b.weight:g}} ×', b.weight / {n},",
        "        found[b.outputs[0]].ids[: b.step + 1] == greedy[: b.step + 1], f'{b.weight:g} samples',",
        "    )",
        "    for b in kept",
        "]",
        "figure = branches_figure(twigs)",
    ]
    tokenizer = context.lab.tokenizer
    rows = numbered([" ".join(map(tokenizer.piece, drawn.ids)) for drawn in found])
    values = np.array([[drawn.count, drawn.log_prob] for drawn in found], dtype=np.float64)
    table = Table("samples", values, rows, ["count", "log-probability"])
    return Export(f"{context.lab.name}-samples-seed{chosen.seed}", _papered(figure), (table,), "\n".join(lines))


def _papered(figure: go.Figure) -> go.Figure:
    """A tree is as wide as its labels need."""
    layout = figure.layout
    width = max(640, (layout.meta or {}).get("smallest_width", 0))  # type: ignore[attr-defined]
    return papered(figure, dark=is_dark(), width=width)
