"""What is taken away of Decoder steps."""

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.step_roads import Walk
from pages.common.step_view import N_CANDIDATES
from transformer.analysis.candidates import candidates
from transformer.figures.candidates import candidate_bars
from transformer.figures.tables import Table


def take_step_away(scene: Scene, walk: Walk) -> None:
    """The popover under a step's candidates."""
    take_away(scene, "decoder-steps", {"candidates": lambda: _candidates(scene, walk)}, key="take-step")


def _candidates(scene: Scene, walk: Walk) -> Away:
    found = candidates(walk.road.log_probs[walk.step], N_CANDIDATES, {walk.written})
    tokens = [scene.lab.tokenizer.piece(token) for token in found.ids]
    figure = candidate_bars(tokens, found.probabilities, written=found.ids.index(walk.written), dark=is_dark())
    forced = dict(walk.road.forced)
    lines = opening_lines(
        scene,
        [
            "from transformer.analysis.candidates import candidates",
            "from transformer.figures.candidates import candidate_bars",
        ],
    )
    if forced:
        lines.append(f"seen = lab.inspect(seen.text, seen.interventions, {forced!r})  # the tokens that were forced")
    lines += [
        f"found = candidates(seen.log_probs[{walk.step}], {N_CANDIDATES}, {{seen.target_ids[{walk.step}]}})",
        "tokens = [lab.tokenizer.piece(token) for token in found.ids]",
        f"written = found.ids.index(seen.target_ids[{walk.step}])",
        "numbers = found.probabilities",
        "figure = candidate_bars(tokens, numbers, written=written)",
    ]
    table = Table("probability", np.array(found.probabilities)[:, None], _numbered(tokens), ["probability"])
    name = f"{scene.lab.name}-step{walk.step}-candidates"
    return Away(name, papered(figure, dark=is_dark(), width=640), (table,), "\n".join(lines))


def _numbered(tokens: list[str]) -> list[str]:
    return [f"{i} {token}" for i, token in enumerate(tokens)]
