"""Judges: two networks that name prototypes and took no part in training the model that drew them.

They are of other architectures than the readers of the objective, start from another seed, and learn from
pictures as they are, upright and posed. Trained once for each data set, and kept in the folder of the run.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch import nn

from experiments.readers import Disturbance, teach
from torchsite.data import Dataset
from torchsite.files import write_atomically
from torchsite.model.blocks import conv_block
from torchsite.randomness import make_rng
from torchsite.shapes import Maps
from torchsite.transforms import TransformFamily

SEED = 77
CLEAR = Disturbance(TransformFamily.none(), 0.0, 0.0, 0.0)


class Block(nn.Module):
    """Two 3×3 convolutions and a skip (He et al. 2016)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.body = nn.Sequential(conv_block(inputs, outputs, stride), second, nn.BatchNorm2d(outputs))
        self.skip: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            skip = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.skip = nn.Sequential(skip, nn.BatchNorm2d(outputs))

    def forward(self, maps: Maps) -> Maps:
        """relu(f(x) + skip(x))."""
        return (self.body(maps) + self.skip(maps)).relu()


def residual(channels: int, n_classes: int) -> nn.Sequential:
    """A small residual network."""
    return nn.Sequential(
        conv_block(channels, 32, stride=2),
        Block(32, 64, 2),
        Block(64, 64, 1),
        Block(64, 128, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, n_classes),
    )


def plain(channels: int, n_classes: int) -> nn.Sequential:
    """Three convolutions with maxima between them, and two dense layers, as LeNet has them."""
    return nn.Sequential(
        conv_block(channels, 24, kernel=3),
        nn.MaxPool2d(2),
        conv_block(24, 48, kernel=3),
        nn.MaxPool2d(2),
        conv_block(48, 96, kernel=5),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(96 * 9, 192),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(192, n_classes),
    )


JUDGES: Mapping[str, Callable[[int, int], nn.Sequential]] = {"residual": residual, "plain": plain}


def make_judge(name: str, data: Dataset, family: TransformFamily, path: Path, epochs: float) -> nn.Sequential:
    """The judge of this name for these pictures, from its file or trained."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(make_rng(SEED, "judge", name).initial_seed() % 2**32)
        network = JUDGES[name](data.images.shape[1], len(data.classes))
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if not path.exists():
            rng = make_rng(SEED, "judging", name)
            teach(network, data, family, CLEAR, epochs=epochs, rng=rng)
            weights = {key: value.contiguous() for key, value in network.state_dict().items()}
            write_atomically(path, save(weights))
    network.load_state_dict(load_file(path))
    return network.eval().requires_grad_(False)
