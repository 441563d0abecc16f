"""Patch deletion: does the evidence of a patch predict the effect of hiding it? (IDSDS: Hesse et al., 2024.)

    said_P(x) = Σ_{u in P} I(x)_u                      for each patch P of a grid, 4 × 4
    done_P(x) = r_c(x) - r_c(x without P),             r_c = logit_c - mean over all classes
    score     = mean over x of Spearman(said(x), done(x))
    floor     = mean over x ≠ x′ of Spearman(said(x′), done(x))

"Without P" means that P shows a filling: the picture's mean colour, and a blurred copy of the picture, since
the filling decides what is missing. A random map scores 0. So does a constant one: it ranks nothing. The
*mismatched floor* is what the map of another picture gets: above 0 where objects stand in the middle. Where
the evidence is the model (logit = Σ of local terms) the score is 1.

Fails without a model, and for a grid of one patch. Hidden patches are unlike the pictures a model has learnt;
the authors fine-tune the model on such pictures first.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.errors import ConfigError
from torchsite.metrics.estimate import Estimate, each_group, estimate, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.similarity import spearman
from torchsite.modes import evaluating
from torchsite.randomness import Rng
from torchsite.shapes import Images, Labels, Logits, Scores, Size
from torchsite.transforms import Fill, FillLike, as_fill
from torchsite.transforms.patches import patch_sums, without_each

GRID = (4, 4)
FILLINGS = ("mean", "blur")


class Deletions(NamedTuple):
    """The rank correlation under one filling, and what the map of another picture gets."""

    correlation: Estimate
    floor: Estimate


class PatchDeletionResult(NamedTuple):
    """The rank correlation, on average over the fillings, its floor, and both for each filling."""

    correlation: Estimate
    floor: Estimate
    fills: dict[str, Deletions]


def relative_logits(logits: Logits, classes: Labels) -> Scores:
    """logit_c - mean over classes: what softmax sees of it, in float64."""
    wide = logits.double()
    return wide.gather(1, classes[:, None])[:, 0] - wide.mean(1)


def drops(
    logits: Callable[[Images], Logits],
    images: Images,
    classes: Labels,
    whole: Scores,
    grid: Size,
    fill: Fill,
    rng: Rng | None = None,
) -> Float[Tensor, "batch patches 1"]:
    """How far the relative logit falls from `whole` when each patch is hidden."""
    parts = without_each(images, grid, fill.background(images, rng=rng))
    return torch.stack([whole - relative_logits(logits(part), classes) for part in parts], dim=1)[:, :, None]


class PatchDeletion(Measure):
    """The rank correlation between the evidence of patches and what hiding them does to the logit."""

    needs_model = probes = True
    headline = ("correlation", "floor")

    def __init__(
        self,
        explain: Any,
        model: Any = None,
        *,
        grid: Size = GRID,
        fills: Sequence[FillLike] = FILLINGS,
        **options: Any,
    ) -> None:
        super().__init__(explain, model, **options)
        if not fills or grid[0] * grid[1] < 2:
            raise ConfigError(f"expected two patches and a filling or more, got {grid} and {fills!r}")
        self.grid, self.fills = (grid[0], grid[1]), tuple(as_fill(fill) for fill in fills)
        self._add_sums(2, 1 + len(self.fills))

    def passes(self) -> Passes:
        """One map; the picture, and the picture without each patch, under each filling."""
        return Passes(1, 1 + len(self.fills) * self.grid[0] * self.grid[1])

    def _update(self, batch: Batch) -> Statistics:
        said = patch_sums(self.explainer(batch.images, batch.classes), self.grid)[:, :, None]
        logits = self.explainer.logits
        whole = relative_logits(logits(batch.images), batch.classes)
        done = [
            drops(logits, batch.images, batch.classes, whole, self.grid, fill, self._rng(batch, fill.name))
            for fill in self.fills
        ]
        rows = []
        for evidence, counts in ((said, 1.0), (said.roll(-1, 0), float(len(batch) > 1))):
            scores = [counts * spearman(evidence, fallen) for fallen in done]
            rows.append(torch.stack([torch.full_like(scores[0], counts), *scores], dim=1))
        return torch.stack(rows, dim=1)

    def _compute(self, sums: Sums) -> PatchDeletionResult:
        correlation, floor = ratio(sums[..., 1:], sums[..., :1]).unbind(1)
        names = [fill.name for fill in self.fills]
        fills = dict(zip(names, each_group(Deletions, correlation, floor), strict=True))
        return PatchDeletionResult(estimate(correlation.mean(1)), estimate(floor.mean(1)), fills)


@torch.no_grad()
def deletion_check(
    model: nn.Module, explanation: Any, classes: Labels | None = None
) -> Float[Tensor, " batch"]:
    """The score of each picture of a model's own explanation, in [-1, 1], on average over the fillings.

    A prediction whose score is low rests on something that its map does not show: do not rely on that map.
    The class is the predicted one unless given; pictures smaller than the grid take one of their own size.
    """
    images, chosen = explanation.images, explanation.predicted if classes is None else classes
    grid = (min(GRID[0], images.shape[-2]), min(GRID[1], images.shape[-1]))
    said = patch_sums(explanation.heatmaps(classes=chosen), grid)[:, :, None]
    whole = relative_logits(explanation.logits, chosen)
    with evaluating(model):
        done = [drops(model, images, chosen, whole, grid, as_fill(fill)) for fill in FILLINGS]
    return torch.stack([spearman(said, fallen) for fallen in done]).mean(0)
