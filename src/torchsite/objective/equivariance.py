"""The direct term of equivariance: the map of a posed picture is the posed map of the picture.

    L_eq = 1 - cos(m ⊙ T₂T₁⁻¹ I(T₁ x), m ⊙ I(T₂ x))                              (equation trans_eq)

I are maps, or the prototypes themselves: where features are pixels, maps are mostly the picture and follow it
whatever the prototypes do.

One half is the mean over all classes, one the picture's own class. Its own map is the one that is looked at
and measured, and the hardest to keep; as one of many in a mean it would hardly count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.configs import check_bounds
from torchsite.distributed import mean_with_gradients, n_ranks
from torchsite.errors import ConfigError
from torchsite.model import SITE
from torchsite.objective.term import Found, Memory, Seen, Step, Term, own_and_all, shares_shown
from torchsite.objective.views import POSED, UPRIGHT, HiddenView, View
from torchsite.shapes import Heatmaps, Maps, Scalar
from torchsite.transforms import Transform

MapLosses = Float[Tensor, "batch *channels"]


@dataclass(frozen=True, kw_only=True)
class EquivarianceTerm(Term, name="equivariance"):
    """The maps, or the prototypes, of two views of each picture must agree.

    `form` says how agreement counts: the plain cosine; without the mean of each map (`centred`); or above the
    likeness of maps of different pictures (`calibrated`), so that one template for all gains nothing. `maps`
    are those of each class alone, or relative to all classes, as a `zero_sum` model shows them, or else
    `prototypes` of each class, whose floor is that of other pictures' prototypes of the same class. Much of a
    relative map is positive wherever the picture speaks for its class, and so they are alike: to ask for a
    low floor would ask them not to be true, and `calibrated` is refused.

    With `unseen: silent` what the posed view does not show, beyond the picture's edge and in a rectangle of
    the share `hidden`, must give no evidence there.
    """

    form: Literal["cosine", "centred", "calibrated"] = "cosine"
    maps: Literal["plain", "relative", "prototypes"] = "plain"
    unseen: Literal["ignored", "silent"] = "ignored"
    hidden: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bounds(self, "[0, 1)", "hidden")
        if self.hidden and self.unseen == "ignored":
            raise ConfigError(
                "equivariance.hidden: what is hidden must give no evidence: expected unseen: silent, "
                "got ignored"
            )
        if self.maps == "relative" and self.form == "calibrated":
            raise ConfigError(
                "equivariance.form: relative maps are alike where they are true: expected cosine or centred, "
                "got calibrated"
            )

    def views(self) -> tuple[View, ...]:
        """The two that are compared."""
        return UPRIGHT, HiddenView("posed", "pose", hidden=self.hidden) if self.hidden else POSED

    def check(self, model: SITE) -> None:
        """Only a model that shows relative maps learns them."""
        if self.maps == "relative" and not model.config.zero_sum:
            raise ConfigError("equivariance.maps: expected a model that shows relative maps: set zero_sum")

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """Between the two views; the floor is that of all pictures of the step."""
        del memory
        before, after = step.view("upright"), step.view("posed")
        first, second = (self._compared(seen) for seen in (before, after))
        motion, labels = after.pose @ before.pose.inverse(), step.batch.labels
        losses = equivariance_losses(
            first, second, motion, centred=self.form == "centred", shown=self._shown(after, first)
        )
        loss = own_and_all(losses if losses.ndim == 2 else losses.mean(2), labels)
        if self.form != "calibrated":
            return Found(loss)
        alike = partial(mismatched_similarity, n_parts=n_ranks(), mean_of_parts=mean_with_gradients)
        own = first[torch.arange(len(first)), labels]
        floors = [alike(one) for one in (first.unbind(1) if self.maps == "prototypes" else [own])]
        floor = torch.stack(floors).mean()
        return Found(calibrated(mean_with_gradients(loss), floor), {"floor": floor})

    def _compared(self, seen: Seen) -> Maps:
        """What must agree of a view."""
        return seen.run.prototypes if self.maps == "prototypes" else seen.evidence(self.maps)

    def _shown(self, seen: Seen, like: Maps) -> Heatmaps | None:
        """The share of each cell that is seen, if what is unseen counts."""
        if self.unseen == "ignored":
            return None
        if seen.visible is None:
            return like.new_ones(len(like), like.shape[-2], like.shape[-1])
        return shares_shown(seen.visible, like)


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
