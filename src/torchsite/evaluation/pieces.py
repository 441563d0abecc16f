"""Pieces of pictures: where the evidence for a class peaks, what stands there, which pieces are alike.

    piece      a square window of `PIECE` of the shorter side: the one with the most positive evidence of a
               picture, then the next that does not overlap with it, and so on
    features   Σ_u e⁺(u) z(u) / Σ_u e⁺(u) over the window: z, where the evidence stands
    groups     k-means of the features; k is the number whose silhouette is the largest

z are the features that SITE multiplies with its prototypes; for any other network, and where features are the
pixels, the last layer that everything passes through.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from torchsite.evaluation.methods import last_encoder_block
from torchsite.extras import needed
from torchsite.layers import last_spatial_layer
from torchsite.metrics import box_regions
from torchsite.model import SITE
from torchsite.modes import evaluating
from torchsite.shapes import Features, Heatmaps, Images, Labels, Masks, Size

PIECE = 0.2
N_PIECES = 3  # of each picture
MOST_GROUPS = 6
INSTALL = "torchsite[audit]"

Boxes = Int64[Tensor, "pieces 4"]
Vectors = Float[Tensor, "pieces depth"]
ReadFeatures = Callable[[Images], Features]


@dataclass(frozen=True, eq=False)
class Pieces:
    """Windows: the picture's number, (left, top, right, bottom) in pixels, and the features inside."""

    rows: Labels
    boxes: Boxes
    features: Vectors

    def of(self, chosen: Tensor) -> "Pieces":
        """Some of the pieces."""
        return Pieces(self.rows[chosen], self.boxes[chosen], self.features[chosen])

    def by_picture(self, size: Size) -> tuple[Labels, Masks]:
        """The numbers of their pictures, each once, and where the pieces of each stand."""
        rows, places = self.rows.unique(return_inverse=True)
        found = torch.zeros(len(rows), *size, dtype=torch.bool)
        inside = box_regions(self.boxes.double(), size) > 0
        for place, mask in zip(places.tolist(), inside, strict=True):
            found[place] |= mask
        return rows, found


def piece_side(size: Size) -> int:
    """How many pixels a piece is wide and high."""
    return max(2, round(PIECE * min(size)))


def find_pieces(heatmaps: Heatmaps, features: Features, n: int = N_PIECES) -> Pieces:
    """The pieces of some pictures.

    A window that has no more evidence than its part of the area is no peak and is left out.
    """
    positive = heatmaps.double().clamp_min(0)
    side = piece_side((positive.shape[-2], positive.shape[-1]))
    sums = side**2 * F.avg_pool2d(positive[:, None], side, stride=1)[:, 0]
    least = side**2 * positive.mean((1, 2))
    rows, boxes = [], []
    for _ in range(n):
        best, place = sums.flatten(1).max(1)
        top, left = place // sums.shape[-1], place % sums.shape[-1]
        kept = best > least
        rows.append(kept.nonzero()[:, 0])
        boxes.append(torch.stack([left, top, left + side, top + side], dim=1)[kept])
        down, across = (
            (torch.arange(length, device=sums.device) - corner[:, None]).abs() < side
            for length, corner in zip(sums.shape[-2:], (top, left), strict=True)
        )
        sums = sums.masked_fill(down[:, :, None] & across[:, None, :], -1)
    row, box = torch.cat(rows), torch.cat(boxes)
    vectors = _features_inside(positive, features.to(positive.device), row, box)
    return Pieces(row.cpu(), box.cpu(), vectors.cpu())


def strongest_window(heatmap: Float[Tensor, "height width"]) -> Bool[Tensor, "height width"]:
    """The window of one piece with the most positive evidence."""
    size = (heatmap.shape[0], heatmap.shape[1])
    found = find_pieces(heatmap[None], heatmap.new_zeros(1, 1, *size), n=1)
    return found.by_picture(size)[1].any(0) if len(found.rows) else torch.zeros(size, dtype=torch.bool)


def join_pieces(parts: list[Pieces]) -> Pieces:
    """The pieces of several batches."""
    return Pieces(
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("rows", "boxes", "features"))
    )


def group_pieces(features: Vectors, seed: int, most: int = MOST_GROUPS) -> Labels:
    """The number of the group of each piece, the largest group first; one group where there are too few."""
    vectors = features.double().numpy()
    n_different = len(np.unique(vectors.round(6), axis=0))
    found, best = np.zeros(len(vectors), dtype=np.int64), -1.0
    cluster, scores = (
        needed(f"sklearn.{name}", who="the audit", install=INSTALL, package="scikit-learn")
        for name in ("cluster", "metrics")
    )
    for k in range(2, min(most, n_different, len(vectors) - 1) + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few pieces that differ are no error
            labels = cluster.KMeans(k, n_init=4, random_state=seed).fit_predict(vectors)
        score = scores.silhouette_score(vectors, labels)
        if score > best:
            found, best = labels, score
    order = np.bincount(found).argsort()[::-1].argsort()
    return torch.from_numpy(order[found].astype(np.int64))


def features_of(model: nn.Module, images: Images) -> ReadFeatures:
    """What z is for this model: a function of pictures; `images` are some to try it with."""
    if isinstance(model, SITE) and not model.pixels_are_features:
        return _without_gradients(model, model.features)
    hidden = last_encoder_block(model) if isinstance(model, SITE) else None
    with evaluating(model):
        layer = model.get_submodule(hidden or last_spatial_layer(model, images[:1]))

    def read(images: Images) -> Features:
        seen: list[Tensor] = []
        handle = layer.register_forward_hook(lambda *call: seen.append(call[2]))
        try:
            model(images)
        finally:
            handle.remove()
        return seen[0]

    return _without_gradients(model, read)


def _without_gradients(model: nn.Module, read: ReadFeatures) -> ReadFeatures:
    def features(images: Images) -> Features:
        with evaluating(model), torch.no_grad():
            return read(images).float()

    return features


def _features_inside(positive: Heatmaps, features: Features, rows: Labels, boxes: Boxes) -> Vectors:
    """The mean of the features in each window, weighted by the evidence."""
    size = (positive.shape[-2], positive.shape[-1])
    weights = positive[rows] * box_regions(boxes.double(), size).to(positive)
    cells = F.adaptive_avg_pool2d(weights, (features.shape[-2], features.shape[-1])).to(features)
    sums = torch.einsum("nhw,ndhw->nd", cells, features[rows])
    return sums / cells.sum((1, 2)).clamp_min(1e-12)[:, None]
