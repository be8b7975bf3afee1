"""What is taken away of one step of a decoding: its candidates, where it looked, and the roads around it."""

from collections.abc import Sequence

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.step_choices import Choices
from pages.common.step_loading import Usual, get_usual
from pages.common.step_roads import Walk
from pages.common.step_view import N_CANDIDATES, candidates_figure, next_of_reference, row_figure, step_candidates
from transformer.figures.tables import Table, numbered
from transformer.lab import AttentionKind

WITHOUT = "without the switches"


def take_step_away(scene: Scene, walk: Walk, chosen: Choices) -> None:
    """The popover under a step's three pictures."""
    figures = {
        "candidates": lambda: _candidates(scene, walk, chosen),
        "cross-attention": lambda: _row(scene, walk, "cross"),
        "self-attention": lambda: _row(scene, walk, "decoder_self"),
    }
    take_away(scene, "decoder-steps", figures, key="take-step")


def road_lines(scene: Scene, walk: Walk, imports: Sequence[str]) -> list[str]:
    """The first lines of a program about a road: `seen` is what was decoded on it."""
    lines = opening_lines(scene, imports)
    if forced := dict(walk.road.forced):
        lines.append(f"seen = lab.inspect(seen.text, seen.interventions, {forced!r})  # the tokens that were forced")
    return lines


def _candidates(scene: Scene, walk: Walk, chosen: Choices) -> Away:
    usual, step = _usual(scene, walk), walk.step
    wanted = next_of_reference(scene, walk, chosen)
    also = f"{{seen.target_ids[{step}]{f', {wanted}' * (wanted is not None)}}}"
    imports = [
        "from transformer.analysis.candidates import candidates",
        "from transformer.figures.candidates import candidate_bars",
        *["import math"] * (usual is not None),
    ]
    more = "" if wanted is None else f", reference=found.ids.index({wanted})"
    more += ", before=before" * (usual is not None) + ", logarithmic=True" * (chosen.scale == "log")
    lines = [
        *road_lines(scene, walk, imports),
        f"found = candidates(seen.log_probs[{step}], {N_CANDIDATES}, {also})",
        "tokens = [lab.tokenizer.piece(token) for token in found.ids]",
        f"written = found.ids.index(seen.target_ids[{step}])",
        "numbers = found.probabilities",
        *["usual = lab.without_switches(seen)"] * (usual is not None),
        *[f"before = [math.exp(usual[{step}, token]) for token in found.ids]"] * (usual is not None),
        f"figure = candidate_bars(tokens, numbers, written=written{more})",
    ]
    figure = candidates_figure(scene, walk, chosen, usual)
    found = step_candidates(scene, walk, chosen)
    tokens = numbered([scene.lab.tokenizer.piece(token) for token in found.ids])
    values, columns = [found.probabilities], ["probability"]
    if usual is not None:
        values.append(tuple(np.exp(usual.log_probs[step][list(found.ids)]).tolist()))
        columns.append(WITHOUT)
    table = Table("probability", np.array(values).T, tokens, columns)
    name = f"{scene.lab.name}-step{step}-candidates"
    return Away(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _row(scene: Scene, walk: Walk, kind: AttentionKind) -> Away:
    usual, step, attention = _usual(scene, walk), walk.step, walk.road.attention(kind)
    n_keys = step + 1 if kind == "decoder_self" else len(attention.keys)
    average = scene.view.head is None
    read = f"head_average({{}}, {scene.layer})" if average else f"{{}}[{scene.layer}, {scene.head}]"
    imports = [
        "from transformer.figures.candidates import row_bars",
        *["from transformer.analysis.effects import head_average"] * average,
    ]
    old = f"lab.attention_on(seen, ())[{kind!r}].weights"
    lines = [
        *road_lines(scene, walk, imports),
        f"numbers = {read.format(f'seen.{kind}.weights')}[{step}][:{n_keys}]",
        *[f"before = {read.format(old)}[{step}][:{n_keys}]"] * (usual is not None),
        f"keys = seen.{kind}.keys[:{n_keys}]",
        f"figure = row_bars(numbers, keys, kind={kind!r}{', before=before' * (usual is not None)})",
    ]
    figure = row_figure(scene, attention, step, usual, n_keys)
    weights = np.array([trace.x for trace in figure.data])  # type: ignore[attr-defined]
    rows = [attention.queries[step], f"{attention.queries[step]}, {WITHOUT}"][: len(weights)]
    table = Table("weight", weights, rows, numbered(attention.keys[:n_keys]))
    head = "average" if average else f"head{scene.head}"
    name = f"{scene.lab.name}-step{step}-{kind}-layer{scene.layer}-{head}"
    return Away(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _usual(scene: Scene, walk: Walk) -> Usual | None:
    return get_usual(scene.lab, walk.road) if scene.view.switches else None
