"""The terms of the training objective, one pure function each.

    L = CE(logits(T x), y) + λ · L_trans + μ · L_equivariance                     (equation obj)

L_trans compares the prototypes of a transformed picture, carried back, with features of class i:
BCE(T⁻¹ G_i(F1(T x)), F1(x_i)), a mean over the elements that the picture covers (equation l_trans). Binary
cross-entropy is affine in its target, so the expectation over x_i needs only the mean feature of class i:

    E[BCE(p, F1(x_i))] = BCE(p, E[F1(x_i)])                                        (closed form)

The targets are therefore an argument: class means, means of exemplars near to x, or single samples. Values
to be compared lie in [0, 1]; raw prototypes r stand for σ(slope·r), where slope is 1 for sigmoid and 2 for
tanh, since (tanh r + 1)/2 = σ(2r).
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.shapes import Features, Heatmaps, Labels, Logits, Maps, Masks, Prototypes, Scalar
from torchsite.transforms import Transform

Warp = Literal["target", "prototype"]
Targets = Float[Tensor, "*batch classes depth rows cols"]
MapLosses = Float[Tensor, "batch *channels"]
ClassSums = Float[Tensor, "classes depth rows cols"]


def classification_loss(logits: Logits, labels: Labels, label_smoothing: float = 0.0) -> Scalar:
    """Cross-entropy of the logits, which are the sums of the explanations (equation l_cls)."""
    return F.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def transformation_loss(
    raw_prototypes: Prototypes,
    targets: Targets,
    transform: Transform,
    *,
    slope: float = 1.0,
    warp: Warp = "target",
) -> Scalar:
    """BCE between prototypes of T x and canonical targets, within the mask (equation l_trans).

    `warp="prototype"` carries the prototypes back, as the text does; `warp="target"` carries the targets
    forth, which asks for the same and needs no gradient through the resampler. `targets` are means per
    class or per picture and class.
    """
    size = (raw_prototypes.shape[-2], raw_prototypes.shape[-1])
    if warp == "target":
        expected = transform(targets.detach().expand(raw_prototypes.shape))
        losses = F.binary_cross_entropy_with_logits(slope * raw_prototypes, expected, reduction="none")
        return masked_mean(losses, transform.mask(size))
    if warp == "prototype":
        back = transform.inverse()
        probabilities = back(torch.sigmoid(slope * raw_prototypes))
        return masked_mean(_bce(probabilities, targets.detach()), back.mask(size))
    raise ConfigError(f"warp: expected 'target' or 'prototype', got {warp!r}")


def reconstruction_loss(raw_prototypes: Prototypes, targets: Targets, *, slope: float = 1.0) -> Scalar:
    """The same without a transform (equation l_reg)."""
    expected = targets.detach().expand(raw_prototypes.shape)
    return F.binary_cross_entropy_with_logits(slope * raw_prototypes, expected)


def equivariance_losses(
    first: Maps,
    second: Maps,
    first_to_second: Transform,
    *,
    centred: bool = False,
    shown: Heatmaps | None = None,
) -> MapLosses:
    """1 - cosine between each map of one pose, carried over, and that of another (equation trans_eq).

    `first_to_second` is T₂ T₁⁻¹ for maps of T₁ x and T₂ x: what self-consistency measures, per class. With
    `centred` both maps first lose their mean within the mask: 1 - Pearson's correlation, for which maps that
    are alike only because they are flat, or positive everywhere, count nothing.

    Cells that the carried map does not cover are left out. With `shown`, the share of each cell of the second
    view that is seen, they are not: beyond the picture's edge and where it is hidden, the second map must be
    zero.
    """
    mask = first_to_second.mask((first.shape[-2], first.shape[-1]))
    mask = mask.reshape(len(mask), *[1] * (first.ndim - 3), *mask.shape[1:]).to(first.dtype)
    covered = mask.flatten(-2)
    carried, other = first_to_second(first).flatten(-2) * covered, second.flatten(-2)
    if shown is not None:
        carried = carried * shown.reshape(len(shown), *[1] * (first.ndim - 3), -1)
        covered = torch.ones_like(covered)
    other = other * covered
    if centred:
        n = covered.sum(-1, keepdim=True).clamp_min(1)
        carried, other = (maps - maps.sum(-1, keepdim=True) / n * covered for maps in (carried, other))
    return 1 - F.cosine_similarity(carried, other, dim=-1, eps=1e-6)


def mismatched_similarity(
    maps: Heatmaps, *, n_parts: int = 1, mean_of_parts: Callable[[Tensor], Tensor] = lambda part: part
) -> Scalar:
    """The mean cosine between maps of different pictures: the floor of any likeness between them.

    Where the maps are one of `n_parts` equal parts (processes), `mean_of_parts` takes means over all.
    """
    unit = F.normalize(maps.flatten(1), dim=1, eps=1e-6)
    n = n_parts * len(unit)
    parts = torch.cat([unit.sum(0), unit.square().sum().reshape(1)])
    total, own = (n_parts * mean_of_parts(parts)).split([unit.shape[1], 1])
    return (total.square().sum() - own.squeeze()) / max(1, n * (n - 1))  # |Σᵢuᵢ|² = Σᵢⱼ cos(i, j)


def calibrated(loss: Scalar, floor: Scalar) -> Scalar:
    """1 - (raw - floor)/(1 - floor) for a loss 1 - raw: agreement counts only above the floor.

    Maps that are all alike agree without following anything; here they gain nothing by it.
    """
    return loss / (1 - floor).clamp_min(1e-3)


def to_unit(features: Features, slope: float) -> Features:
    """Bounded features as values in [0, 1]: tanh's (slope 2) are moved there, sigmoid's are there."""
    return (features + 1) / 2 if slope == 2.0 else features


def class_feature_sums(
    features: Features, labels: Labels, transform: Transform, n_classes: int
) -> tuple[ClassSums, Float[Tensor, "classes 1 rows cols"]]:
    """Sums and weights of the features of each class, carried back to the canonical pose.

    Dividing the one by the other, after adding over batches (and ranks), gives the class means: padding
    has weight 0, so it never enters.
    """
    back = transform.inverse()
    mask = back.mask((features.shape[-2], features.shape[-1])).unsqueeze(1).to(features.dtype)
    carried = back(features.detach()) * mask
    sums = features.new_zeros(n_classes, *features.shape[1:]).index_add_(0, labels, carried)
    weights = features.new_zeros(n_classes, *mask.shape[1:]).index_add_(0, labels, mask)
    return sums, weights


def masked_mean(losses: Prototypes, mask: Masks) -> Scalar:
    """The mean over classes, depth and covered cells of all pictures; what is not covered may be anything."""
    covered = mask[:, None, None]
    per_cell = losses.shape[1] * losses.shape[2]
    return losses.masked_fill(~covered, 0).sum() / (covered.sum() * per_cell).clamp_min(1)


def _bce(probabilities: Maps, targets: Maps) -> Maps:
    """Binary cross-entropy of probabilities that resampling made, safe at 0 and 1."""
    eps = torch.finfo(probabilities.dtype).eps
    p = probabilities.clamp(eps, 1 - eps)
    return -(targets * p.log() + (1 - targets) * (1 - p).log())
