"""Table 1 of the paper, measured: time, operations in a row and path length of one layer of each kind."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from transformer.experiments.experiment import Budget, Chart, Experiment, Factor, Metric
from transformer.experiments.intervals import Interval, exact, exponents, t_interval
from transformer.experiments.outcome import Finding, Outcome, Verdict, finding, outcomes_of
from transformer.experiments.paper.layers import KERNEL, LAYERS, WINDOW
from transformer.experiments.recount import power
from transformer.experiments.results import Cell, Results
from transformer.training.devices import seeded

TABLE: dict[str, tuple[int, int]] = {
    "self-attention": (2, 1),
    "restricted": (1, 1),
    "recurrent": (1, 2),
    "convolution": (1, 2),
    "separable": (1, 2),
}
"""The table's exponents of n and d. Separable convolution is k n d + n d²: its second part is larger where d > k."""
SLACK = 0.25
"""An exponent agrees with the table's if it is at most so far away."""
FROM_N, FROM_D = 512, 128
"""Sizes from which exponents are fitted: the table is about growth, and small layers take the same time whatever."""
PATH_TO = 256
"""The longest sequence through which the path is measured."""
TIME, STEPS, PATH = "Complexity per layer", "Sequential operations", "Maximum path length"
FASTER, MEETING = "Faster than recurrent where n < d", "Meets recurrent at n = d"
_EXPONENT, _SHARE, _MEETS = "exponent", "ratio", "n where both take as long"
_RATIO = "time of self-attention over recurrent, n < d"
RATIOS = {"self-attention": _RATIO, "with projections": "the same with projections"}
"""The layers that are compared with a recurrent one, and what the comparison is called."""
_SMALLEST_D = 64


_WHY = {
    ("recurrent", "d"): "each of its steps is so small that starting it and reading its weights costs as much as "
    "computing it",
    ("separable", "d"): "its k n d part moves numbers more than it computes, and is not small yet",
    ("convolution", "d"): "wide products use the processor better than narrow ones",
    ("self-attention", "d"): "the softmax over n × n scores costs the same at every width",
    ("self-attention", "n"): "the n × n scores no longer fit into the processor's caches",
}
"""The likely reasons why theory and this machine part."""


def measure(cell: Cell, seed: int, size: int) -> dict[str, float]:
    """Measures a layer: the least time of several passes, what it keeps for the way back, its operations, its path."""
    n, d = int(cell["n"]), int(cell["d"])
    with seeded(seed, torch.device("cpu")):
        layer, x = LAYERS[str(cell["layer"])](d), torch.randn(n, d)
        found = _times(layer, x, size) | {"kept_mb": _kept_mb(layer, x)}
        if d == _SMALLEST_D:
            found["operations"] = float(_operations(layer, x))
            if n <= PATH_TO:
                found["path"] = float(_path(LAYERS[str(cell["layer"])], n))
    return found


def _times(layer: nn.Module, x: Float[Tensor, "n d"], repeats: int) -> dict[str, float]:
    """Returns milliseconds of processor time of the forward pass, and of both passes: the least of at least so many.

    On one thread that is the time of an idle machine, also where other programs take turns with this one.
    """
    x = x.clone().requires_grad_()
    forward, both = [], []
    begun = time.perf_counter()
    while len(both) <= repeats or (time.perf_counter() - begun < 0.15 and len(both) < 50):
        start = time.process_time()
        y = layer(x)
        middle = time.process_time()
        y.backward(y.detach())
        both.append(time.process_time() - start)
        forward.append(middle - start)
    return {"forward_ms": 1e3 * min(forward[1:]), "time_ms": 1e3 * min(both[1:])}  # the first one warms up


