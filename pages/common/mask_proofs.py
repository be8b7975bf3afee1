"""The checks of the Masks page's figures."""

from collections.abc import Sequence

import numpy as np

from pages.common.proofs import badge
from pages.common.scene import Scene
from transformer.analysis.figure_proofs import mask_by_rule, prove_masks, prove_padding_is_invisible
from transformer.analysis.leaks import EmptyRow, Forcing, Leak
from transformer.analysis.mask_proofs import prove_empty_row, prove_forcing, prove_reading
from transformer.analysis.proofs import Proof, agree
from transformer.interventions import Intervention


def prove_batch(scene: Scene, leak: Leak, texts: Sequence[str]) -> None:
    """Each row is its sentence and its end mark; all other places are padding."""
    pad, eos, width = scene.lab.model.config.pad_id, scene.lab.model.config.eos_id, leak.source.shape[1]

    def run() -> tuple[Proof, ...]:
        again = [[*scene.lab.tokenizer.encode(text), eos] for text in texts]
        again = [[*ids, *[pad] * (width - len(ids))] for ids in again]
        claim = "Each row is its sentence, an end mark, then padding"
        return (agree(claim, leak.source, again, 0, "read token by token"),)

    badge(run, key="proof-batch")


def prove_combined(
    scene: Scene, asking: np.ndarray, asked: np.ndarray, applied: np.ndarray, combined: np.ndarray, **on: bool
) -> None:
    """That the combined mask is the one applied and the one of its rule; `on` says which masks are."""
    pad = scene.lab.model.config.pad_id
    rule = mask_by_rule(asking.tolist(), asked.tolist(), pad=pad, **on)
    badge(lambda: prove_masks(applied, combined, rule), key="proof-masks")


def prove_leak(scene: Scene, leak: Leak, off: Sequence[Intervention]) -> None:
    """With all masks nothing of the batch shows; without some, what the table says."""
    model = scene.lab.model

    def run() -> tuple[Proof, ...]:
        pad = model.config.pad_id
        source = [[token for token in row if token != pad] for row in leak.source.tolist()]
        written = [list(output) for output in leak.intact.outputs]
        shares = [*leak.intact.on_padding.values(), *[leak.intact.on_future] * model.config.causal_mask]
        how = "all layers, heads and queries"
        return (
            *prove_padding_is_invisible(model, source, written, leak.intact.losses),
            agree("With all masks no attention falls on what they hide", shares, [0.0] * len(shares), 0, how),
            *prove_reading(model, leak, leak.intact, ()),
            *(prove_reading(model, leak, leak.lifted, off) if off else ()),
        )

    badge(run, key="proof-leak")


def prove_honest(scene: Scene, measured: Forcing) -> None:
    """Of teacher forcing: what the numbers in the text say."""
    seen = scene.inspection
    badge(lambda: prove_forcing(scene.lab.model, seen.source_ids, measured), key="proof-forcing")


def prove_row(scene: Scene, row: EmptyRow) -> None:
    """Of a row that may attend to nothing."""
    badge(lambda: prove_empty_row(scene.lab.model, scene.inspection.source_ids, row), key="proof-row")
