"""Patch deletion: is a patch's evidence what hiding the patch does? (IDSDS: Hesse et al., 2024.)

    said_P(x) = Σ_{u in P} I(x)_u                      for each patch P of a grid, 4 × 4
    done_P(x) = r_c(x) - r_c(x without P),             r_c = logit_c - mean over all classes
    score     = mean over x of Spearman(said(x), done(x))
    floor     = mean over x ≠ x′ of Spearman(said(x′), done(x))

"Without P" means that P shows a filling: the picture's mean colour, and a blurred copy of the picture, since
the filling decides what is missing. A random map scores 0. So does a constant one: it ranks nothing. The
*mismatched floor* is what the map of another picture gets: above 0 where objects stand in the middle. Where
the evidence is the model (logit = Σ of local terms) the score is 1.

Hidden patches are unlike the pictures a model has learnt; the authors fine-tune the model on such pictures
first.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.metrics.estimate import Estimate, estimate, estimates, ratio
from torchsite.metrics.measure import Batch, Measure, Passes, Statistics, Sums
from torchsite.metrics.similarity import spearman
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


class PatchDeletion(Measure):
    """The rank correlation between the evidence of patches and what hiding them does to the logit."""

    probes = True
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
        self.explainer.require_model()
        if not fills or grid[0] * grid[1] < 2:
            raise ConfigError(f"expected two patches and a filling or more, got {grid} and {fills!r}")
        self.grid, self.fills = (grid[0], grid[1]), tuple(as_fill(fill) for fill in fills)
        self._add_sums(2, 1 + len(self.fills))

    def passes(self) -> Passes:
        """One map; the picture, and the picture without each patch, under each filling."""
        return Passes(1, 1 + len(self.fills) * self.grid[0] * self.grid[1])

    def _update(self, batch: Batch) -> Statistics:
        said = patch_sums(self.explainer(batch.images, batch.classes), self.grid)
        whole = self._relative(batch.images, batch.classes)
        done = [self._done(batch, whole, fill) for fill in self.fills]
        paired = float(len(batch) > 1)
        rows = []
        for evidence, counts in ((said, 1.0), (said.roll(-1, 0), paired)):
            scores = [counts * spearman(_column(evidence), _column(drops)) for drops in done]
            rows.append(torch.stack([torch.full_like(scores[0], counts), *scores], dim=1))
        return torch.stack(rows, dim=1)

    def _done(self, batch: Batch, whole: Scores, fill: Fill) -> Float[Tensor, "batch patches"]:
        """How far the relative logit falls when each patch is hidden."""
        background = fill.background(batch.images, rng=self._rng(batch, fill.name))
        parts = without_each(batch.images, self.grid, background)
        return torch.stack([whole - self._relative(part, batch.classes) for part in parts], dim=1)

    def _relative(self, images: Images, classes: Labels) -> Scores:
        return relative_logits(self.explainer.logits(images), classes)

    def _compute(self, sums: Sums) -> PatchDeletionResult:
        rates = ratio(sums[..., 1:], sums[..., :1])
        correlation, floor = rates.mean(2).cpu().unbind(1)
        columns = zip(*(estimates(rates[:, row]) for row in range(2)), strict=True)
        names = [fill.name for fill in self.fills]
        fills = {name: Deletions(*pair) for name, pair in zip(names, columns, strict=True)}
        return PatchDeletionResult(estimate(correlation), estimate(floor), fills)


def _column(values: Float[Tensor, "batch patches"]) -> Float[Tensor, "batch patches 1"]:
    return values[:, :, None]
