"""Batch norm over the global batch, so that one process and several see the same statistics.

Torch's own `SyncBatchNorm` does this on GPUs only; this one works wherever `all_reduce` does. During training
the model's own layers get its forward pass, and stay the same objects.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from torchsite.distributed import mean_with_gradients, n_ranks


class GlobalBatchNorm(_BatchNorm):
    """Normalises with mean and variance over the pictures of all ranks; each has equally many."""

    def forward(self, given: Tensor) -> Tensor:
        """As the plain layer on the global batch."""
        if not self.training or n_ranks() == 1:
            return super().forward(given)
        self._check_input_dim(given)  # type: ignore[no-untyped-call]
        maps = given.float() if given.dtype in (torch.float16, torch.bfloat16) else given
        mean = _global_mean(maps)
        centred = maps - mean
        variance = _global_mean(centred.square())
        self._remember(mean.detach().flatten(), variance.detach().flatten(), given.numel() * n_ranks())
        normed = centred * (variance + self.eps).rsqrt()
        if self.affine:
            normed = normed * self.weight.view(mean.shape) + self.bias.view(mean.shape)
        return normed.to(given.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor, n_values: int) -> None:
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        n = n_values / self.num_features
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance * n / (n - 1), share)


@contextmanager
def global_statistics(model: nn.Module) -> Iterator[None]:
    """Give every batch norm of a model the forward pass of `GlobalBatchNorm` for a while.

    A subclass of batch norm keeps what it adds.
    """
    layers = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    plain = {layer: type(layer) for layer in layers if not isinstance(layer, GlobalBatchNorm)}
    for layer, kind in plain.items():
        layer.__class__ = type(f"Global{kind.__name__}", (kind, GlobalBatchNorm), {})
    try:
        yield
    finally:
        for layer, kind in plain.items():
            layer.__class__ = kind


def _global_mean(maps: Tensor) -> Tensor:
    axes = [axis for axis in range(maps.ndim) if axis != 1]
    local: Tensor = maps.mean(axes, keepdim=True)
    return mean_with_gradients(local)
