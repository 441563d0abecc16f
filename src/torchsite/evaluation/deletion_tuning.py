"""A copy of a classifier that has seen pictures with hidden patches, for measuring `patch_deletion` on it.

A patch replaced by a filling is unlike any picture the model has learnt, so what hiding it does may be what
an odd picture does. Hesse et al. (2024) fine-tune the model on such pictures first, and explain and probe
the tuned one. Here: each picture loses one patch of the grid, drawn at random, in half of the cases; the loss
is the cross entropy of the logits; batch-norm statistics are learnt along. The model itself is not touched.

    tuned = tuned_on_deletions(model, train, n_steps=500, rng=make_rng(0))
    PatchDeletion(METHODS["grad_cam"](tuned), tuned)
"""

import copy
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from torchsite.data import Dataset, to_float
from torchsite.errors import ConfigError
from torchsite.metrics.patch_deletion import GRID
from torchsite.randomness import Rng
from torchsite.shapes import Masks, Size
from torchsite.transforms import FillLike, as_fill
from torchsite.transforms.patches import hide_patches

Model = TypeVar("Model", bound=nn.Module)


def tuned_on_deletions(
    model: Model,
    data: Dataset,
    *,
    n_steps: int = 500,
    batch_size: int = 64,
    learning_rate: float = 1e-4,
    grid: Size = GRID,
    fill: FillLike = "mean",
    rng: Rng,
) -> Model:
    """A copy of the model, tuned for `n_steps` batches of pictures of which half lack a patch."""
    if n_steps < 0 or batch_size < 2 or len(data) < 2:
        raise ConfigError(f"expected steps and batches of two or more, got {n_steps} and {batch_size}")
    tuned = copy.deepcopy(model).train()
    device = next(tuned.parameters()).device
    optimizer = torch.optim.Adam(tuned.parameters(), lr=learning_rate)
    filling = as_fill(fill)
    for _ in range(n_steps):
        rows = torch.randint(len(data), (batch_size,), generator=rng)
        images = to_float(data.images[rows]).to(device)
        hidden = one_in_half(batch_size, grid, rng)
        logits = tuned(hide_patches(images, hidden, filling, rng=rng))
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(logits, data.labels[rows].to(device)).backward()
        optimizer.step()
    return tuned.eval()


def one_in_half(n: int, grid: Size, rng: Rng) -> Masks:
    """For each picture which patch is hidden: one of the grid, or, as often, none."""
    n_patches = grid[0] * grid[1]
    which = torch.randint(n_patches, (n,), generator=rng)
    hides = torch.rand(n, generator=rng) < 0.5
    chosen = F.one_hot(which, n_patches).bool() & hides[:, None]
    return chosen.unflatten(1, (grid[0], grid[1]))
