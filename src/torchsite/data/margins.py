"""Pictures kept larger than a model sees them: turned views show their surroundings instead of corners.

    larger    the picture as it is kept, `margin` times the working size
    images    its centre, of the working size: what the model sees of a picture as it is

The centre is a view into the larger pixels, so a margin costs no memory beyond them.
"""

import math

import torch.nn.functional as F

from torchsite.errors import ConfigError
from torchsite.shapes import Maps, Masks, Size

MOST = 4.0


def check_margin(margin: float) -> None:
    """A margin is a factor of the working size, 1 for none."""
    if not 1 <= margin <= MOST:
        raise ConfigError(f"margin: expected a factor from 1 to {MOST:g}, got {margin}")


def larger_size(size: int, margin: float) -> int:
    """The side of the larger picture: as many pixels more on either side of the centre."""
    return size + 2 * math.ceil(size * (margin - 1) / 2 - 1e-6)


def surrounded(masks: Masks, size: Size) -> Masks:
    """Masks of the centres as masks of the larger pictures, False around."""
    down, across = ((whole - part) // 2 for whole, part in zip(size, masks.shape[-2:], strict=True))
    return F.pad(masks, (across, across, down, down))


def centre(pictures: Maps, size: Size) -> Maps:
    """The middle of larger pictures, as a view into them."""
    top, left = ((whole - part) // 2 for whole, part in zip(pictures.shape[-2:], size, strict=True))
    return pictures[..., top : top + size[0], left : left + size[1]]
