"""What is taken away of the Attention page: the picture on the screen, and all layers and heads."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pages.common.bertviz_view import Framed
from pages.common.export_bertviz import bertviz_away
from pages.common.exports import Away, as_typed, opening_lines, take_away
from pages.common.picture_data import Drawing, Source
from pages.common.picture_rollout import residuals, silenced
from pages.common.picture_sides import groups, sides
from pages.common.pictures import forbidden_cells, framed_cell, unseen_words
from pages.common.scene import Scene, is_dark
from transformer.figures.export import matrix_figure, overview_figure
from transformer.figures.tables import Table, head_tables, numbered
from transformer.figures.theme import KIND_NAMES
from transformer.figures.token_lines import lines_figure
from transformer.lab import KIND_SITES, AttentionKind

_MERGE = "from transformer.analysis.combine import merge_words"


def take_attention_away(scene: Scene, source: Source, made: Drawing | Framed | None) -> None:
    """The popover under the chosen head's picture; `made` is what it draws, None where nothing can be drawn."""
    figures = {"All layers and heads": partial(_overview, scene, source, is_dark())}
    if isinstance(made, Framed):
        figures = {"This drawing": partial(bertviz_away, scene, source, made), **figures}
    elif made is not None:
        figures = {"This picture": partial(_picture, scene, made, is_dark()), **figures}
    take_away(scene, "attention", figures, key="take-attention")


def _picture(scene: Scene, made: Drawing, dark: bool) -> Away:
    view, (rows, columns) = scene.view, _labels(scene, made)
    if as_lines(scene):
        options = {"labels": made.ends, **_look(made)}
        figure = lines_figure(columns, rows, made.values, kind=view.kind, **options, dark=dark)
    else:
        options = {"titles": made.titles, "quantity": _quantity(made), "mask": made.mask, **_look(made)}
        options |= {"forbidden": forbidden_cells(view, made), "chosen": framed_cell(scene, made)}
        figure = matrix_figure(made.values, rows, columns, kind=view.kind, **options, dark=dark)
    name = f"{scene.lab.name}-{view.kind}-{view.show}{_place(scene)}{'-lines' * as_lines(scene)}"
    hides = "lines" if as_lines(scene) else "cells"
    note = f"a threshold hides {hides} only; all numbers are here" if made.least else ""
    return Away(
        name,
        figure,
        (Table(made.quantity, made.values, numbered(rows), numbered(columns)),),
        python_of(scene, made),
        note,
        " · ".join((KIND_NAMES[view.kind], made.what, *made.said)),
    )


def as_lines(scene: Scene) -> bool:
    """Whether the picture is lines between tokens, which entropy has not."""
    return scene.view.picture == "lines" and scene.view.show != "entropy"


def _place(scene: Scene) -> str:
    """Which layer and heads, for the name of the files."""
    view, layer = scene.view, f"-layer{scene.layer}"
    match view.show:
        case "entropy":
            return ""
        case "rollout":
            return f"-through{layer}"
        case "weights" | "norms":
            heads = "-".join(map(str, view.over)) or "all"
            return f"{layer}-head{scene.head}" if view.combine == "one" else f"{layer}-{view.combine}-{heads}"


def _labels(scene: Scene, made: Drawing) -> tuple[Sequence[str], Sequence[str]]:
    """Rows and columns, as typed where the model never saw a word."""
    rows, columns = unseen_words(scene, made)
    return as_typed(made.rows.labels, rows), as_typed(made.columns.labels, columns)


def _quantity(made: Drawing) -> str:
    return made.quantity + f" in {made.unit}" * bool(made.unit)


def _look(made: Drawing) -> dict[str, Any]:
    """How matrix and lines alike are drawn, where it is not as always."""
    usual = {"top": 1.0, "least": 0.0, "off": False}
    return {name: getattr(made, name) for name, value in usual.items() if getattr(made, name) != value}


