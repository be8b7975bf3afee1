"""The history of a learned position table: the tables alone, taken out of a run's snapshots into one small file.

A shipped model keeps this file and no snapshots.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from safetensors import SafetensorError, safe_open

from transformer.checkpoints.store import POSITIONS_FILE, CheckpointError, load_tensors, save_tensors
from transformer.model.taps import Stack

STACKS: tuple[Stack, ...] = ("encoder", "decoder")


@dataclass(frozen=True)
class PositionHistory:
    """The learned tables of both stacks at some steps, in half precision; rows that training never reached are left
    out, since they never change."""

    steps: tuple[int, ...]
    tables: Mapping[Stack, Float[ndarray, "step row d_model"]]

    def at(
        self, step: int, stack: Stack, table: Float[ndarray, "position d_model"]
    ) -> Float[ndarray, "position d_model"]:
        """The table at a step; `table` is the model's own, of which the rows that never changed are taken."""
        kept = self.tables[stack][self.steps.index(step)]
        return np.concatenate((kept.astype(table.dtype), table[len(kept) :]))


def write_history(folder: Path, snapshots: Path) -> bool:
    """Writes the file into a run's folder from its folder of snapshots, each named by its step.

    False where there is none, or positions are not learned. A snapshot that cannot be read is left out.
    """
    named = {int(path.stem): path for path in snapshots.glob("*.safetensors") if path.stem.isdecimal()}
    found = {step: tables for step in sorted(named) if (tables := read_tables(named[step])) is not None}
    if not found:
        return False
    stacked = {stack: torch.stack([tables[stack] for tables in found.values()]) for stack in STACKS}
    kept = {stack: table[:, : _reached(table)].half().contiguous() for stack, table in stacked.items()}
    save_tensors(folder / POSITIONS_FILE, {"steps": torch.tensor(list(found)), **kept}, {})
    return True


def read_history(folder: Path) -> PositionHistory | None:
    """Reads the file in a folder; None where there is none, or it cannot be read."""
    try:
        found, _ = load_tensors(folder / POSITIONS_FILE)
        steps = found["steps"]
        tables: dict[Stack, ndarray] = {stack: found[stack].float().numpy() for stack in STACKS}
    except (CheckpointError, KeyError):
        return None
    are_steps = steps.dim() == 1 and steps.dtype == torch.int64 and bool((steps >= 0).all())
    fit = are_steps and all(table.ndim == 3 and len(table) == len(steps) for table in tables.values())
    return PositionHistory(tuple(steps.tolist()), tables) if fit else None


def read_tables(weights: Path) -> dict[Stack, Float[torch.Tensor, "position d_model"]] | None:
    """The learned tables in a file of weights, and nothing else of it; None where there are none."""
    try:
        with safe_open(weights, framework="pt") as file:
            names = set(file.keys())
            if any(_name(stack) not in names for stack in STACKS):
                return None
            return {stack: file.get_tensor(_name(stack)).float() for stack in STACKS}
    except (SafetensorError, OSError):
        return None


def _reached(tables: Float[torch.Tensor, "step position d_model"]) -> int:
    """Rows up to the last one that ever changed; one at least, so that no tensor is empty."""
    changed = (tables != tables[:1]).any(dim=2).any(dim=0).nonzero()
    return 1 + int(changed.max()) if len(changed) else 1


def _name(stack: Stack) -> str:
    return f"{stack}.embedding.positions.table"
