"""The optimisers: Adam with decoupled weight decay, as in section 5.3, and Muon for the matrices of the layers."""
# torch's stubs do not export its _foreach functions:
# pyright: reportPrivateImportUsage=false

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.config import TrainConfig
from transformer.model.positions import LearnedPositions
from transformer.model.scores import Multiplicative
from transformer.training.devices import supports_bfloat16

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""The quintic of the iteration, steepest at 0 (Jordan 2024)."""
_ITERATIONS = 5


class Muon(torch.optim.AdamW):
    """Muon for matrices, AdamW for all other parameters (Jordan 2024; scale of the step from Liu et al. 2025).

    The step of a matrix is its momentum with all singular values brought near 1 (`orthogonalised`), times
    rate x 0.2 x sqrt(max(rows, columns)): as large, in root mean square, as a usual step of Adam, so one learning rate
    serves both. Same arithmetic as `torch.optim.Muon` with `adjust_lr_fn="match_rms_adamw"`, but matrices of one shape
    go through the iteration together, in float32 where bfloat16 is not faster.
    """

    def __init__(
        self,
        matrices: Iterable[Tensor],
        others: list[dict[str, Any]],
        *,
        lr: float,
        momentum: float,
        weight_decay: float,
        **adam: Any,
    ) -> None:
        super().__init__(others, lr=lr, **adam)
        self.momentum = momentum
        self.matrix_decay = weight_decay
        self._alike: dict[tuple[int, int], list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            rows, columns = matrix.shape
            self._alike[min(rows, columns), max(rows, columns)].append(matrix)
            self.state[matrix] = {"momentum": torch.zeros_like(matrix)}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Takes one step with the gradients at hand; a parameter without one stays as it is."""
        super().step()
        rate = self.param_groups[0]["lr"]
        for (_, columns), matrices in self._alike.items():
            taught = [matrix for matrix in matrices if matrix.grad is not None]
            if not taught:
                continue
            gradients = [matrix.grad for matrix in taught if matrix.grad is not None]
            means = [self.state[matrix]["momentum"] for matrix in taught]
            torch._foreach_lerp_(means, gradients, 1 - self.momentum)
            looking_ahead = torch._foreach_lerp(gradients, means, self.momentum)  # Nesterov's momentum
            is_tall = [matrix.shape[0] > matrix.shape[1] for matrix in taught]
            steps = orthogonalised(torch.stack(_turned(looking_ahead, is_tall)))
            if self.matrix_decay:
                torch._foreach_mul_(taught, 1 - rate * self.matrix_decay)
            torch._foreach_add_(taught, _turned(steps, is_tall), alpha=-rate * 0.2 * columns**0.5)


def orthogonalised(matrices: Float[Tensor, "n rows columns"]) -> Float[Tensor, "n rows columns"]:
    """Returns each matrix (rows <= columns) with its singular values brought near 1, but for the very smallest.

    Five Newton-Schulz iterations of a quintic (Jordan 2024), as there in bfloat16 where the device computes in it;
    float64 stays. A matrix of zeros stays one.
    """
    a, b, c = _COEFFICIENTS
    is_narrowed = matrices.dtype == torch.float32 and supports_bfloat16(matrices.device)
    found = matrices.bfloat16() if is_narrowed else matrices
    found = found / found.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(_ITERATIONS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.to(matrices.dtype)


def _turned(matrices: Iterable[Tensor], which: list[bool]) -> list[Tensor]:
    return [matrix.mT if turn else matrix for matrix, turn in zip(matrices, which, strict=True)]


def build_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """The optimiser that the config names.

    With `muon` that one steps the matrices of the layers, and Adam the rest: embeddings, the projection to the
    vocabulary, gains, biases and other vectors. ValueError where a model has no such matrix.
    """
    if config.optimizer == "adamw":
        return build_adamw(model, config)
    hidden = [m.weight for m in model.modules() if isinstance(m, nn.Linear) and m is not model.projection]
    if not hidden:
        raise ValueError("muon steps the matrices of the layers, and this model has none: take adamw")
    decay = config.weight_decay
    return Muon(
        hidden, _groups(model, decay, hidden), momentum=config.momentum, weight_decay=decay, **_options(model, config)
    )


def build_adamw(model: nn.Module, config: TrainConfig) -> torch.optim.AdamW:
    """Adam with the config's rate and betas, for the parameters of any module."""
    return torch.optim.AdamW(_groups(model, config.weight_decay), **_options(model, config))


def decayed_parameters(model: nn.Module) -> list[Tensor]:
    """The parameters that weight decay shrinks: the matrices of linear maps and recurrences, embeddings and tables.

    Told by their role, since a vector for each head or channel (v of additive scores, depthwise weights) is stored as
    a matrix too.
    """
    found = {id(matrix): matrix for module in model.modules() for matrix in _matrices(module)}  # tied ones once
    return list(found.values())


def _matrices(module: nn.Module) -> Iterable[Tensor]:
    match module:
        case nn.Linear() | nn.Embedding():
            return [module.weight]
        case LearnedPositions():
            return [module.table]
        case Multiplicative():
            return [module.W]
        case nn.RNNBase():
            return [parameter for name, parameter in module.named_parameters() if name.startswith("weight_")]
    return []


def _groups(model: nn.Module, weight_decay: float, taken: Iterable[Tensor] = ()) -> list[dict[str, Any]]:
    """The parameters that are not taken yet: those that decay, and all others."""
    left, decayed = _without(model.parameters(), taken), decayed_parameters(model)
    return [
        {"params": _without(decayed, taken), "weight_decay": weight_decay},
        {"params": _without(left, decayed), "weight_decay": 0.0},
    ]


def _options(model: nn.Module, config: TrainConfig) -> dict[str, Any]:
    return {
        "lr": config.learning_rate,
        "betas": (config.beta1, config.beta2),
        "eps": config.epsilon,
        "fused": is_fused(next(model.parameters()).device),
    }


def optimizer_tensors(optimizer: torch.optim.AdamW, model: nn.Module) -> dict[str, Tensor]:
    """Everything that the optimiser remembers, as "adam.exp_avg.NAME" or "muon.momentum.NAME" of the parameter."""
    return {
        f"{'muon' if kind == 'momentum' else 'adam'}.{kind}.{name}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state[parameter].items()
    }


def restore_optimizer(optimizer: torch.optim.AdamW, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Puts such tensors back into an optimiser that has taken no step; KeyError where one is missing."""
    for name, parameter in model.named_parameters():
        if "momentum" in optimizer.state[parameter]:
            optimizer.state[parameter]["momentum"].copy_(tensors[f"muon.momentum.{name}"])
            continue
        optimizer.state[parameter] = {
            # The optimiser keeps its step count on the CPU unless it is fused.
            kind: value.clone() if kind == "step" and not is_fused(parameter.device) else value.to(parameter, copy=True)
            for kind in ("step", "exp_avg", "exp_avg_sq")
            for value in [tensors[f"adam.{kind}.{name}"]]
        }


def is_fused(device: torch.device) -> bool:
    """Tells whether Adam's step is one kernel on this device."""
    return device.type in ("cuda", "cpu")


def _without(parameters: Iterable[Tensor], some: Iterable[Tensor]) -> list[Tensor]:
    left_out = set(map(id, some))
    return [p for p in parameters if id(p) not in left_out]
