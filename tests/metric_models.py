"""Small models and pictures on which the right answer is known."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from torchsite.randomness import make_rng


def noise(n: int, *, channels: int = 1, side: int = 12, n_classes: int = 4, seed: int = 0):
    """Uniform noise with random labels."""
    rng = make_rng(seed, "noise")
    images = torch.rand(n, channels, side, side, generator=rng)
    return images, torch.randint(n_classes, (n,), generator=rng)


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    """The model with weights from a seed, leaving the global random state alone."""
    rng = make_rng(seed, "weights")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) / max(1, parameter[0].numel()) ** 0.5)
    return model


def convnet(n_classes: int = 4, channels: int = 1, seed: int = 0) -> nn.Module:
    """Two convolutions, batch norm and a linear head."""
    layers = nn.Sequential(
        nn.Conv2d(channels, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, n_classes),
    )
    return seeded(layers, seed)


def gradient(model: nn.Module, images: Tensor, classes: Tensor) -> Tensor:
    """A plain function as explainer: the absolute gradient."""
    images = images.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(model(images).gather(1, classes[:, None]).sum(), images)
    return slope.abs().amax(1)


class Spot(nn.Module):
    """Planted evidence: class 1 iff the mean over one known square exceeds a half; all else is noise."""

    def __init__(self, rows: slice = slice(4, 8), cols: slice = slice(4, 8)) -> None:
        super().__init__()
        self.rows, self.cols = rows, cols

    def forward(self, images: Tensor) -> Tensor:
        evidence = 20 * (images[:, :, self.rows, self.cols].mean((1, 2, 3)) - 0.5)
        return torch.stack([-evidence, evidence], dim=1)


def spot_pictures(n: int, *, side: int = 12, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noise of which half the pictures show a bright spot: class 1."""
    rng = make_rng(seed, "spots")
    images = 0.2 * torch.rand(n, 1, side, side, generator=rng)
    labels = torch.arange(n) % 2
    images[labels == 1, :, 4:8, 4:8] = 1.0
    return images, labels


@dataclass
class Reasons:
    """What a self-explaining model returns."""

    prototypes: Tensor
    images: Tensor

    @property
    def features(self) -> Tensor:
        return self.images

    @property
    def logits(self) -> Tensor:
        return (self.prototypes * self.images[:, None]).sum((2, 3, 4))

    def heatmaps(self, size=None, classes=None) -> Tensor:
        maps = (self.prototypes * self.images[:, None]).sum(2)
        return maps if classes is None else maps[torch.arange(len(maps)), classes]


class Templates(nn.Module):
    """A self-explaining model with F1 = identity: fixed prototypes, heatmap w ⊙ x, logit their sum."""

    def __init__(self, templates: Tensor) -> None:
        super().__init__()
        self.templates = nn.Parameter(templates)

    def explain(self, images: Tensor) -> Reasons:
        return Reasons(self.templates.expand(len(images), *self.templates.shape), images)

    def forward(self, images: Tensor) -> Tensor:
        return self.explain(images).logits


class Tones(nn.Module):
    """Which of some tones the picture has, whatever its size."""

    def __init__(self, n_tones: int = 4) -> None:
        super().__init__()
        self.tones = nn.Parameter((1 + torch.arange(n_tones)) / (n_tones + 1), requires_grad=False)

    def forward(self, images: Tensor) -> Tensor:
        return -400 * (images.mean((1, 2, 3))[:, None] - self.tones).square()


def tone_pictures(n: int, *, side: int = 10, n_tones: int = 4, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Noise around one of the tones: the class."""
    labels = torch.arange(n) % n_tones
    noise = torch.rand(n, 1, side, side, generator=make_rng(seed, "tones")) - 0.5
    noise = noise - noise.mean((1, 2, 3), keepdim=True)
    return (1 + labels[:, None, None, None]) / (n_tones + 1) + 0.1 * noise, labels


class First(nn.Module):
    """Names everything by the first class."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.eye(3)[0].expand(len(images), 3)
