"""Carry, renew, compare: an explanation that was moved with its picture, beside the one of the moved picture.

    carried = T(I(x)),  renewed = I(T x),  m = 1 where T x shows the picture and not padding
    raw     = cos(m ⊙ carried, m ⊙ renewed)
    centred = Pearson's correlation of the two over the pixels of m
    floor   = raw with T(I(x′)) of another picture x′ instead of T(I(x))

Everything that shows or measures whether explanations move along takes these numbers from here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from torchsite.metrics.similarity import masked_cosine, masked_pearson
from torchsite.shapes import Heatmaps, Images, Labels, Masks, Scores
from torchsite.transforms import Transform


@dataclass(frozen=True, eq=False)
class Carried:
    """I(x), T(I x) and I(T x) of some pictures, the mask, and maps of other pictures carried too."""

    untouched: Heatmaps
    carried: Heatmaps
    renewed: Heatmaps
    masks: Masks
    others: Float[Tensor, "batch others height width"]

    @property
    def raw(self) -> Scores:
        """How alike T(I x) and I(T x) are: 1 is perfect."""
        return masked_cosine(self.carried, self.renewed, self.masks)

    @property
    def centred(self) -> Scores:
        """The same without the mean of each map."""
        return masked_pearson(self.carried, self.renewed, self.masks)

    @property
    def mismatched(self) -> Float[Tensor, "batch others"]:
        """How alike I(T x) is to the carried maps of other pictures, one column for each."""
        columns = [masked_cosine(other, self.renewed, self.masks) for other in self.others.unbind(1)]
        return torch.stack(columns, dim=1) if columns else self.masks.new_zeros(len(self.masks), 0).double()

    @property
    def visible(self) -> Tensor:
        """Whether the transform leaves anything of a picture to compare."""
        return self.masks.flatten(1).any(1)


def carry(
    untouched: Heatmaps,
    renewed: Heatmaps,
    transform: Transform,
    others: Float[Tensor, "batch others height width"] | None = None,
) -> Carried:
    """Move I(x), and the maps of `others` if there are any, to where I(T x) is compared with them."""
    masks = transform.mask((renewed.shape[-2], renewed.shape[-1]))
    stack = untouched[:, None] if others is None else torch.cat([untouched[:, None], others], dim=1)
    moved = transform(stack)
    return Carried(untouched, moved[:, 0], renewed, masks, moved[:, 1:])


def carry_and_renew(
    explain: Callable[[Images, Labels], Heatmaps], images: Images, classes: Labels, transform: Transform
) -> Carried:
    """Explain the pictures as they are and moved, each for its class."""
    return carry(explain(images, classes), explain(transform(images), classes), transform)
