"""Six maps made without the model, as controls: a good measure gives them low scores.

Each is an explainer `(images, classes) → heatmaps` that never runs a model. The frame template is the cheap
way to consistency: it finds the black corners of a posed picture and draws one blob where the frame's centre
has gone. The edges and the picture itself move with the picture and are perfectly consistent.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.randomness import make_rng
from torchsite.shapes import Heatmaps, Images, Labels
from torchsite.transforms import AffineTransform

BLOB = 0.25  # the width of a blob as a share of the shorter side
BLACK = 1e-3
COARSE = 16  # frames are recognised at this resolution
ANGLES = tuple(range(-45, 45, 5))  # a square frame looks the same after a quarter turn
SHIFTS = tuple(step / 32 for step in range(-8, 9))

MapMaker = Callable[[Images, Labels], Heatmaps]


def constant(images: Images, classes: Labels) -> Heatmaps:
    """1 everywhere."""
    return torch.ones_like(images[:, 0])


def noise(images: Images, classes: Labels) -> Heatmaps:
    """Uniform noise in [-1, 1), seeded by the sum of the picture's pixels: the same at every call."""
    seeds = images.detach().double().flatten(1).sum(1).cpu()
    size = images.shape[-2:]
    maps = [torch.rand(size, generator=make_rng(0, "ignorant", repr(seed))) for seed in seeds.tolist()]
    return 2 * torch.stack(maps).to(images) - 1


def centre_blob(images: Images, classes: Labels) -> Heatmaps:
    """A Gaussian in the middle of the frame."""
    return _blobs(images, torch.zeros(len(images), 2))


def frame_template(images: Images, classes: Labels) -> Heatmaps:
    """A Gaussian in the middle of the *posed* frame, which black corners give away."""
    return _blobs(images, _frame_centres(images))


def edges(images: Images, classes: Labels) -> Heatmaps:
    """The length of the slope of the brightness (Sobel)."""
    across = images.new_tensor([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
    grey = F.pad(images.mean(1, keepdim=True), (1, 1, 1, 1), mode="replicate")
    return F.conv2d(grey, torch.stack([across, across.T])[:, None]).norm(dim=1)


def picture(images: Images, classes: Labels) -> Heatmaps:
    """The brightness of the picture itself."""
    return images.mean(1)


CONTROL_MAPS: Mapping[str, MapMaker] = {
    "constant": constant,
    "random": noise,
    "centre_blob": centre_blob,
    "frame_template": frame_template,
    "edges": edges,
    "picture": picture,
}


def _blobs(images: Images, centres: Float[Tensor, "batch 2"]) -> Heatmaps:
    """Gaussians around centres in shares of the shorter side, to the right and downwards of the middle."""
    rows, cols = images.shape[-2:]
    side = min(rows, cols)
    x, y = (((torch.arange(n) + 0.5) - n / 2) / side for n in (cols, rows))
    across = torch.exp(-(((x - centres[:, :1]) / BLOB) ** 2) / 2)
    down = torch.exp(-(((y - centres[:, 1:]) / BLOB) ** 2) / 2)
    return (down[:, :, None] * across[:, None, :]).to(images)


def _frame_centres(images: Images) -> Float[Tensor, "batch 2"]:
    """Where the frame's centre has gone: the pose whose seen part is most like what is not black."""
    seen = (images.amax(1, keepdim=True) > BLACK).float().cpu()
    coarse = F.adaptive_avg_pool2d(seen, COARSE).flatten(1)
    frames, centres = _frames()
    distances = torch.cdist(coarse, frames)
    return centres[distances.argmin(1)]


@lru_cache(maxsize=1)
@torch.inference_mode(False)
def _frames() -> tuple[Float[Tensor, "poses pixels"], Float[Tensor, "poses 2"]]:
    """How square frames look in all poses, and where their centres are; the upright one first."""
    poses = [(float(a), x, y) for a in ANGLES for x in SHIFTS for y in SHIFTS]
    poses.sort(key=lambda pose: math.hypot(*pose))
    angle, right, down = torch.tensor(poses, dtype=torch.float64).unbind(1)
    posed = AffineTransform.pose(angle, right, down)
    frames = posed(torch.ones(len(poses), 1, 2 * COARSE, 2 * COARSE))
    coarse = F.avg_pool2d(frames, 2).flatten(1)
    return coarse, torch.stack([right, down], dim=1).float()
