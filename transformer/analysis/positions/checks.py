"""Checks of what is said about positions: each number is computed again from its definition, by other code."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from transformer.analysis.attention.score_reference import between
from transformer.analysis.checks import Check, agree
from transformer.analysis.positions.score_decomposition import PARTS
from transformer.analysis.positions.tables import Matrix, OffsetProfile, ShiftFit, Similarity, Table
from transformer.interventions import Intervention, compile_interventions
from transformer.model.precise import in_double
from transformer.model.taps import Recorder, Stack, chain
from transformer.model.transformer import Transformer

_Z95 = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""
_ROW_BY_ROW = "row by row again"


def check_sinusoids(table: Table, base: float) -> tuple[Check, ...]:
    """Compares every entry with the formula of section 3.5, by Python's own sine and cosine."""
    rows, width = table.shape
    again = [
        [(math.sin if j % 2 == 0 else math.cos)(pos / base ** ((j - j % 2) / width)) for j in range(width)]
        for pos in range(rows)
    ]
    how = f"{rows:,} × {width:,} entries computed one by one in double precision"
    return (agree("The sinusoids are sin and cos of pos / base^(2i/d)", table, again, 1e-4, how),)


def check_similarity(table: Table, matrix: Matrix, kind: Similarity) -> Iterator[Check]:
    """Computes every product of two rows again."""
    rows = table.astype(np.float64)
    again = np.array([(rows * row).sum(axis=1) for row in rows])
    if kind == "cosine":
        lengths = np.array([math.sqrt(math.fsum(row * row)) for row in rows])
        again = again / np.maximum(np.outer(lengths, lengths), 1e-30)
    what = "cosine" if kind == "cosine" else "dot product"
    tolerance = 1e-5 * _size(again)
    yield agree(f"Each cell is the {what} of two rows", matrix, again, tolerance, f"{again.size:,} computed again")


def check_offsets(table: Table, profile: OffsetProfile, kind: Similarity) -> Iterator[Check]:
    """Sums and searches the pairs of positions at each offset again."""
    rows = table.astype(np.float64)
    if kind == "cosine":
        rows = np.array([row / max(math.sqrt(math.fsum(row * row)), 1e-150) for row in rows])
    n = len(rows)
    diagonals = [[float((rows[i] * rows[i + k]).sum()) for i in range(n - k)] for k in range(n)]
    means = [math.fsum(diagonal) / len(diagonal) for diagonal in diagonals]
    tolerance, how = 1e-6 * _size(np.array(diagonals[0])), f"{n * (n + 1) // 2:,} pairs of positions"
    yield agree("Offsets are 0, 1, 2, …", profile.offset, range(n), 0, how)
    yield agree("The line is the mean at each offset", profile.mean, means, tolerance, f"{how} summed again")
    edges = np.array([(min(diagonal), max(diagonal)) for diagonal in diagonals]).T
    claim = "The band runs from the lowest to the highest"
    yield agree(claim, np.stack((profile.low, profile.high)), edges, tolerance, f"{how} searched again")


def check_rotation(matrix: Float[ndarray, "d_model d_model"], length: int, k: int, base: float) -> Iterator[Check]:
    """Tests that a matrix is orthogonal and turns every PE(pos) into PE(pos + k)."""
    width = len(matrix)
    how = "the matrix times its transpose against the identity"
    yield agree("The rotation keeps every length", matrix @ matrix.T, np.eye(width), 1e-9, how)
    place, rate = np.arange(length + k)[:, None], np.exp(-np.log(base) * np.arange(0, width, 2) / width)
    table = np.stack((np.sin(place * rate), np.cos(place * rate)), axis=-1).reshape(length + k, width)
    how = f"PE(0) to PE({length - 1}) turned, in double precision"
    yield agree(f"The rotation turns PE(pos) into PE(pos + {k})", table[:length] @ matrix.T, table[k:], 1e-9, how)


def check_map(table: Table, k: int, matrix: Float[ndarray, "d_model d_model"], name: str) -> Check:
    """Tests that no small change of a map fits every second position better."""
    rows = table.astype(np.float64)
    pairs = range(0, len(rows) - k, 2)
    start, end = rows[list(pairs)], rows[[pos + k for pos in pairs]]
    slope = float(np.abs(start.T @ (start @ matrix.T - end)).max())
    how = "the slope of the squared error at the map, largest of its entries"
    return Check(f"The fitted map is the least-squares map, {name}", slope, 1e-9 * _size(rows) ** 2 * rows.size, how)


def check_rotation_errors(table: Table, k: int, base: float, errors: Float[ndarray, " pair"]) -> Check:
    """Turns each row again, pair by pair of its dimensions."""
    width, again = table.shape[1], []
    for pos in range(len(table) - k):
        row, wanted = table[pos].tolist(), table[pos + k].tolist()
        off = 0.0
        for even in range(0, width, 2):
            angle = k / base ** (even / width)
            sine, cosine = row[even], row[even + 1]
            off = max(off, abs(sine * math.cos(angle) + cosine * math.sin(angle) - wanted[even]))
            off = max(off, abs(cosine * math.cos(angle) - sine * math.sin(angle) - wanted[even + 1]))
        again.append(off)
    return agree("The rotation's error at each position", errors, again, 1e-9, _ROW_BY_ROW)


