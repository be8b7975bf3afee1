"""A model that reads longer sentences than it was built for: the same weights, positions carried on past their end.

The weights are shared and not copied, the model itself stays as it is: two visitors may extend one model differently.
"""

import copy
from dataclasses import replace
from typing import Literal, TypeVar, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.positions import LearnedPositions, RotaryPositions, SinusoidalPositions
from transformer.model.transformer import Transformer

Moved = TypeVar("Moved", bound=nn.Module)
Extension = Literal["refuse", "noise", "clamp", "interpolate"]
EXTENSIONS: tuple[Extension, ...] = get_args(Extension)
"""The ways of a learned table past the last row that training reached: answer nothing; read the rows that are there,
which are still the noise that they began as; take the last trained row again and again; or stretch the trained rows
over the whole sentence, straight lines between them (as Chen et al. 2023 do with rotary positions)."""


def extended(model: Transformer, length: int, how: Extension, *, trained: int) -> Transformer:
    """The model for sentences of up to `length` tokens, the end mark included. Its parameters are the very same.

    Sinusoidal, rotary and ALiBi positions follow their formulas and no positions need nothing; `how` is for a learned
    table, of which training reached the first `trained` rows. ValueError with both numbers where it ends before
    `length`: its trained rows with "refuse", its last row with "noise".
    """
    shared: dict[int, object] = {id(parameter): parameter for parameter in model.parameters()}
    longer = copy.deepcopy(model, shared)  # deepcopy takes what its memo already holds
    longer.config = replace(model.config, max_length=length)
    for module in longer.modules():
        if isinstance(module, MultiHeadAttention) and isinstance(module.relative, RotaryPositions):
            module.relative = _like(RotaryPositions(length, model.config.d_head), module.query.weight)
    for stack in (longer.encoder, longer.decoder):
        match stack.embedding.positions:
            case SinusoidalPositions():
                stack.embedding.positions = _like(
                    SinusoidalPositions(length, model.config.d_model), stack.embedding.tokens.weight
                )
            case LearnedPositions(table=table):
                stack.embedding.positions = _with_rows(extended_table(table.detach(), length, how, trained=trained))
    return longer.eval()


def extended_table(
    table: Float[Tensor, "position d_model"], length: int, how: Extension, *, trained: int
) -> Float[Tensor, "length d_model"]:
    """The first `length` rows of a learned table carried on past its `trained` rows; ValueError as `extended`."""
    if not 1 <= trained <= len(table):
        raise ValueError(f"trained ({trained}) must lie between 1 and the table's {len(table)} rows")
    if length <= trained:
        return table[:length]
    place = torch.arange(length, dtype=torch.float64, device=table.device)
    match how:
        case "refuse":
            raise ValueError(
                f"{length} tokens need positions 0 to {length - 1}; training reached 0 to {trained - 1}. "
                "Shorten the sentence, or choose how to go on: clamp or interpolate"
            )
        case "noise":
            if length > len(table):
                raise ValueError(
                    f"{length} tokens need positions 0 to {length - 1}; the table ends at {len(table) - 1}. "
                    "Shorten the sentence, or choose how to go on: clamp or interpolate"
                )
            return table[:length]
        case "clamp":
            return table[place.long().clamp(max=trained - 1)]
        case "interpolate":
            place = place * (trained - 1) / (length - 1)
            below = place.floor().long().clamp(max=max(trained - 2, 0))
            share = (place - below)[:, None]
            above = table[(below + 1).clamp(max=trained - 1)].double()
            return ((1 - share) * table[below].double() + share * above).to(table.dtype)


def _with_rows(rows: Float[Tensor, "length d_model"]) -> LearnedPositions:
    positions = LearnedPositions(1, rows.size(1))
    positions.table = nn.Parameter(rows.clone(), requires_grad=False)
    return positions


def _like(module: Moved, weight: Tensor) -> Moved:
    return module.to(device=weight.device, dtype=weight.dtype)
