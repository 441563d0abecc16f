"""A small ResNet as people write and train it: plain PyTorch, nothing of this package.

It is what the experiment on conversion begins with: a classifier that knows nothing of explanations, trained
on pictures as they are (shifted by a few pixels and mirrored), saved as `torch.export` saves it.
"""

import warnings
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
MARGIN = 4


class Block(nn.Module):
    """Two convolutions and what goes around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(2))
        self.around = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 2, stride, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        """The block's part added to what came in."""
        found = F.relu(self.norms[0](self.first(maps)))
        return F.relu(self.norms[1](self.second(found)) + self.around(maps))


class SmallResNet(nn.Module):
    """A stem, three stages, the mean, a line."""

    def __init__(
        self, n_classes: int = 10, channels: int = 3, widths: tuple[int, ...] = (16, 32, 64)
    ) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()
        )
        inputs = (widths[0], *widths[:-1])
        strides = (1, *[2] * (len(widths) - 1))
        self.stages = nn.Sequential(*(Block(*each) for each in zip(inputs, widths, strides, strict=True)))
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits."""
        return self.head(self.stages(self.stem(images)).mean((2, 3)))


def normalised(pixels: Tensor) -> Tensor:
    """uint8 pixels as the network takes them."""
    channels = pixels.shape[1]
    mean, std = (torch.tensor(values[:channels]).view(1, -1, 1, 1) for values in (MEAN, STD))
    return (pixels.float() / 255 - mean) / std


def train_plainly(
    net: nn.Module, pixels: Tensor, labels: Tensor, *, epochs: int, rate: float = 0.2, seed: int = 0
) -> nn.Module:
    """Stochastic gradient descent with momentum, one cycle of the learning rate, label smoothing."""
    rng, size = torch.Generator().manual_seed(seed), min(64, len(pixels))
    net = net.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    n_steps = len(pixels) // size
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=epochs * n_steps)
    for _ in range(epochs):
        order = torch.randperm(len(pixels), generator=rng)
        for rows in order[: n_steps * size].split(size):
            images = _augmented(normalised(pixels[rows]), rng).to(memory_format=torch.channels_last)
            optimiser.zero_grad()
            F.cross_entropy(net(images), labels[rows], label_smoothing=0.05).backward()
            optimiser.step()
            schedule.step()
    return net.eval()


def save_exported(net: nn.Module, path: Path, shape: tuple[int, int, int]) -> Path:
    """As `torch.export.save` writes it, for any number of pictures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(
            net, (torch.rand(2, *shape),), dynamic_shapes=({0: torch.export.Dim("batch")},)
        )
        torch.export.save(exported, path)
    return path


def _augmented(images: Tensor, rng: torch.Generator) -> Tensor:
    """Each batch shifted and half of the time mirrored."""
    down, right = torch.randint(0, 2 * MARGIN + 1, (2,), generator=rng).tolist()
    height, width = images.shape[-2:]
    moved = F.pad(images, [MARGIN] * 4)[..., down : down + height, right : right + width]
    return moved.flip(-1) if torch.rand((), generator=rng) < 0.5 else moved