def check_fit(table: Table, k: int, fit: ShiftFit, name: str) -> Iterator[Check]:
    """Tests a fitted map, then measures its errors again with that map."""
    rows = table.astype(np.float64)
    pairs = range(len(rows) - k)
    yield check_map(table, k, fit.matrix, name)
    split = [*fit.fitted, *fit.held_out]
    halves = [*pairs[::2], *pairs[1::2]]
    yield agree(f"Every second position is fitted, the others are held out, {name}", split, halves, 0, "counted")
    guesses = [fit.matrix @ rows[pos] for pos in pairs]
    again = [float(np.abs(guesses[pos] - rows[pos + k]).max()) for pos in pairs]
    claim = f"The fitted map's error at each position, {name}"
    yield agree(claim, fit.error, again, 1e-6 * _size(rows), _ROW_BY_ROW)
    mean = [math.fsum(rows[pos + k, i] for pos in pairs[::2]) / len(pairs[::2]) for i in range(rows.shape[1])]

    def unexplained(chosen: range, guess: Sequence[ndarray]) -> float:
        total = math.fsum(math.fsum((rows[pos + k] - mean) ** 2) for pos in chosen)
        missed = math.fsum(math.fsum((guess[pos] - rows[pos + k]) ** 2) for pos in chosen)
        return missed / total if total else 0.0

    shown = [fit.unexplained_fitted, fit.unexplained_held_out, fit.unexplained_identity]
    again = [unexplained(pairs[::2], guesses), unexplained(pairs[1::2], guesses), unexplained(pairs[1::2], list(rows))]
    claim = f"The shares of variance left unexplained, {name}"
    yield agree(claim, shown, again, 1e-6 * max(1.0, *again), "summed again, position by position")


@torch.no_grad()
def check_decomposition(
    model: Transformer,
    source: Sequence[int],
    target: Sequence[int],
    switches: Sequence[Intervention],
    stack: Stack,
    head: int,
    *,
    parts: Float[ndarray, "part query key"],
    scores: Float[ndarray, "query key"],
) -> Iterator[Check]:
    """Computes the four bilinear parts of a head's scores again, in float64, from the recorded embedding and positions.

    Each part is x B y, with one matrix B = W_Q^T W_K for queries and keys. A last entry, 1 in the content and 0 in the
    position, carries the biases. Cells that the mask hides are NaN in `parts` and `scores`.
    """
    precise = in_double(model)
    names = {f"{stack}.embedding", f"{stack}.positions", f"{stack}.0.self.scores", f"{stack}.0.self.mask"}
    recorder = Recorder(lambda site: str(site) in names)
    tap = chain(compile_interventions(switches, precise), recorder)
    precise(torch.tensor([list(source)]), torch.tensor([list(target)]), tap=tap)
    seen = recorder.recording
    layer = getattr(precise, stack).layers[0]
    halves = [seen[f"{stack}.{name}"][0].numpy() for name in ("embedding", "positions")]
    if model.config.norm == "pre":
        norm = layer.add_norm_self.norm
        gain, bias = norm.weight.numpy(), norm.bias.numpy()
        deviation = np.sqrt(np.var(halves[0] + halves[1], axis=1, keepdims=True) + norm.eps)
        halves = [(half - half.mean(axis=1, keepdims=True)) / deviation * gain for half in halves]
        halves[0] = halves[0] + bias
    content, position = (np.column_stack((half, np.full(len(half), 1 - index))) for index, half in enumerate(halves))
    attention = layer.self_attention
    d_head = attention.query.weight.size(0) // model.config.n_heads
    rows = slice(head * d_head, (head + 1) * d_head)
    to_query, to_key = (
        np.column_stack((linear.weight.numpy()[rows], linear.bias.numpy()[rows]))
        for linear in (attention.query, attention.key)
    )
    bilinear = to_query.T @ between(attention, head) @ to_key / (math.sqrt(d_head) if model.config.scale_scores else 1)
    hidden = ~seen[f"{stack}.0.self.mask"][0, 0].numpy()
    recorded = np.where(hidden, np.nan, seen[f"{stack}.0.self.scores"][0, head].numpy())
    tolerance = 1e-4 * _size(np.nan_to_num(recorded))
    pairs = [(x, y) for x in (content, position) for y in (content, position)]
    between_them = "" if model.config.score == "dot" else "W·"
    how = f"x·W_Qᵀ·{between_them}W_K·y in double precision, from the recorded embedding and positions"
    for name, part, (x, y) in zip(PARTS, parts, pairs, strict=True):
        yield agree(
            f"The {name} part is that of its halves", part, np.where(hidden, np.nan, x @ bilinear @ y.T), tolerance, how
        )
    how = "another pass, in double precision"
    yield agree("The scores are those of the pass", scores, recorded, tolerance, how)
    yield agree("The four parts sum to the recorded score", np.sum(parts, axis=0), recorded, tolerance, how)


def check_interval(right: ndarray, count: ndarray, low: ndarray, high: ndarray) -> Check:
    """Solves Wilson's equation (1927), (p - x)^2 = z^2 x (1 - x) / n, for both ends of each interval."""
    again = []
    for k, n in zip(right.tolist(), count.tolist(), strict=True):
        if not n:
            again.append((0.0, 1.0))  # nothing is known
            continue
        p, z2 = k / n, _Z95**2
        middle, root = 2 * p + z2 / n, math.sqrt((2 * p + z2 / n) ** 2 - 4 * (1 + z2 / n) * p * p)
        again.append(tuple((middle + sign * root) / (2 * (1 + z2 / n)) for sign in (-1, 1)))
    how = f"the equation that defines them solved {len(again)} times"
    shown = np.column_stack((low, high))
    return agree("Each band is Wilson's 95 % interval", shown, np.array(again).reshape(-1, 2), 1e-6, how)


def _size(values: ndarray) -> float:
    return max(1.0, float(np.abs(values).max(initial=0.0)))