def _kept_mb(layer: nn.Module, x: Float[Tensor, "n d"]) -> float:
    """Returns the megabytes of states that the forward pass keeps for the backward pass, weights left out."""
    own = {parameter.untyped_storage().data_ptr() for parameter in layer.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = layer(x.clone().requires_grad_())
    del y
    return sum(kept.values()) / 1e6


class _Counter(TorchDispatchMode):
    """Counts the operations that compute something, not those that look at a tensor in another shape."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.n += not function.is_view
        return function(*args, **(kwargs or {}))


@torch.no_grad()
def _operations(layer: nn.Module, x: Float[Tensor, "n d"]) -> int:
    """Returns the operations of a forward pass, each of which waits for the one before."""
    with _Counter() as counter:
        layer(x)
    return counter.n


def _path(make: Callable[[int], nn.Module], n: int) -> int:
    """Returns the layers, or the time steps of a recurrent layer, through which the gradient of the last position
    first reaches the first one: n + 1 if it never does."""
    d = 4
    gradient = torch.zeros(n, d).double()
    gradient[-1] = 1
    for layers in range(1, n + 1):
        x = torch.randn(n, d).double().requires_grad_()
        (gradient,) = torch.autograd.grad(make(d).double()(x), x, gradient)
        gradient = gradient / gradient.abs().max()  # many layers would make it too small for a number
        if gradient[0].abs().max() > 0:
            steps = int(gradient.abs().sum(dim=1).gt(0).sum())  # each of which hands it to the one before
            return steps if make is LAYERS["recurrent"] else layers
    return n + 1


def judge(results: Results) -> Verdict:
    """Fits the exponents of n and d to each layer's times, and compares self-attention with a recurrent layer."""
    timed = [_growth(results, layer, which) for layer in TABLE for which in ("n", "d")]
    compared = _against_recurrent(results)
    findings = (*timed, *compared, *_counted(results))
    outcomes = outcomes_of(findings, _RATIO)
    apart = [each for each in timed if outcomes[each.name] is Outcome.FAILS]
    return Verdict(findings=findings, primary=_RATIO, sentence=_sentence(apart, compared))


def _growth(results: Results, layer: str, which: str) -> Finding:
    expected = TABLE[layer]["nd".index(which)]
    found = t_interval(_fitted(results, layer, which))
    name = f"{layer}: time against {which}"
    least, most = expected - SLACK, expected + SLACK
    return finding(name, found, group=TIME, unit=_EXPONENT, least=least, most=most)


def _fitted(results: Results, layer: str, which: str) -> list[float]:
    """Returns the exponent of n or d for each seed, both fitted at once to the layer's larger sizes."""
    slopes = []
    for seed in results.seeds:
        rows = [row for row in results.rows if row.seed == seed and row.has(layer=layer)]
        rows = [row for row in rows if float(row.cell["n"]) >= FROM_N and float(row.cell["d"]) >= FROM_D]
        sizes = [(float(row.cell["n"]), float(row.cell["d"])) for row in rows]
        if len({n for n, _ in sizes}) > 1 and len({d for _, d in sizes}) > 1:
            slopes.append(exponents(sizes, [row.values["time_ms"] for row in rows])["nd".index(which)])
    return slopes


def _against_recurrent(results: Results) -> tuple[Finding, ...]:
    """Compares the times where n < d, bare and with projections, and finds for each d the n where both are alike."""
    ratios: dict[str, list[float]] = {name: [] for name in RATIOS.values()}
    crossings: dict[int, list[float]] = {d: [] for d in map(int, results.levels("d"))}
    for seed in results.seeds:
        for layer, name in RATIOS.items():
            over = {d: _over_recurrent(results, layer, d, seed) for d in crossings}
            if logs := [math.log(ratio) for d, by_n in over.items() for n, ratio in by_n.items() if n < d]:
                ratios[name].append(math.exp(fmean(logs)))
            if name == _RATIO:
                for d, by_n in over.items():
                    crossings[d] += [crossing(by_n)] if by_n else []
    return (
        *(
            finding(name, t_interval(found), group=FASTER, unit=_SHARE, least=0.0, most=1.0)
            for name, found in ratios.items()
        ),
        *(
            finding(_meets(d), t_interval(found), group=MEETING, unit=_MEETS, least=d / 2, most=2.0 * d)
            for d, found in crossings.items()
        ),
    )


def _over_recurrent(results: Results, layer: str, d: int, seed: int) -> dict[int, float]:
    """Returns the time of a layer over that of a recurrent one by n, where both are measured."""
    found = {}
    for n in map(int, results.levels("n")):
        mine, theirs = (results.by_seed("time_ms", layer=each, n=n, d=d) for each in (layer, "recurrent"))
        if seed in mine and seed in theirs:
            found[n] = mine[seed] / theirs[seed]
    return found


def _meets(d: int) -> str:
    return f"{_MEETS}, d = {d}"


def crossing(ratios: Mapping[int, float]) -> float:
    """Returns the n at which a ratio that grows with n passes 1, read between the sizes on a logarithmic scale; the
    largest n where it never does, the smallest where it always has."""
    sizes = sorted(ratios)
    if ratios[sizes[0]] >= 1:
        return float(sizes[0])
    for below, above in pairwise(sizes):
        low, high = math.log(ratios[below]), math.log(ratios[above])
        if high >= 0:
            return below * (above / below) ** (-low / (high - low))
    return float(sizes[-1])


def _counted(results: Results) -> tuple[Finding, ...]:
    found = []
    for metric, group, expected in (
        ("operations", STEPS, {"self-attention": 0, "restricted": 0, "recurrent": 1, "convolution": 0, "separable": 0}),
        ("path", PATH, {"self-attention": 0, "restricted": 1, "recurrent": 1, "convolution": 1, "separable": 1}),
    ):
        for layer, power_of_n in expected.items():
            slopes = _slopes(results, layer, metric)
            band = {"least": power_of_n - SLACK, "most": power_of_n + SLACK}
            known = exact(slopes) if slopes else Interval(math.nan, math.nan, math.nan, "not measured")
            found.append(finding(f"{layer}: {metric} against n", known, group=group, unit=_EXPONENT, **band))
    return tuple(found)


def _slopes(results: Results, layer: str, metric: str) -> list[float]:
    slopes = []
    for seed in results.seeds:
        rows = [row for row in results.rows if row.seed == seed and row.has(layer=layer) and metric in row.values]
        if metric == "path":  # a window that holds the whole sequence is no window
            rows = [row for row in rows if float(row.cell["n"]) >= WINDOW]
        if len(rows) > 1:
            slopes += exponents([(float(row.cell["n"]),) for row in rows], [row.values[metric] for row in rows])
    return slopes


def _sentence(apart: Sequence[Finding], compared: Sequence[Finding]) -> str:
    bare, projected, *met = compared
    at = ", ".join(f"{float(f'{each.estimate:.2g}'):,.0f} ({each.name.rpartition(', ')[2]})" for each in met)
    said = (
        f"Where n < d, self-attention takes {bare.estimate:.2g} times as long as a recurrent layer, and "
        f"{projected.estimate:.2g} times with the projections that a real one has. Both take as long at n = {at}, "
        "where the table's counts of operations meet at n = d: short steps one after another use this processor worse "
        "than one large product. "
    )
    if not apart:
        return f"{said}No exponent of time is clearly another than the table's."
    worst = "; ".join(_named(each) for each in apart)
    return f"{said}Exponents of time clearly outside the table's ± {SLACK:g}: {worst}."


def _named(apart: Finding) -> str:
    layer, _, which = apart.name.partition(": time against ")
    why = f", probably because {_WHY[layer, which]}" if (layer, which) in _WHY else ""
    return f"{layer} in {which} {apart.estimate:.2f} instead of {TABLE[layer]['nd'.index(which)]}{why}"


def again(rows: Sequence[Mapping]) -> dict[str, list[float]]:
    """Reads what every finding is the mean of from the rows of the file, size by size: see `recount`."""
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    found: dict[str, list[float]] = {}
    for layer in TABLE:
        for which, other in (("n", "d"), ("d", "n")):
            slopes = [s for seed in seeds if (s := _one_power(rows, layer, seed, which, other)) is not None]
            found[f"{layer}: time against {which}"] = slopes
        for metric in ("operations", "path"):
            slopes = []
            for seed in seeds:
                own = [row for row in rows if (row["seed"], row["layer"]) == (seed, layer) and row[metric] is not None]
                own = [row for row in own if metric != "path" or row["n"] >= WINDOW]
                if len(own) > 1:
                    slopes.append(power([row["n"] for row in own], [row[metric] for row in own]))
            found[f"{layer}: {metric} against n"] = slopes
    return found | _recounted_crossing(rows, seeds)


def _one_power(rows: Sequence[Mapping], layer: str, seed: int, which: str, other: str) -> float | None:
    """Returns the mean slope over the sizes of the other factor: on a full grid, that of fitting both at once."""
    large = {"n": FROM_N, "d": FROM_D}
    own = [row for row in rows if (row["layer"], row["seed"]) == (layer, seed)]
    own = [row for row in own if all(row[name] >= least for name, least in large.items())]
    slopes = []
    for size in dict.fromkeys(row[other] for row in own):
        line = [row for row in own if row[other] == size]
        if len(line) > 1:
            slopes.append(power([row[which] for row in line], [row["time_ms"] for row in line]))
    return math.fsum(slopes) / len(slopes) if len(slopes) > 1 else None


def _recounted_crossing(rows: Sequence[Mapping], seeds: Sequence[int]) -> dict[str, list[float]]:
    widths = list(dict.fromkeys(row["d"] for row in rows))
    found: dict[str, list[float]] = {name: [] for name in (*RATIOS.values(), *map(_meets, widths))}
    for seed in seeds:
        for layer, name in RATIOS.items():
            below = []
            for d in widths:
                mine = sorted((row["n"], row["time_ms"]) for row in rows if _is(row, layer, d, seed))
                theirs = dict((row["n"], row["time_ms"]) for row in rows if _is(row, "recurrent", d, seed))
                line = [(n, math.log2(t / theirs[n])) for n, t in mine if n in theirs]
                below += [y for n, y in line if n < d]
                if line and name == _RATIO:
                    found[_meets(d)].append(_meeting(line))
            if below:
                found[name].append(2 ** (math.fsum(below) / len(below)))
    return found


def _meeting(line: Sequence[tuple[int, float]]) -> float:
    """Returns the n at which a line of logarithms first crosses 0, else its end that is nearer to it."""
    if line[0][1] >= 0:
        return line[0][0]
    for (n0, y0), (n1, y1) in pairwise(line):
        if y0 < 0 <= y1:
            return 2 ** (math.log2(n0) + (math.log2(n1) - math.log2(n0)) * (0 - y0) / (y1 - y0))
    return line[-1][0]


def _is(row: Mapping, layer: str, d: int, seed: int) -> bool:
    return (row["layer"], row["d"], row["seed"]) == (layer, d, seed)


EXPERIMENT = Experiment(
    name="table-1",
    title="Table 1, measured",
    question="Does one layer of each kind cost what Table 1 says, and is self-attention faster than recurrence?",
    claim=(
        "A layer of self-attention needs n² · d operations, a recurrent one n · d², a convolution k · n · d², "
        "restricted self-attention r · n · d (n: tokens, d: width, k: kernel, r: window). Self-attention needs O(1) "
        "operations one after another and connects any two positions in O(1) steps; a recurrent layer needs O(n) of "
        "both. So “self-attention layers are faster than recurrent layers when the sequence length n is smaller than "
        "the representation dimensionality d”."
    ),
    section="Section 4 and Table 1",
    setting=(
        f"One bare layer of each kind on one sequence of random numbers, one CPU thread, float32: kernel k = "
        f"{KERNEL}, window r = {WINDOW}. As in the table, self-attention is one head without projections; *with "
        "projections* adds the four that a real layer has. A time is the processor time of one forward and one "
        "backward pass, the least of several. Operations in a row are those that PyTorch starts in one forward pass. "
        "The path is measured: through how many layers, or steps of a recurrent one, the gradient of the last "
        f"position first reaches the first, in sequences of up to {PATH_TO} tokens."
    ),
    factors=(
        Factor(name="layer", label="layer", explained="the kind of layer"),
        Factor(name="n", label="n, tokens", explained="the length of the sequence"),
        Factor(name="d", label="d, width", explained="the numbers in each token's state"),
    ),
    metrics=(
        Metric(name="time_ms", label="forward + backward, ms", explained="processor time of both passes", log=True),
        Metric(name="forward_ms", label="forward, ms", explained="processor time of the forward pass", log=True),
        Metric(name="kept_mb", label="kept for the way back, MB", explained="states that training must keep", log=True),
        Metric(name="operations", label="operations in a row", explained="steps that cannot be shared out", log=True),
        Metric(name="path", label="layers or steps from end to end", explained="the length of the path", log=True),
    ),
    budgets=(
        Budget(
            name="full",
            says="n from 16 to 4,096, d from 64 to 512, 5 seeds",
            levels={
                "layer": tuple(LAYERS),
                "n": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
                "d": (64, 128, 256, 512),
            },
            seeds=(0, 1, 2, 3, 4),
            size=4,
        ),
        Budget(
            name="small",
            says="n from 16 to 1,024, d from 64 to 256, 3 seeds",
            levels={"layer": tuple(LAYERS), "n": (16, 64, 256, 512, 1024), "d": (64, 128, 256)},
            seeds=(0, 1, 2),
            size=3,
        ),
    ),
    charts=(
        Chart(title="Time against n", metric="time_ms", x="n", by="layer", log_x=True),
        Chart(title="Time against d", metric="time_ms", x="d", by="layer", log_x=True),
        Chart(title="Memory against n", metric="kept_mb", x="n", by="layer", log_x=True),
    ),
    rule=(
        "The sentence of section 4 decides: self-attention must be faster on average over all measured sizes with "
        f"n < d. Besides, exponents are fitted on logarithms over n ≥ {FROM_N} and d ≥ {FROM_D}, one for each seed: "
        f"each agrees with the table if its interval lies within ± {SLACK:g} of the table's. For each d both layers "
        "should take as long at an n between d / 2 and 2 d, and self-attention with its projections should be faster "
        "too. Counts of operations and paths are the same every time."
    ),
    objections={
        "Can the claim fail here at all?": (
            "Hardly, on this machine: until d is several hundred, starting a step costs a recurrent layer more than "
            "its products do, which is why its time grows so much more slowly than d². That self-attention is faster "
            "is true here, but in part for a reason that the paper does not give."
        ),
        "A bare layer is not what a Transformer has.": (
            "No: a real one has four projections besides, which cost the same for every token. The charts show both, "
            "and with them self-attention keeps much less of its lead."
        ),
        "Is the path of a recurrent layer measured?": (
            "It is counted rather than found: a layer that passes its state from step to step cannot have another. "
            "Only the times can surprise, and only they decide."
        ),
    },
    change_of_mind=(
        "Another machine: on a GPU a long chain of small operations costs far more than here. Larger sizes: the "
        "softmax and the reading of memory matter less as d grows. A kernel that never stores the n × n scores would "
        "change the exponent of memory, and the constant in front of n²."
    ),
    measure=measure,
    judge=judge,
    again=again,
)