def _overview(scene: Scene, source: Source, dark: bool) -> Away:
    attention = scene.inspection.attention(scene.view.kind)
    n_layers, n_heads, n_queries, n_keys = attention.weights.shape
    tables = head_tables(attention.weights, attention.queries, attention.keys)
    marks = {"off": sorted(source.heads_off), "at_mean": sorted(source.off - source.heads_off)}
    marks = {name: heads for name, heads in marks.items() if heads}
    lines = [
        *opening_lines(scene, ["from transformer.figures.export import overview_figure"]),
        f"attention = seen.{scene.view.kind}",
        f"numbers = attention.weights  # {n_layers} layers, {n_heads} heads, {n_queries} queries, {n_keys} keys",
        f"figure = overview_figure(numbers, kind=attention.kind, mask=attention.mask{_arguments(marks)})",
    ]
    figure = overview_figure(attention.weights, kind=scene.view.kind, mask=attention.mask, **marks, dark=dark)
    return Away(f"{scene.lab.name}-{scene.view.kind}-all-heads", figure, tables, "\n".join(lines))


def _arguments(given: Mapping[str, object]) -> str:
    """What stands behind a call's other arguments."""
    return "".join(f", {name}={value!r}" for name, value in given.items())


def python_of(scene: Scene, made: Drawing) -> str:
    """Lines that make the picture's numbers, and draw them."""
    view = scene.view
    imports = ["from transformer.figures.export import matrix_figure"]
    if as_lines(scene):
        imports = ["from transformer.figures.token_lines import lines_figure"]
    steps, more = _numbers(scene, made)
    typed = _labels(scene, made)
    labels = [f"rows = {list(typed[0])!r}", f"columns = {list(typed[1])!r}"]
    plain = view.show in ("weights", "norms") and not view.words and view.specials == "shown"
    masked = ""
    if plain:
        if typed == (made.rows.labels, made.columns.labels):
            labels = [f"rows, columns = seen.{view.kind}.queries, seen.{view.kind}.keys"]
        masked = f", mask=seen.{view.kind}.mask[{scene.layer}]"
    elif made.mask is not None and not as_lines(scene):
        masks, wanted = _mask(scene)
        steps, more, masked = [*steps, *masks], [*more, *wanted], ", mask=mask"
    forbidden = forbidden_cells(view, made)
    if forbidden is not None and forbidden.any() and not as_lines(scene):
        at = ", ".join(repr(index.tolist()) for index in np.nonzero(forbidden))
        steps += ["forbidden = np.zeros(numbers.shape, dtype=bool)", f"forbidden[{at}] = True  # by switches"]
        more, masked = [*more, "import numpy as np"], f"{masked}, forbidden=forbidden"
    chosen = framed_cell(scene, made)
    look = {**_look(made), **({} if chosen is None else {"chosen": chosen})}
    drawn = [
        "figure = matrix_figure(",
        f"    numbers, rows, columns, kind={view.kind!r}, titles={made.titles!r},",
        f"    quantity={_quantity(made)!r}{masked}{_arguments(look)},",
        ")",
    ]
    if as_lines(scene):
        options = _arguments({"labels": made.ends, **_look(made)})
        drawn = [f"figure = lines_figure(columns, rows, numbers, kind={view.kind!r}{options})"]
    lines = [
        *opening_lines(scene, [*imports, *more]),
        *steps,
        *labels,
        *drawn,
    ]
    return "\n".join(lines)


def _numbers(scene: Scene, made: Drawing) -> tuple[list[str], list[str]]:
    """The lines from the decoding to the picture's numbers, and what they import."""
    view = scene.view
    if view.show == "entropy":
        attention = f"seen.{view.kind}"
        rows, _ = sides(scene.lab, scene.inspection, view.kind, words=False)
        kept = f"numbers = numbers[{[not mark for mark in rows.special]!r}]"
        return [
            f"entropy = row_entropy({attention}.weights, {attention}.mask, {view.unit!r}).values",
            "numbers = entropy.reshape(-1, entropy.shape[-1]).T.astype('float32')  # query, layer and head",
            *[kept] * (view.specials != "shown"),
        ], ["from transformer.analysis.entropy import row_entropy"]
    steps, more = _rolled(scene) if view.show == "rollout" else _combined(scene)
    rows, columns = sides(scene.lab, scene.inspection, view.kind, words=view.words)
    if view.specials != "shown":
        more.append("from transformer.analysis.combine import leave_out")
        steps.append(f"numbers, _ = leave_out(numbers, {list(rows.special)!r}, {list(columns.special)!r})")
    if view.specials == "renormalised":
        more.append("from transformer.analysis.combine import renormalise")
        steps.append("numbers = renormalise(numbers)")
    return steps, more


