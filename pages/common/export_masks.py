"""What is taken away of Masks: the batch, the masks of a sentence, what leaks, and a row that sees nothing."""

import numpy as np

from pages.common.exports import Away, opening_lines, papered, take_away
from pages.common.mask_study import OFF, SHARES, SIDES, Beside, masks_off, parts_of, shares_of
from pages.common.pictures import is_dark
from pages.common.scene import Scene
from transformer.analysis.leaks import EmptyRow, Leak
from transformer.figures.export import matrix_figure
from transformer.figures.masks import batch_figure, leak_figure, masks_figure
from transformer.figures.tables import Table

_READINGS = ("softmax with -inf", "with the lowest finite number", "in this project")


def take_masks_away(scene: Scene, leak: Leak, texts: tuple[str, ...], chosen: Beside) -> None:
    """The popover under the masks of the chosen sentence."""
    figures = {
        "Masks": lambda: _masks(scene, leak, texts, chosen),
        "Batch": lambda: _batch(scene, leak, texts),
        "Leak": lambda: _leak(scene, leak, texts),
    }
    take_away(scene, "masks", figures, key="take-masks")


def take_row_away(scene: Scene, row: EmptyRow) -> None:
    """The popover under the row that may attend to nothing."""
    take_away(scene, "masks", {"row": lambda: _row(scene, row)}, key="take-row")


def _masks(scene: Scene, leak: Leak, texts: tuple[str, ...], chosen: Beside) -> Away:
    kind, row = scene.view.kind, min(chosen.row, len(texts) - 1)
    sides = SIDES[kind]
    asking, asked = (getattr(leak, side)[row] for side in sides)
    parts = parts_of(scene, asking, asked)
    made = "real_part(asked, lab.model.config.pad_id, len(asking)).copy()", "causal_part(len(asking))"
    queries, keys = ([scene.lab.tokenizer.piece(int(token)) for token in side] for side in (asking, asked))
    figure = papered(masks_figure(parts, queries, keys, kind=kind, dark=is_dark()), dark=is_dark())
    imports = [
        "import numpy as np",
        "from transformer.analysis.leaks import causal_part, real_part",
        "from transformer.figures.masks import Part, masks_figure",
    ]
    lines = [
        f"asking, asked = leak.{sides[0]}[{row}], leak.{sides[1]}[{row}]",
        "every = np.ones((len(asking), len(asked)), dtype=bool)",
        "queries, keys = ([lab.tokenizer.piece(int(token)) for token in side] for side in (asking, asked))",
        "parts = [",
        *(
            f"    Part({part.name!r}, {'every' if part.name.endswith(OFF) else source}, {part.forbids!r}),"
            for part, source in zip(parts, made, strict=False)
        ),
        "]",
        f"figure = masks_figure(parts, queries, keys, kind={kind!r})",
        f"numbers = leak.lifted.masks[{kind!r}][{row}]  # as the pass applied it",
    ]
    rows, columns = _numbered(queries), _numbered(keys)
    tables = [Table(part.name, part.mask.astype(int), rows, columns) for part in parts]
    tables.append(Table("applied", leak.lifted.masks[kind][row].astype(int), rows, columns))
    name = f"{scene.lab.name}-masks-{kind}-sentence{row}"
    return Away(name, figure, tuple(tables), _program(scene, texts, imports, lines))


def _batch(scene: Scene, leak: Leak, texts: tuple[str, ...]) -> Away:
    pad, piece = scene.lab.model.config.pad_id, scene.lab.tokenizer.piece
    figure = batch_figure([[piece(i) for i in row] for row in leak.source.tolist()], leak.source != pad, is_dark())
    lines = [
        "numbers = leak.source",
        "rows = [[lab.tokenizer.piece(i) for i in row] for row in numbers.tolist()]",
        "figure = batch_figure(rows, numbers != lab.model.config.pad_id)",
    ]
    python = _program(scene, texts, ["from transformer.figures.masks import batch_figure"], lines)
    columns = [f"position {i}" for i in range(leak.source.shape[1])]
    table = Table("token ids", leak.source, _numbered(texts), columns)
    return Away(f"{scene.lab.name}-batch", papered(figure, dark=is_dark()), (table,), python)


def _leak(scene: Scene, leak: Leak, texts: tuple[str, ...]) -> Away:
    before, after = shares_of(leak.intact), shares_of(leak.lifted)
    losses = [reading.loss for reading in (leak.intact, leak.lifted)]
    figure = papered(leak_figure(list(SHARES), before, after, dark=is_dark()), dark=is_dark(), width=720)
    lines = [
        "kinds = 'encoder_self', 'cross', 'decoder_self'",
        "both = leak.intact, leak.lifted",
        "shares = [[*(reading.on_padding[kind] for kind in kinds), reading.on_future] for reading in both]",
        "numbers = np.array([[reading.loss, *own] for reading, own in zip(both, shares)])  # loss first",
        f"figure = leak_figure({list(SHARES)!r}, *shares)",
    ]
    imports = ["import numpy as np", "from transformer.figures.masks import leak_figure"]
    values = np.array([[loss, *shares] for loss, shares in zip(losses, (before, after), strict=True)])
    table = Table("leak", values, ["all masks on", "as switched"], ["loss, nats per token", *SHARES])
    python = _program(scene, texts, imports, lines)
    return Away(f"{scene.lab.name}-leak", figure, (table,), python, "the loss is the first number of each row")


def _row(scene: Scene, row: EmptyRow) -> Away:
    tokens = scene.inspection.source_tokens
    values = np.stack([row.plain, row.floored, row.here])
    look = {"kind": "encoder_self", "titles": ("reading", "key"), "quantity": "weight"}
    figure = matrix_figure(values, _READINGS, tokens, **look, dark=is_dark())  # type: ignore[arg-type]
    lines = [
        *opening_lines(scene, ["import numpy as np", "from transformer.figures.export import matrix_figure"]),
        "row = lab.empty_row(seen.text)",
        "numbers = np.stack([row.plain, row.floored, row.here])",
        f"look = {look!r}",
        f"figure = matrix_figure(numbers, {_READINGS!r}, seen.source_tokens, **look)",
    ]
    table = Table("weight", values, _READINGS, _numbered(tokens))
    return Away(f"{scene.lab.name}-empty-row", figure, (table,), "\n".join(lines))


def _program(scene: Scene, texts: tuple[str, ...], imports: list[str], lines: list[str]) -> str:
    off = list(masks_off(scene))
    wanted = [*imports, *["from transformer.interventions import MaskOff"] * bool(off)]
    return "\n".join([*opening_lines(scene, wanted), f"leak = lab.leak({texts!r}, {off!r})", *lines])


def _numbered(tokens: tuple[str, ...] | list[str]) -> list[str]:
    return [f"{i} {token}" for i, token in enumerate(tokens)]
