"""Optimisers and schedules.

AdamW for everything, or Muon for the convolution kernels and AdamW for the rest. Muon (Jordan et al. 2024)
follows the momentum with its singular values set to one: a Newton–Schulz iteration brings the update, seen
as a matrix of outputs × inputs, near to the nearest orthogonal one, so no direction of a layer starves.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from torchsite.model import FeatureExtractor
from torchsite.training.config import TrainingConfig

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalise(update: Tensor, steps: int = 5) -> Tensor:
    """The update with all singular values near one (between 0.7 and 1.2), by matrix products only.

    They are computed in float32 or better, under autocast as well.
    """
    a, b, c = NEWTON_SCHULZ
    x = update.to(torch.promote_types(update.dtype, torch.float32))
    with torch.autocast(update.device.type, enabled=False):
        x = x / (x.norm() + 1e-7)
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        for _ in range(steps):
            gram = x @ x.T
            x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.T if tall else x).to(update.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, for kernels of two or more axes; `torch.optim.Muon` takes only matrices."""

    def __init__(
        self, params: Iterable[Tensor], lr: float, momentum: float = 0.9, weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One Nesterov step; the update has the root mean square of an orthogonal matrix."""
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, parameter: Tensor, group: dict[str, Any]) -> None:
        gradient = parameter.grad
        assert gradient is not None
        momentum = self.state[parameter].setdefault("momentum", torch.zeros_like(gradient))
        momentum.lerp_(gradient, 1 - group["momentum"])
        nesterov = gradient.lerp(momentum, group["momentum"]).flatten(1)
        update = orthogonalise(nesterov) * max(1, nesterov.shape[0] / nesterov.shape[1]) ** 0.5
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(group["lr"] * update.view_as(parameter))


def make_optimisers(module: nn.Module, config: TrainingConfig) -> list[torch.optim.Optimizer]:
    """One optimiser for all parameters, or Muon for the kernels and AdamW for the rest.

    Weights decay; biases, norms and other parameters of one axis do not. `parameter_groups` of a feature
    extractor are the shares of the rate at which its parameters learn; those with another than the full one,
    pretrained ones, are left to AdamW.
    """
    factors = _learning_rate_factors(module)
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    kernels = [p for p in learning if p.ndim == 4 and min(p.flatten(1).shape) > 1 and p.shape[-1] > 1]
    muon = [p for p in kernels if factors[p] == 1] if config.optimiser == "muon" else []
    taken = set(muon)
    rest = [p for p in learning if p not in taken]
    groups = [
        {
            "params": [p for p in rest if factors[p] == factor and (p.ndim > 1) == decays],
            "weight_decay": config.weight_decay if decays else 0.0,
            "lr": factor * config.learning_rate,
        }
        for factor in dict.fromkeys(factors[p] for p in rest)
        for decays in (True, False)
    ]
    optimisers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW([group for group in groups if group["params"]], betas=(0.9, 0.99))
    ]
    if muon:
        optimisers.append(Muon(muon, lr=config.muon_learning_rate, weight_decay=config.weight_decay))
    return optimisers


def _learning_rate_factors(module: nn.Module) -> dict[nn.Parameter, float]:
    """The share of the learning rate of each parameter."""
    extractors = [part for part in module.modules() if isinstance(part, FeatureExtractor)]
    groups = [group for extractor in extractors for group in extractor.parameter_groups()]
    usual = dict.fromkeys(module.parameters(), 1.0)
    return usual | {p: group.learning_rate_factor for group in groups for p in group.parameters}


def set_learning_rates(optimisers: Iterable[torch.optim.Optimizer], factor: float) -> None:
    """Every group at this fraction of its peak, which is the rate it was made with."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = factor * group.setdefault("peak_lr", group["lr"])


def schedule(config: TrainingConfig, n_steps: int) -> Callable[[float], float]:
    """The learning rate at a position (in steps) as a fraction of its peak: up in a line, then to nothing.

    With several cycles it rises and falls as often, and after each the model is a finished one.
    """
    length = n_steps // config.cycles
    peak = max(1, round(config.warm_up * length))

    def factor(position: float) -> float:
        done = position % length if position < n_steps else length
        if done < peak:
            return (done + 1) / peak
        rest = (length - done) / max(1, length - peak)
        return rest if config.schedule == "one_cycle" else (1 - math.cos(math.pi * rest)) / 2

    return factor
