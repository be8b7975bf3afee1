"""What is taken away of Masks and Decoder steps."""

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.mask_study import Beside
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from pages.common.step_roads import Walk
from pages.common.step_view import N_CANDIDATES
from transformer.analysis.candidates import candidates
from transformer.analysis.leaks import Leak, causal_part, real_part
from transformer.figures.candidates import candidate_bars
from transformer.figures.masks import Part, masks_figure
from transformer.figures.tables import Table
from transformer.interventions import MaskOff


def take_masks_away(scene: Scene, leak: Leak, texts: tuple[str, ...], chosen: Beside) -> None:
    """The popover under the masks of the chosen sentence."""
    take_away(scene, "masks", {"masks": lambda: _masks(scene, leak, texts, chosen)}, key="take-masks")


def _masks(scene: Scene, leak: Leak, texts: tuple[str, ...], chosen: Beside) -> Away:
    kind, row, pad = scene.view.kind, min(chosen.row, len(texts) - 1), scene.lab.model.config.pad_id
    sides = {"encoder_self": ("source", "source"), "decoder_self": ("target", "target")}.get(kind, ("target", "source"))
    asking, asked = (getattr(leak, side)[row] for side in sides)
    off = [spec for spec in scene.view.switches if isinstance(spec, MaskOff)]
    every = np.ones((len(asking), len(asked)), dtype=bool)
    padding_off = MaskOff("cross" if kind == "cross" else "padding") in off
    made = [("padding", every if padding_off else real_part(asked, pad, len(asking)).copy())]
    sources = ["every" if padding_off else "real_part(asked, lab.model.config.pad_id, len(asking)).copy()"]
    if kind == "decoder_self" and scene.lab.model.config.causal_mask:
        made.append(("causal", every if MaskOff("causal") in off else causal_part(len(asking))))
        sources.append("every" if MaskOff("causal") in off else "causal_part(len(asking))")
    queries, keys = ([scene.lab.tokenizer.piece(int(token)) for token in side] for side in (asking, asked))
    parts = [Part(name, mask, f"closed by the {name} mask") for name, mask in made]
    figure = papered(masks_figure(parts, queries, keys, kind=kind, dark=is_dark()), dark=is_dark())
    lines = [
        *opening_lines(
            scene,
            [
                "import numpy as np",
                "from transformer.analysis.leaks import causal_part, real_part",
                "from transformer.figures.masks import Part, masks_figure",
                "from transformer.interventions import MaskOff",
            ],
        ),
        f"leak = lab.leak({texts!r}, {off!r})",
        f"asking, asked = leak.{sides[0]}[{row}], leak.{sides[1]}[{row}]",
        "every = np.ones((len(asking), len(asked)), dtype=bool)",
        "queries, keys = ([lab.tokenizer.piece(int(token)) for token in side] for side in (asking, asked))",
        "parts = [",
        *(
            f"    Part({name!r}, {source}, 'closed by the {name} mask'),"
            for (name, _), source in zip(made, sources, strict=True)
        ),
        "]",
        f"figure = masks_figure(parts, queries, keys, kind={kind!r})",
        f"numbers = leak.lifted.masks[{kind!r}][{row}]  # as the pass applied it",
    ]
    rows, columns = _numbered(queries), _numbered(keys)
    tables = [Table(name, mask.astype(int), rows, columns) for name, mask in made]
    tables.append(Table("applied", leak.lifted.masks[kind][row].astype(int), rows, columns))
    return Away(f"{scene.lab.name}-masks-{kind}-sentence{row}", figure, tuple(tables), "\n".join(lines))


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