def _mask(scene: Scene) -> tuple[list[str], list[str]]:
    """The lines that cut the mask as the numbers are cut, and what they import."""
    view, wanted = scene.view, []
    steps = [f"mask = seen.{view.kind}.mask[{scene.layer}]"]
    if view.show == "rollout":
        wanted.append("from transformer.analysis.rollout import arrives")
        last = scene.layer + 1
        steps = [f"mask = arrives(seen.{view.kind}.mask[:{last}], {_residuals(scene, view.kind)[:last]!r})"]
    rows, columns = sides(scene.lab, scene.inspection, view.kind, words=view.words)
    if view.words:
        wanted.append("from transformer.analysis.combine import merge_masks")
        steps.append(f"mask = merge_masks(mask, {groups(rows)!r}, {groups(columns)!r})")
    if view.specials != "shown":
        kept = [[not mark for mark in side.special] for side in (rows, columns)]
        steps.append(f"mask = mask[{kept[0]!r}][:, {kept[1]!r}]")
    return steps, wanted


def _combined(scene: Scene) -> tuple[list[str], list[str]]:
    view, steps = scene.view, []
    more = ["from transformer.analysis.combine import combine_heads"]
    values = f"seen.{view.kind}.weights[{scene.layer}]"
    if view.show == "norms":
        stack, block = KIND_SITES[view.kind]
        more.append("from transformer.analysis.vectors import record_vectors")
        steps = [
            f"vectors = record_vectors(lab.model, seen.source_ids, seen.interventions, {stack!r}, {block!r})",
            f"norms = vectors.contributions(seen.{view.kind}.weights)",
        ]
        values = f"norms[{scene.layer}]"
    everything = tuple(range(scene.lab.model.config.n_heads))
    heads = (scene.head,) if view.combine == "one" else view.over or everything
    how = "max" if view.combine == "max" else "mean"
    if view.words:
        steps.append(_merged(scene, "words", values))
        more.append(_MERGE)
        values = "words"
    return [*steps, f"numbers = combine_heads({values}, {heads!r}, {how!r})"], more


def _merged(scene: Scene, name: str, values: str) -> str:
    """The line that merges pieces into words."""
    rows, columns = sides(scene.lab, scene.inspection, scene.view.kind, words=True)
    return f"{name} = merge_words({values}, {groups(rows)!r}, {groups(columns)!r})"


def _rolled(scene: Scene) -> tuple[list[str], list[str]]:
    steps, more = _rollout(scene)
    merged = scene.view.words
    return [*steps, *[_merged(scene, "numbers", "numbers")] * merged], [*more, *[_MERGE] * merged]


def _rollout(scene: Scene) -> tuple[list[str], list[str]]:
    """Rollout of what goes any further."""
    view = scene.view
    if view.kind != "cross":
        lines = _effective(scene, view.kind, "weights")
        rolled = f"numbers = rollout(weights, {_residuals(scene, view.kind)!r})[{scene.layer}].astype('float32')"
        return [*lines, rolled], ["from transformer.analysis.rollout import rollout"]
    lines = [
        *_effective(scene, "encoder_self", "encoder"),
        *_effective(scene, "decoder_self", "decoder"),
        *_effective(scene, "cross", "cross"),
        f"memory = rollout(encoder, {_residuals(scene, 'encoder_self')!r})[-1]",
        f"residuals = {_residuals(scene, 'decoder_self')!r}, {_residuals(scene, 'cross')!r}",
        "both = cross_rollout(memory, decoder, cross, *residuals)",
        f"numbers = both.source[{scene.layer}].astype('float32')",
    ]
    return lines, ["from transformer.analysis.rollout import cross_rollout, rollout"]


def _effective(scene: Scene, kind: AttentionKind, name: str) -> list[str]:
    lines = [f"{name} = seen.{kind}.weights.copy()"]
    for _, at in silenced(scene.inspection, kind):
        lines.append(f"{name}[{', '.join(':' if part == slice(None) else repr(part) for part in at)}] = 0")
    return lines


def _residuals(scene: Scene, kind: AttentionKind) -> list[bool]:
    return residuals(scene.inspection, kind, scene.lab.model.config.residual)
