"""Readers: small networks that learn to read moved, blurred, dimmed and noised pictures, and then are frozen.

Prototypes are scored with frozen auxiliary classifiers, not with the network that draws them: it would draw
marks that only it understands. Readers are trained first, on the pictures of the data upright and posed, and
frozen. They differ in architecture, and what they see is disturbed at random, in their training and whenever
they are asked.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.data import Dataset, to_float
from torchsite.model.blocks import conv_block
from torchsite.objective.batch import Share
from torchsite.objective.term import Memory
from torchsite.randomness import Rng, make_rng
from torchsite.shapes import Images, Labels, Logits
from torchsite.transforms import Transform, TransformFamily

BATCH = 128
WHOLE = Share()
NUDGES = TransformFamily(max_rotation=12.0, max_shift=0.06, scale=(0.9, 1.1))


class Disturbance(NamedTuple):
    """How far pictures are moved, blurred, dimmed and noised before they are read, at most."""

    nudges: TransformFamily = NUDGES
    blur: float = 1.0
    dimming: float = 0.5
    noise: float = 0.15

    def __call__(
        self, images: Images, rng: Rng, share: Share = WHOLE, motion: Transform | None = None
    ) -> Images:
        """The pictures as a reader sees them, after a motion; each of a global batch in its own way."""
        n = len(images) * share.of
        nudges, strengths = self.nudges.sample(n, rng=rng), torch.rand(n, 3, 1, 1, generator=rng)
        grain = torch.randn(n, *images.shape[1:], generator=rng)[share.rows(n)].to(images)
        blur, dim, noise = strengths[share.rows(n)].to(images).split(1, dim=1)
        nudge: Transform = nudges[share.rows(n)].to(images.device)
        moved = (nudge if motion is None else nudge @ motion)(images)
        softened = moved + blur * (blurred(moved, self.blur).to(moved) - moved)
        return softened * (1 - self.dimming * dim) + self.noise * noise * grain


def blurred(images: Images, sigma: float) -> Images:
    """A Gaussian blur of `sigma` pixels, each channel by itself."""
    if sigma <= 0:
        return images
    reach = max(1, round(2 * sigma))
    at = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    bell = torch.exp(-0.5 * (at / sigma) ** 2)
    channels = images.shape[1]
    row = (bell / bell.sum()).repeat(channels, 1, 1, 1)
    wide = F.conv2d(images, row, padding=(0, reach), groups=channels)
    return F.conv2d(wide, row.mT, padding=(reach, 0), groups=channels)


def strided(channels: int, n_classes: int) -> nn.Sequential:
    """Strided convolutions and a mean over the picture."""
    return nn.Sequential(
        conv_block(channels, 32, stride=2, kernel=5),
        conv_block(32, 64, stride=2),
        conv_block(64, 96),
        conv_block(96, 128, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, n_classes),
    )


def pooled(channels: int, n_classes: int) -> nn.Sequential:
    """Convolutions, maxima, and dense layers that know places."""
    return nn.Sequential(
        conv_block(channels, 16, kernel=5),
        nn.MaxPool2d(2),
        conv_block(16, 32),
        nn.MaxPool2d(2),
        conv_block(32, 64),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * 16, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


def patched(channels: int, n_classes: int) -> nn.Sequential:
    """Patches of 4×4 pixels, mixed by wide convolutions of each channel and across channels (ConvMixer)."""
    width = 96
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 6, stride=4, padding=1)]
    for _ in range(3):
        layers += [nn.Conv2d(width, width, 5, padding=2, groups=width), nn.BatchNorm2d(width), nn.GELU()]
        layers += [nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.GELU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * width, n_classes))


def dilated(channels: int, n_classes: int) -> nn.Sequential:
    """Few channels at half the resolution, convolutions with holes, and means over nine places."""
    layers: list[nn.Module] = [nn.AvgPool2d(2), conv_block(channels, 32)]
    for holes in (2, 3, 1):
        conv = nn.Conv2d(32, 32, 3, padding=holes, dilation=holes, bias=False)
        layers += [conv, nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(32 * 9, n_classes))


def dense(channels: int, n_classes: int) -> nn.Sequential:
    """No convolution: two hidden layers on the picture at half its resolution."""
    layers: list[nn.Module] = [nn.AdaptiveAvgPool2d(14), nn.Flatten()]
    for inputs, outputs in ((196 * channels, 512), (512, 256)):
        layers += [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, n_classes))


def wide(channels: int, n_classes: int) -> nn.Sequential:
    """Two wide kernels and smooth activations, without norms."""
    return nn.Sequential(
        nn.Conv2d(channels, 40, 9, stride=2, padding=4),
        nn.SiLU(),
        nn.Conv2d(40, 64, 5, stride=2, padding=2),
        nn.SiLU(),
        nn.Conv2d(64, 64, 3, stride=2, padding=1),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * 16, n_classes),
    )


READERS: Mapping[str, Callable[[int, int], nn.Sequential]] = {
    "strided": strided,
    "pooled": pooled,
    "patched": patched,
    "dilated": dilated,
    "dense": dense,
    "wide": wide,
}


class Readers(Memory):
    """Several frozen readers, one of which is asked at a time."""

    def __init__(self, networks: list[nn.Sequential], disturbance: Disturbance) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks).requires_grad_(False)
        self.disturbance = disturbance

    def train(self, mode: bool = True) -> "Readers":
        """Readers never learn: they stay in evaluation mode."""
        del mode
        return super().train(False)

    def forward(self, pictures: Images, rng: Rng) -> Logits:
        """What one of the readers, drawn at random, takes the pictures for."""
        reader = self.networks[int(torch.randint(len(self.networks), (1,), generator=rng))]
        logits: Tensor = reader(pictures)
        return logits.to(pictures.dtype)


def train_reader(
    name: str,
    data: Dataset,
    family: TransformFamily,
    disturbance: Disturbance,
    *,
    epochs: float,
    seed: int,
) -> nn.Sequential:
    """One reader, from its first weights: a function of the data, the name and the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(make_rng(seed, "reader", name).initial_seed() % 2**32)
        network = READERS[name](data.images.shape[1], len(data.classes))
    return teach(network, data, family, disturbance, epochs=epochs, rng=make_rng(seed, "reading", name))


def teach(
    network: nn.Sequential,
    data: Dataset,
    family: TransformFamily,
    disturbance: Disturbance,
    *,
    epochs: float,
    rng: Rng,
    learning_rate: float = 3e-3,
) -> nn.Sequential:
    """Train a network, in place, to read pictures upright and posed; it is then ready to answer."""
    network.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    n_steps = max(1, int(epochs * len(data) / BATCH))
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, learning_rate, total_steps=n_steps + 1)
    with torch.enable_grad():
        for _ in range(n_steps):
            images, labels = lesson(data, family, disturbance, rng)
            F.cross_entropy(network(images), labels).backward()
            optimiser.step()
            optimiser.zero_grad()
            schedule.step()
    return network.eval()


def lesson(
    data: Dataset, family: TransformFamily, disturbance: Disturbance, rng: Rng
) -> tuple[Images, Labels]:
    """A batch to learn reading with: one half upright, one posed, all of them disturbed."""
    rows = torch.randint(len(data), (BATCH,), generator=rng)
    images, half = to_float(data.images[rows]), BATCH // 2
    posed = family.sample(half, rng=rng)(images[:half])
    return disturbance(torch.cat([posed, images[half:]]), rng), data.labels[rows]
