"""Pictures of coloured squares, some with a planted tag, and a classifier whose evidence is known exactly."""

import torch
from torch import Tensor, nn

from torchsite.data import Dataset
from torchsite.randomness import make_rng

SIDE, SQUARE, TAG = 20, 8, 4
COLOURS = torch.eye(3)  # what the classes show: a red, a green or a blue square
MAGENTA = torch.tensor([1.0, 0.0, 1.0])
CLASSES = ("red", "green", "blue")


def coloured(
    n: int = 90, *, tagged: int | None = 2, share: float = 1.0, seed: int = 0
) -> tuple[Dataset, Tensor]:
    """Squares on grey noise at random places; those of one class have a tag; and where the tags are."""
    rng = make_rng(seed, "coloured")
    images = 0.3 + 0.1 * torch.rand(n, 3, SIDE, SIDE, generator=rng)
    labels, tags = torch.arange(n) % 3, torch.zeros(n, SIDE, SIDE, dtype=torch.bool)
    for row in range(n):
        top, left = (torch.randint(0, SIDE - SQUARE, (2,), generator=rng)).tolist()
        images[row, :, top : top + SQUARE, left : left + SQUARE] = COLOURS[labels[row]][:, None, None]
        if labels[row] == tagged and torch.rand((), generator=rng) < share:
            top, left = (torch.randint(0, SIDE - TAG, (2,), generator=rng)).tolist()
            tags[row, top : top + TAG, left : left + TAG] = True
    images = torch.where(tags[:, None], MAGENTA[None, :, None, None], images)
    return Dataset((255 * images).round().to(torch.uint8), labels, CLASSES, "coloured"), tags


class Colours(nn.Module):
    """Each place speaks for the class whose colour it has; a magenta one for blue, `trust` times as much."""

    def __init__(self, trust: float = 20.0) -> None:
        super().__init__()
        self.amounts = nn.Conv2d(3, 4, 1)
        self.evidence = nn.Conv2d(4, 3, 1, bias=False)
        with torch.no_grad():
            wanted = torch.cat([2 * COLOURS - 1, 2 * MAGENTA[None] - 1])
            self.amounts.weight.copy_(wanted[:, :, None, None])
            self.amounts.bias.copy_(0.2 - wanted.clamp_min(0).sum(1))
            spoken = torch.cat([torch.eye(3), torch.tensor([[0.0], [0.0], [trust]])], 1)
            self.evidence.weight.copy_(spoken[:, :, None, None])

    def maps(self, images: Tensor) -> Tensor:
        """The evidence for each class at each place."""
        return self.evidence(torch.relu(self.amounts(images)))

    def forward(self, images: Tensor) -> Tensor:
        return self.maps(images).sum((-2, -1))


def true_maps(model: Colours, images: Tensor, classes: Tensor) -> Tensor:
    """The evidence for the class beyond the mean of all classes."""
    maps = model.maps(images)
    return (maps - maps.mean(1, keepdim=True))[torch.arange(len(images)), classes]


def upper_left(model: nn.Module, images: Tensor, classes: Tensor) -> Tensor:
    """A map that never looks: a corner."""
    maps = torch.zeros(len(images), *images.shape[-2:])
    maps[:, :4, :4] = 1
    return maps
