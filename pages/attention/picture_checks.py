"""The badge of the large picture: the weights behind it, what was made of them, and that this is what it draws."""

from collections.abc import Iterable

import numpy as np

from pages.attention.bertviz_view import Framed
from pages.attention.picture_data import Drawing, Source
from pages.attention.picture_loading import get_vectors
from pages.attention.picture_rollout import effective_weights, residuals
from pages.shared.checks import badge, weight_checks
from transformer.analysis.attention.matrix_checks import (
    check_combination,
    check_contributions,
    check_rollout,
    put_together,
    walk_back,
    walk_back_to_source,
)
from transformer.analysis.checks import Check, agree
from transformer.lab import AttentionKind
from transformer.model.taps import Address


def check_picture(source: Source, made: Drawing | Framed | None) -> None:
    """Under the large picture; None where nothing can be drawn."""

    def run() -> Iterable[Check]:
        view, attention = source.view, source.attention
        yield from weight_checks(source.lab, source.inspection, view.kind)
        if made is None:
            return
        if isinstance(made, Framed):
            yield from _handed(made)
            return
        match view.show:
            case "weights":
                yield _combined(source, made, attention.weights[source.layer])
            case "norms":
                assert source.norms is not None, "they are drawn"
                yield from _contributions(source)
                yield _combined(source, made, source.norms[source.layer])
            case "rollout":
                yield _rollout(source, made)
                yield _arrived(source)
            case "entropy":
                yield _entropy(source, made)

    badge(run, key="proof-picture")


def _handed(made: Framed) -> Iterable[Check]:
    """That bertviz draws the weights, and in the neuron view the vectors, that it should; read out of its document."""
    found, shown, allowed = made.view.attention(), made.shown, 5.1e-5
    drawn = np.asarray(found["attn"])
    layers = made.view.parameters().get("layer_names", made.view.parameters().get("include_layers"))
    rows, columns = drawn.shape[2:]
    how = f"{drawn.size:,} numbers read back out of the drawing, which has four decimals of each"
    weights = np.nan_to_num(shown.weights[layers][:, :, :rows, :columns])
    yield agree("bertviz draws these weights", drawn, weights, allowed, how)
    if made.vectors is not None:
        q, k = made.vectors.q[layers][:, :, :rows], made.vectors.k[layers][:, :, :columns]
        yield agree("Its queries are those of the pass", found["queries"], q, allowed, "read back likewise")
        yield agree("Its keys are those of the pass", found["keys"], k, allowed, "read back likewise")


def _combined(source: Source, made: Drawing, values: np.ndarray) -> Check:
    view = source.view
    return check_combination(
        made.values,
        values[list(source.heads)],
        made.rows.positions,
        made.columns.positions,
        largest=view.combine == "max",
        rescaled=view.specials == "renormalised",
    )


def _contributions(source: Source) -> tuple[Check, ...]:
    assert source.norms is not None, "they are drawn"
    stack, sublayer = source.view.kind.where
    seen, address = source.inspection, Address(stack, source.layer, sublayer)
    return check_contributions(
        source.lab.model, seen.source_ids, seen.interventions, address, source.norms[source.layer]
    )


def _rollout(source: Source, made: Drawing) -> Check:
    seen, kind, last = source.inspection, source.view.kind, source.layer + 1
    with_residual = source.lab.model.config.residual

    def given(of: str) -> tuple[np.ndarray, list[bool]]:
        upto = None if of == "encoder_self" != kind else last
        return effective_weights(seen, of)[:upto], residuals(seen, of, with_residual)[:upto]  # type: ignore[arg-type]

    if kind != "cross":
        walked = walk_back(*given(kind))
        layers = f"through {last} layer{'s' * (last > 1)}"
    else:
        decoder, cross = given("decoder_self"), given("cross")
        walked = walk_back_to_source(walk_back(*given("encoder_self")), decoder[0], cross[0], decoder[1], cross[1])
        layers = f"through {last} decoder layer{'s' * (last > 1)} and the whole encoder"
    again = put_together(
        walked[None],
        made.rows.positions,
        made.columns.positions,
        largest=False,
        rescaled=source.view.specials == "renormalised",
    )
    return check_rollout(made.values, again, layers)


def _arrived(source: Source) -> Check:
    """That a rollout follows no row of a head of which nothing went any further in the pass."""
    seen, kind, last = source.inspection, source.view.kind, source.layer + 1
    kinds: dict[AttentionKind, int | None] = {kind: last}
    if kind == "cross":
        kinds |= {AttentionKind.ENCODER_SELF: None, AttentionKind.DECODER_SELF: last}
    lost, rows = 0, 0
    for one, upto in kinds.items():
        reached = get_vectors(source.lab, seen, one).reached[:upto]
        lost += int((effective_weights(seen, one)[:upto].any(axis=-1) & ~reached).sum())
        rows += reached.size
    how = (
        f"recorded again, weights times values of {rows:,} rows of heads against what went into W_O, and what W_O "
        "makes of it against the block's output; rows that differ and count all the same"
    )
    return Check("No look counts of which nothing arrived", lost, 0.0, how)


def _entropy(source: Source, made: Drawing) -> Check:
    weights, view = source.attention.weights, source.view
    log = np.log if view.unit == "nats" else np.log2
    rows = [at[0] for at in made.rows.positions]
    heads = list(np.ndindex(weights.shape[:2]))
    again = [[_entropy_of(weights[at][row].astype(np.float64), log) for at in heads] for row in rows]
    name = "ln" if view.unit == "nats" else "log₂"
    how = f"{len(rows) * len(heads):,} rows summed again, key by key"
    return agree(f"Entropy is −Σ w {name} w of each row", made.values, again, 1e-5, how)


def _entropy_of(row: np.ndarray, log: np.ufunc) -> float:
    return -sum(float(w * log(w)) for w in row if w > 0) if row.any() else np.nan
