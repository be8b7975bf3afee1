"""What is taken away of a reference read twice, and of exposure bias over many."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.shared.context import PageContext, is_dark
from pages.shared.exports import Export, opening_lines, papered, take_away
from pages.steps.loading import N_PAIRS
from transformer.analysis.steps.exposure_bias import AtPosition, ReferenceLosses
from transformer.figures.tables import Table, numbered


def take_losses_away(context: PageContext, seen: ReferenceLosses, drawn: go.Figure) -> None:
    """The popover under the losses of a reference."""
    take_away(context, "decoder-steps", {"losses": lambda: _losses(context, seen, drawn)}, key="take-losses")


def _losses(context: PageContext, seen: ReferenceLosses, figure: go.Figure) -> Export:
    ids, switched = list(seen.reference), bool(context.view.switches)
    imports = [
        "import numpy as np",
        "from transformer.analysis.steps.exposure_bias import reference_losses",
        "from transformer.figures.steps.teacher_forcing import losses_figure",
    ]
    lines = [
        *opening_lines(context, imports),
        f"reference = {ids!r}",
        "read = reference_losses(lab.model, seen.source_ids, reference, seen.interventions)",
        "numbers = np.stack((read.forced_loss, read.free_loss)).astype(float)",
        "tokens = [lab.tokenizer.piece(token) for token in reference]",
        *["usual = reference_losses(lab.model, seen.source_ids, reference)"] * switched,
        *["before = usual.forced_loss.astype(float)"] * switched,
        f"figure = losses_figure(tokens, *numbers, divergence=read.divergence{', before=before' * switched})",
    ]
    usual = [trace.y for trace in figure.data[2:]]  # type: ignore[attr-defined]
    values = np.array([seen.forced_loss, seen.free_loss, *usual], dtype=np.float64)
    tokens = numbered([context.lab.tokenizer.piece(token) for token in ids])
    rows = ["teacher-forced", "free-running", *["teacher-forced, without the switches"] * switched]
    table = Table("loss", values, rows, tokens)
    name = f"{context.lab.name}-reference-losses"
    return Export(name, papered(figure, dark=is_dark(), width=760), (table,), "\n".join(lines))


def take_exposure_away(context: PageContext, found: Sequence[AtPosition], drawn: go.Figure) -> None:
    """The popover under exposure bias by position."""
    take_away(
        context, "decoder-steps", {"exposure bias": lambda: _exposure(context, found, drawn)}, key="take-exposure"
    )


def _exposure(context: PageContext, found: Sequence[AtPosition], figure: go.Figure) -> Export:
    imports = [
        "from transformer.analysis.steps.exposure_bias import exposure",
        "from transformer.data.corpora import load_corpus",
        "from transformer.data.batches import fits",
        "from transformer.figures.steps.teacher_forcing import Measured, exposure_figure",
    ]
    lines = [
        *opening_lines(context, imports),
        f"pairs = load_corpus(lab.checkpoint.corpus_config).validation[:{2 * N_PAIRS}]",
        f"pairs = [p for p in pairs if fits(p, lab.tokenizer, lab.model.config.max_length)][:{N_PAIRS}]",
        "for read, found in exposure(lab.model, pairs, lab.tokenizer, seen.interventions, batch_tokens=512):",
        "    print(f'{read} of {len(pairs)}')",
        "numbers = [at.bias for at in found]",
        "measured = [",
        "    Measured(",
        "        a.position, a.count, a.going, a.bias, a.bias - a.bias_error, a.bias + a.bias_error,",
        "        a.forced_right / a.count, a.free_right / a.count,",
        "    )",
        "    for a in found",
        "]",
        "figure = exposure_figure(measured)",
    ]
    columns = [
        "bias",
        "half the 95 % interval",
        "sentences",
        "going on",
        "right, teacher-forced",
        "right, free-running",
    ]
    values = np.array(
        [(a.bias, a.bias_error, a.count, a.going, a.forced_right, a.free_right) for a in found], dtype=np.float64
    )
    table = Table("exposure bias", values.reshape(-1, 6), [f"position {a.position}" for a in found], columns)
    return Export(
        f"{context.lab.name}-exposure", papered(figure, dark=is_dark(), width=760), (table,), "\n".join(lines)
    )
