"""Checks of gradients at the source's embedding: backwards again, sentence by sentence, and by finite differences."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor

from transformer.analysis.checks import Check, agree
from transformer.analysis.reach.input_gradients import EMBEDDING, Ids, Leaf
from transformer.model.families import AnyModel
from transformer.model.precise import in_double
from transformer.model.taps import Site

_STEP = 1e-6
"""A step of the finite differences, to both sides: so small that it hardly ever crosses the kink of a ReLU."""
_PROBED = 2
"""Source tokens whose gradients are taken by finite differences."""


def check_means(
    model: AnyModel,
    pairs: Sequence[tuple[Ids, Ids]],
    name: str,
    *,
    norm: Float[ndarray, " distance"],
    count: Int[ndarray, " distance"],
) -> tuple[Check, ...]:
    """Adds up the gradients of each pair by itself, in double precision, and takes some of them without calculus."""
    precise = in_double(model)
    found: dict[int, list[float]] = defaultdict(list)
    for source, target in pairs:
        for step, row in enumerate(gradients_again(precise, source, target)):
            for place in range(len(source)):
                found[len(source) - place + step + 1].append(float(row[place]))
    again = np.array([np.mean(found[d]) if found[d] else np.nan for d in range(len(norm))])
    with np.errstate(divide="ignore", invalid="ignore"):
        shown, wanted = np.log(norm), np.log(again)
    counted = [len(found[d]) for d in range(len(count))]
    how = "each pair read by itself in double precision, a row for each output token; the logarithms compared"
    return (
        agree(f"{name}: the mean length of the gradient at each distance", shown, wanted, 1e-2, how),
        agree(f"{name}: so many pairs of tokens are so far apart", count, counted, 0, "counted again"),
        check_differences(precise, *max(pairs, key=lambda pair: len(pair[0])), name),
    )


def gradients_again(precise: AnyModel, source: Sequence[int], target: Sequence[int]) -> Float[ndarray, "target source"]:
    """Returns the gradients of one pair, with an end mark behind both, from a single step backwards."""
    config = precise.config
    out = torch.tensor([*target, config.eos_id])
    rows = torch.arange(len(out))
    leaf = Leaf()
    with torch.enable_grad():
        sources = torch.tensor([[*source, config.eos_id]]).expand(len(out), -1)
        memory = precise.encode(sources, tap=leaf)
        real = torch.ones_like(sources, dtype=torch.bool)
        if precise.needs_recomputation():
            reads = [torch.tensor([[config.bos_id, *target[:step]]]) for step in range(len(out))]
            last = [precise.decode(ids, memory[i : i + 1], real[i : i + 1])[:, -1] for i, ids in enumerate(reads)]
            states = torch.cat(last)
        else:
            ids = torch.tensor([[config.bos_id, *target]]).expand(len(out), -1)
            states = precise.decode(ids, memory, real)[rows, rows]
        (gradient,) = torch.autograd.grad(precise.project(states)[rows, out].sum(), leaf.embedded)
    return gradient.square().sum(dim=-1).sqrt().numpy()


@torch.no_grad()
def check_differences(precise: AnyModel, source: Sequence[int], target: Sequence[int], name: str) -> Check:
    """Moves every dimension of a source token's embedding a little to both sides, for the first and the last token."""
    config = precise.config
    wanted = gradients_again(precise, source, target)
    out = torch.tensor([*target, config.eos_id])
    shown, again = [], []
    for place in sorted({0, len(source) - 1})[:_PROBED]:
        moves = torch.cat((torch.eye(config.d_model), -torch.eye(config.d_model))).double() * _STEP
        sources = torch.tensor([[*source, config.eos_id]]).expand(len(moves), -1)

        def moved(site: Site, tensor: Tensor, place: int = place, moves: Tensor = moves) -> Tensor:
            if site != EMBEDDING:
                return tensor
            tensor = tensor.clone()
            tensor[:, place] += moves
            return tensor

        memory = precise.encode(sources, tap=moved)
        real = torch.ones_like(sources, dtype=torch.bool)
        for step, token in enumerate(out.tolist()):
            ids = torch.tensor([[config.bos_id, *target[:step]]]).expand(len(moves), -1)
            logits = precise.project(precise.decode(ids, memory, real)[:, -1])[:, token]
            up, down = logits.chunk(2)
            again.append(float(((up - down) / (2 * _STEP)).norm()))
            shown.append(float(wanted[step, place]))
    how = (
        f"each of {config.d_model} dimensions of the first and the last source token moved by ±{_STEP:g}, in double "
        f"precision; {len(shown)} gradients"
    )
    size = max(1.0, *np.abs(shown))
    return agree(f"{name}: gradients are the limits of finite differences", shown, again, 1e-5 * size, how)
