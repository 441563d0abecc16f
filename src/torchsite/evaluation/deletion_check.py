"""Does hiding a patch do what the map says of it? Patch deletion of one picture.

    said_P = Σ_{u in P} evidence(u)                  for each patch P of a grid, 4 × 4
    done_P = r_c(x) - r_c(x without P)               r_c = logit_c - mean over all classes
    check  = mean over fillings of Spearman(said, done)

This is `metrics/patch_deletion.py`, picture by picture. It is 1 if the patches that the map calls
important are those that the model misses most, 0 for a map that says nothing. A prediction whose check is low
rests on something that its map does not show: who reads the map should not rely on it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.metrics.patch_deletion import FILLINGS, GRID, relative_logits
from torchsite.metrics.similarity import spearman
from torchsite.model import SITE, Explanation
from torchsite.modes import evaluating
from torchsite.randomness import make_rng
from torchsite.shapes import Labels, Size
from torchsite.transforms import as_fill
from torchsite.transforms.patches import patch_sums, without_each


@torch.no_grad()
def deletion_check(
    model: SITE,
    explanation: Explanation,
    classes: Labels | None = None,
    *,
    grid: Size = GRID,
    fills: Sequence[str] = FILLINGS,
    seed: int = 0,
) -> Float[Tensor, " batch"]:
    """For each picture the rank correlation between what its map says and what hiding does, in [-1, 1].

    The class is the predicted one unless given; pictures smaller than the grid take one of their own size.
    """
    images, chosen = explanation.images, explanation.predicted if classes is None else classes
    cells = (min(grid[0], images.shape[-2]), min(grid[1], images.shape[-1]))
    said = patch_sums(explanation.heatmaps(classes=chosen), cells)[:, :, None]
    scores = []
    with evaluating(model):
        whole = relative_logits(explanation.logits, chosen)
        for name in fills:
            background = as_fill(name).background(images, rng=make_rng(seed, "deletion check", name))
            hidden = without_each(images, cells, background)
            drops = torch.stack([whole - relative_logits(model(part), chosen) for part in hidden], dim=1)
            scores.append(spearman(said, drops[:, :, None]))
    return torch.stack(scores).mean(0)
