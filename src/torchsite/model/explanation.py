"""One forward pass of SITE: the prediction and its explanation are the same numbers.

    ŵ_i = w_i ⊙ z · product_scale        contributions
    logit_i = Σ ŵ_i                      completeness
    heatmap_i = H(Σ_depth ŵ_i) / s²      H: bilinear upsampling by s, align_corners=False

For an integer factor s every feature cell has total weight s² under H, edges included, so the heatmap in
pixels sums to the logit exactly. For any other size the weights differ from cell to cell; each cell is then
divided by its own, so the sum is exact for every size.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ShapeError, did_you_mean
from torchsite.model.gallery import Gallery
from torchsite.shapes import (
    ClassHeatmaps,
    Contributions,
    Features,
    Heatmaps,
    Images,
    Labels,
    Logits,
    Maps,
    Prototypes,
    Size,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ClassChoice = int | str | Labels


class EvidenceSums:
    """What follows from evidence alone, at any resolution: logits are its sums."""

    evidence: Float[Tensor, "batch classes rows cols"]
    multi_label: bool

    @property
    def logits(self) -> Logits:
        """The sums of the evidence."""
        return self.evidence.sum((-2, -1))

    @property
    def probabilities(self) -> Logits:
        """The softmax of the logits; their sigmoid, where several classes may be true."""
        return self.logits.sigmoid() if self.multi_label else self.logits.softmax(1)

    @property
    def predicted(self) -> Labels:
        """The class with the largest sum, for each picture."""
        return self.logits.argmax(1)

    def runner_up(self) -> Labels:
        """The class with the second largest logit."""
        return self.logits.topk(2, dim=1).indices[:, 1]


@dataclass(frozen=True, eq=False)
class Explanation(EvidenceSums):
    """Features, prototypes and the evidence that is their product."""

    images: Images
    features: Features
    prototypes: Prototypes
    evidence: Float[Tensor, "batch classes rows cols"]
    product_scale: float
    classes: tuple[str, ...]
    multi_label: bool = False
    gallery: Gallery | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def contributions(self) -> Contributions:
        """What each feature adds to each logit: w_i ⊙ z, scaled."""
        return self.prototypes * self.features.unsqueeze(1) * self.product_scale

    def heatmaps(
        self, size: Size | None = None, classes: ClassChoice | None = None
    ) -> ClassHeatmaps | Heatmaps:
        """Raw, signed evidence per pixel: for all classes, or for one chosen class per picture.

        `size` is the picture's own by default. `classes` may be one class (number or name) for all
        pictures or one number per picture; the result then has no class axis.
        """
        chosen = self.evidence if classes is None else self._of(classes).unsqueeze(1)
        maps = enlarge(chosen, size or _size(self.images))
        return maps if classes is None else maps.squeeze(1)

    def contrast(self, a: ClassChoice, b: ClassChoice, size: Size | None = None) -> Heatmaps:
        """The evidence for class `a` rather than `b`; its sum is logit_a - logit_b."""
        difference = self._of(a) - self._of(b)
        return enlarge(difference.unsqueeze(1), size or _size(self.images)).squeeze(1)

    why = contrast  # its earlier name

    def class_index(self, choice: ClassChoice) -> Labels:
        """One class number per picture from a number, a name, or numbers."""
        n_classes = self.evidence.shape[1]
        if isinstance(choice, str):
            if choice not in self.classes:
                raise ShapeError(f"no class {choice!r}: {did_you_mean(choice, self.classes)}")
            choice = self.classes.index(choice)
        index = torch.as_tensor(choice, device=self.evidence.device)
        if index.dtype not in (torch.int64, torch.int32) or index.numel() not in (1, len(self)):
            raise ShapeError(
                f"classes: expected one class or {len(self)} integers, "
                f"got {tuple(index.shape)} of {index.dtype}"
            )
        if len(self) and (int(index.min()) < 0 or int(index.max()) >= n_classes):
            raise ShapeError(f"classes: expected numbers from 0 to {n_classes - 1}, got {index.tolist()}")
        return index.reshape(-1).long().expand(len(self))

    @property
    def pixels_are_features(self) -> bool:
        """Whether prototypes are pictures by themselves."""
        return self.features.shape[1:] == self.images.shape[1:]

    def prototype_pictures(self, index: int = 0) -> Float[Tensor, "classes channels height width"] | None:
        """What the prototypes for one picture look like: themselves, where features are pixels.

        Learned features have no colours: these are then the training pictures that fit best (`gallery.py`),
        and None where no gallery lies beside the weights.
        """
        if self.pixels_are_features:
            return self.prototypes[index]
        return None if self.gallery is None else self.gallery.show(self.prototypes[index : index + 1])[0]

    def plot(self, index: int = 0, n_classes: int = 5) -> "Figure":
        """A matplotlib figure of one picture: the strongest classes with prototypes and heatmaps."""
        from torchsite.model.drawing import draw_explanation  # matplotlib loads only when something is drawn

        return draw_explanation(self, index, n_classes)

    def _repr_html_(self) -> str:
        from torchsite.model.drawing import explanation_html

        return explanation_html(self)

    def _of(self, choice: ClassChoice) -> Maps:
        index = self.class_index(choice)
        return self.evidence[torch.arange(len(self), device=index.device), index]


def enlarge(evidence: Maps, size: Size) -> Maps:
    """Evidence of feature cells spread over pixels, keeping its sum: H(evidence / Hᵀ1), bilinear.

    Maps that shrink are averaged over all the cells a pixel covers, so none is lost.
    """
    rows, cols = evidence.shape[-2:]
    if min(size) < 1:
        raise ShapeError(f"size: expected positive (height, width), got {tuple(size)}")
    if (rows, cols) == tuple(size):
        return evidence
    weights = _cell_weights(rows, size[0])[:, None] * _cell_weights(cols, size[1])
    spread = evidence / weights.to(evidence)
    if size[0] >= rows and size[1] >= cols:
        return F.interpolate(spread, size=tuple(size), mode="bilinear", align_corners=False)
    down, across = _spreading(rows, size[0]), _spreading(cols, size[1])  # each axis by its own rule
    return down.T.to(evidence) @ spread @ across.to(evidence)  # torch's antialiasing errs on one column


def _cell_weights(cells: int, pixels: int) -> Float[Tensor, " cells"]:
    """How much weight the pixels of one axis give to each of its cells, in all."""
    if pixels % cells == 0:
        return torch.full((cells,), pixels / cells, dtype=torch.float64)
    return _spreading(cells, pixels).sum(1)


def _spreading(cells: int, pixels: int) -> Float[Tensor, "cells pixels"]:
    """Which share of each cell every pixel of one axis takes."""
    each = torch.eye(cells, dtype=torch.float64)[None, None]
    spread = F.interpolate(
        each, size=(cells, pixels), mode="bilinear", align_corners=False, antialias=pixels < cells
    )
    return spread[0, 0]


def _size(images: Images) -> Size:
    return (images.shape[-2], images.shape[-1])
