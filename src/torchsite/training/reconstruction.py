"""A small decoder from features to pictures, trained beside a model that stays as it is.

    L = mean |D(z) - x| + mean |∇D(z) - ∇x|,        z = F1(x), without a gradient

It shows what the features keep of a picture. It cannot draw prototypes, which are not the features of any
picture (docs/design/galleries.md), so it is used for exemplars only.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from torchsite.data import Dataset
from torchsite.model import SITE
from torchsite.modes import evaluating
from torchsite.randomness import Rng
from torchsite.shapes import Features, Images, Size
from torchsite.training.batches import look_up

WIDTH = 64
BATCH = 64
N_PICTURES = 4000
STEPS = 1500
LEARNING_RATE = 4e-3
MOST_SIDE = 64


class Decoder(nn.Module):
    """Convolutions in the cells of the features, then twice as many cells until there are enough pixels."""

    def __init__(self, depth: int, cells: Size, channels: int, size: Size) -> None:
        super().__init__()
        self.size = size
        n_doublings = max(0, *(math.ceil(math.log2(side / n)) for n, side in zip(cells, size, strict=True)))
        layers: list[nn.Module] = [nn.Conv2d(depth, WIDTH, 3, padding=1), nn.GELU()]
        layers += [nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.GELU()]
        width = WIDTH
        for _ in range(n_doublings):
            narrow = max(16, width // 2)
            layers += [nn.Conv2d(width, 4 * narrow, 3, padding=1), nn.PixelShuffle(2), nn.GELU()]
            width = narrow
        self.draw = nn.Sequential(*layers, nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, features: Features) -> Images:
        """Pictures in [0, 1]."""
        drawn = self.draw(features)
        if tuple(drawn.shape[-2:]) != self.size:
            drawn = F.interpolate(drawn, self.size, mode="bilinear", antialias=True, align_corners=False)
        return drawn.sigmoid()


def train_decoder(
    model: SITE, data: Dataset, *, rng: Rng, steps: int = STEPS, n_pictures: int = N_PICTURES
) -> Decoder:
    """Train on the features of some pictures; they are computed once, and no gradient reaches the model."""
    features, images = _pairs(model, data, n_pictures, rng)
    (depth, *cells), (channels, *size) = features.shape[1:], images.shape[1:]
    with torch.random.fork_rng(devices=[]):  # the first weights are drawn from `rng`
        torch.default_generator.manual_seed(int(torch.randint(2**31, (1,), generator=rng)))
        decoder = Decoder(depth, (cells[0], cells[1]), channels, (size[0], size[1]))
    optimiser = torch.optim.AdamW(decoder.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LEARNING_RATE, steps)
    with torch.enable_grad():
        for _ in range(steps):
            rows = torch.randint(len(features), (BATCH,), generator=rng)
            loss = reconstruction_loss(decoder(features[rows].float()), images[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return decoder.requires_grad_(False).eval()


def reconstruction_loss(drawn: Images, images: Images) -> Float[Tensor, ""]:
    """The mean distance of pixels and of the steps from each to the next, across and down."""
    across, down = ((drawn.diff(dim=axis) - images.diff(dim=axis)).abs().mean() for axis in (-1, -2))
    return (drawn - images).abs().mean() + across + down


@torch.no_grad()
def _pairs(model: SITE, data: Dataset, n: int, rng: Rng) -> tuple[Features, Images]:
    """Features and their pictures, made small."""
    rows = torch.randperm(len(data), generator=rng)[:n]
    like = next(model.parameters())
    features, images = [], []
    with evaluating(model):
        for part in rows.split(BATCH):
            pictures, _ = look_up(data, part, like)
            features.append(model.features(pictures).half().cpu())
            images.append(small(pictures).float().cpu())
    return torch.cat(features), torch.cat(images)


def small(images: Images) -> Images:
    """Pictures of at most 64 pixels a side."""
    height, width = images.shape[-2:]
    factor = MOST_SIDE / max(height, width)
    if factor >= 1:
        return images
    size = (max(1, round(height * factor)), max(1, round(width * factor)))
    return F.interpolate(images, size, mode="bilinear", antialias=True, align_corners=False)
