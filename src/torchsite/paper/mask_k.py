"""Mask-k: blank the least important pixels, transform, classify; all methods (the paper's Figure 5).

Claim:    the paper's: accuracy and log-odds drop later when SITE's own explanation says which pixels matter
          than when any post-hoc method says so. Ours do not bear it out on CIFAR-10: Score-CAM on the black
          box is ahead (docs/results.md). A random ranking is the floor.
Command:  torchsite reproduce cifar10_mask_k   (or mnist_mask_k)
Cost:     the first 1,000 test pictures, eleven fractions, one pose; slow methods on fewer (`PASSES`), and
          each is compared with a random ranking of its own pictures. CIFAR-10 with the pyramid: about 45
          minutes of one core. With --quick, a dozen digits.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from torchsite.configs import to_mapping
from torchsite.data import to_float
from torchsite.evaluation.methods import pictures_of_each
from torchsite.metrics import Poses
from torchsite.metrics.ranking import background_of, blanked, least_important_first
from torchsite.paper.arrays import save_arrays
from torchsite.paper.methods import line_of, measured, quick_limits
from torchsite.paper.models import Pair, pair_beside
from torchsite.results import Result

N_ALL = 1000
PASSES = 25_000  # that a slow method may take
SHOWN = (0.06, 0.18, 0.67)  # the paper's 1k, 3k and 11k of 16.4k pixels


def run(
    recipe: str,
    folder: Path,
    *,
    methods: Sequence[str] | None = None,
    quick: bool = False,
    progress: bool = False,
) -> Result:
    """Mask by every method on both models of the recipe; finished methods are taken from `folder`."""
    started = time.monotonic()
    pair = pair_beside(recipe, folder, quick=quick, progress=progress)
    limits = quick_limits() if quick else pictures_of_each(N_ALL, PASSES)
    rows = measured(pair, "mask_k", folder, n_pictures=limits, n_transforms=1, methods=methods)
    table = [line_of(*row) | dict(row[2].values or {}) for row in rows]
    family = to_mapping(pair.site.config.family)
    config = pair.description() | {"recipe": recipe, "family": family, "quick": quick, "fill": 0.0}
    result = Result(f"{recipe}_mask_k", {"table": table}, config, 0, time.monotonic() - started)
    save_arrays(folder / f"{result.name}.npz", masked_pictures(pair))
    result.save(folder / f"{result.name}.json")
    return result


def masked_pictures(pair: Pair) -> dict[str, torch.Tensor]:
    """The first picture with few, some, most pixels blanked by SITE's own explanation; the same moved."""
    indices = torch.zeros(1, dtype=torch.int64)
    image = to_float(pair.test.images[:1])
    explanation = pair.site.explain(image)
    order = least_important_first(explanation.heatmaps(classes=explanation.predicted), indices, 0)
    counts = [round(fraction * order.shape[1]) for fraction in SHOWN]
    masked = torch.cat([blanked(image, order, n, background_of(image, 0.0)) for n in counts])
    pose = Poses(pair.site.config.family, n=1).of(indices.expand(len(counts)), 0)
    return {"masked": masked, "moved": pose(masked)}
