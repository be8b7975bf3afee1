"""What is taken away of the inside of a step: the logit lens and the contributions to a difference of two logits."""

from collections.abc import Sequence

import numpy as np

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, papered, take_away
from pages.steps.branches import Walk
from pages.steps.export_steps import WITHOUT, road_lines
from transformer.analysis.steps.logit_lens import LogitLens
from transformer.figures.steps.logit_lens import Depth, Share, contribution_bars, lens_figure
from transformer.figures.tables import Table, numbered
from transformer.model.kinds import KindName

N_TOKENS = 4
"""Tokens at each depth."""
N_SHOWN = 14
"""Parts with a bar of their own; all others share one."""
DEPTH = "{} layer {}"
KINDS: dict[str, KindName] = {"self": "decoder_self", "cross": "cross"}
"""The attention whose colour a part has, by its block."""
_LOOK = "look_inside(lab.model, seen.source_ids, seen.target_ids, {}, {})"


def take_lens_away(context: PageContext, walk: Walk, inside: LogitLens, depths: Sequence[Depth]) -> None:
    """The popover under the predictions of every depth."""
    take_away(context, "decoder-steps", {"logit lens": lambda: _lens(context, walk, inside, depths)}, key="take-lens")


def _lens(context: PageContext, walk: Walk, inside: LogitLens, depths: Sequence[Depth]) -> Export:
    written, step, piece = walk.written, walk.step, context.lab.tokenizer.piece
    figure = lens_figure(depths, piece(written), before_name="without switches", dark=is_dark())
    switched = bool(context.view.switches)
    imports = [
        "import numpy as np",
        "from transformer.analysis.steps.candidates import candidates, rank",
        "from transformer.analysis.steps.logit_lens import look_inside",
        "from transformer.figures.steps.logit_lens import Depth, lens_figure",
    ]
    lines = [
        *road_lines(context, walk, imports),
        f"numbers = {_LOOK.format(step, 'seen.interventions')}.readings",
        *[f"usual = {_LOOK.format(step, '()')}.readings"] * switched,
        f"written, depths = seen.target_ids[{step}], []",
        "for depth, row in enumerate(numbers):",
        f"    found = candidates(row, {N_TOKENS})",
        "    name = f'after layer {depth - 1}' if depth else 'before layer 0'",
        "    tokens = tuple(lab.tokenizer.piece(token) for token in found.ids)",
        *["    before = rank(usual[depth], written), float(np.exp(usual[depth, written]))"] * switched,
        "    place = rank(row, written), float(np.exp(row[written]))",
        f"    depths.append(Depth(name, tokens, found.probabilities, *place{', before' * switched}))",
        "figure = lens_figure(depths, lab.tokenizer.piece(written), before_name='without switches')",
    ]
    names = [depth.name for depth in depths]
    tokens = numbered([piece(token) for token in range(inside.readings.shape[1])])
    table = Table("log-probability", inside.readings, names, tokens)
    own = np.array([(d.rank, d.probability, *(d.before or ())) for d in depths], dtype=np.float64)
    columns = ["rank", "probability", *[f"{what}, {WITHOUT}" for what in ("rank", "probability")] * switched]
    followed = Table(f"of {piece(written)}", own, names, columns)
    name = f"{context.lab.name}-step{step}-lens"
    return Export(name, papered(figure, dark=is_dark(), width=760), (table, followed), "\n".join(lines))


def take_contributions_away(context: PageContext, walk: Walk, against: int, shares: Sequence[Share]) -> None:
    """The popover under what chose one token over another."""
    make = {"contributions": lambda: _contributions(context, walk, against, shares)}
    take_away(context, "decoder-steps", make, key="take-contributions")


def _contributions(context: PageContext, walk: Walk, against: int, shares: Sequence[Share]) -> Export:
    piece, step, switched = context.lab.tokenizer.piece, walk.step, bool(context.view.switches)
    figure = contribution_bars(
        shares, raised=piece(walk.written), lowered=piece(against), before_name=WITHOUT, dark=is_dark()
    )
    pair = f"lab.model, {walk.written}, {against}"
    imports = [
        "from transformer.analysis.steps.logit_lens import look_inside",
        "from transformer.figures.steps.logit_lens import Share, contribution_bars",
    ]
    usual = [
        f"usual = {_LOOK.format(step, '()')}",
        f"before = dict(usual.contributions({pair}))",
    ]
    old, rest_old, sum_old = "", "None", "None"
    if switched:
        old, rest_old = ", before.get(part, 0.0)", "sum(before.get(part, 0.0) for part, _ in rest)"
        sum_old = "usual.difference(written, other)"
    lines = [
        *road_lines(context, walk, imports),
        f"inside = {_LOOK.format(step, 'seen.interventions')}",
        *usual * switched,
        f"written, other = {walk.written}, {against}",
        f"parts = sorted(inside.contributions({pair}), key=lambda pair: -abs(pair[1]))",
        "numbers = [value for _, value in parts]",
        f"kinds = {KINDS!r}",
        f"shares = [Share(part.title, value, kinds.get(part.block or ''){old}) for part, value in parts[:{N_SHOWN}]]",
        f"rest = parts[{N_SHOWN}:]",
        "if rest:",
        "    value = sum(value for _, value in rest)",
        f"    shares.append(Share(f'{{len(rest)}} other parts', value, None, {rest_old}))",
        f"shares.append(Share('together', inside.difference(written, other), None, {sum_old}))",
        "raised, lowered = lab.tokenizer.piece(written), lab.tokenizer.piece(other)",
        f"figure = contribution_bars(shares, raised=raised, lowered=lowered, before_name={WITHOUT!r})",
    ]
    values = [[share.value, *([share.before] * switched)] for share in shares]
    columns = ["logits", *[WITHOUT] * switched]
    table = Table("contribution", np.array(values, dtype=np.float64), [share.name for share in shares], columns)
    name = f"{context.lab.name}-step{step}-contributions"
    return Export(name, papered(figure, dark=is_dark(), width=760), (table,), "\n".join(lines))
