"""The layers of B-cos networks, and a network of them; formulas and source stand in `b_cos.py`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchsite.model.extractor import FeatureExtractor
from torchsite.shapes import Features, Images, Maps, Size

EPSILON = 1e-6


class BCosConv2d(nn.Conv2d):
    """A convolution with unit kernels whose answer is weighed by how well kernel and patch are aligned.

    While `constant` is True, gradients see the weight of each answer as a number: they are W(x).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, b: float = 2.0) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        self.b, self.constant = b, False

    def forward(self, maps: Maps) -> Maps:
        """|cos|^(B-1) · ŵᵀx."""
        kernels = self.weight / self.weight.flatten(1).norm(dim=1).clamp_min(EPSILON)[:, None, None, None]
        linear = F.conv2d(maps, kernels, padding=self.padding)
        cosine = linear.abs() / self._patch_norms(maps).to(linear.dtype)
        factor = cosine if self.b == 2 else (cosine + EPSILON) ** (self.b - 1)
        return linear * (factor.detach() if self.constant else factor)

    def _patch_norms(self, maps: Maps) -> Maps:
        """‖x‖ of the patch that each answer looks at."""
        wide = torch.promote_types(maps.dtype, torch.float32)
        squares = maps.square().sum(1, keepdim=True, dtype=wide)
        size, padding = self.kernel_size[0], self.kernel_size[0] // 2
        sums = F.avg_pool2d(squares, size, 1, padding, divisor_override=1)
        return (sums + EPSILON).sqrt()


class UncentredNorm2d(nn.Module):
    """x / √mean(x²) of each channel: no mean is taken away, so at test time it is linear in x."""

    running_square: Tensor

    def __init__(self, channels: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_square", torch.ones(channels))

    def forward(self, maps: Maps) -> Maps:
        """Maps of size one, by the batch in training, else by all batches that were seen."""
        square = self.running_square
        if self.training:
            square = maps.square().mean((0, 2, 3), dtype=square.dtype)
            with torch.no_grad():
                self.running_square.lerp_(square, self.momentum)
        return maps * (square + EPSILON).rsqrt()[:, None, None].to(maps.dtype)


class BCosNetwork(FeatureExtractor):
    """B-cos layers of 3×3, two at each resolution, and means of 2×2 cells in between.

    With `depth` the last width is another than that of `widths`.
    """

    def __init__(
        self,
        channels: int,
        size: Size,
        depth: int | None = None,
        widths: Sequence[int] = (32, 64, 128),
        b: float = 2.0,
    ) -> None:
        super().__init__()
        del size  # any will do
        self.mean, self.std = (0.0,) * channels, (1.0,) * channels
        widths = (*widths[:-1], widths[-1] if depth is None else depth)
        self.layers = nn.Sequential(*_layer(2 * channels, widths[0], b), *_layer(widths[0], widths[0], b))
        for before, after in pairwise(widths):
            self.layers.extend(
                [nn.AvgPool2d(2, ceil_mode=True), *_layer(before, after, b), *_layer(after, after, b)]
            )

    def forward(self, images: Images) -> Features:
        """Features of pictures."""
        return self.of_coded(coded(images))

    def of_coded(self, pictures: Images) -> Features:
        """Features of pictures that are coded already: linear in them, as the layers see it."""
        return self.layers(pictures)


def coded(images: Images) -> Images:
    """[x, 1 - x]: every pixel has the same sum over channels, whatever its colour."""
    return torch.cat([images, 1 - images], dim=1)


@contextmanager
def dynamic_linear(model: nn.Module) -> Iterator[None]:
    """Gradients of a B-cos network are its W(x) for a while: the factors of all layers are numbers."""
    layers = [module for module in model.modules() if isinstance(module, BCosConv2d)]
    for layer in layers:
        layer.constant = True
    try:
        yield
    finally:
        for layer in layers:
            layer.constant = False


def _layer(inputs: int, outputs: int, b: float) -> list[nn.Module]:
    return [BCosConv2d(inputs, outputs, b=b), UncentredNorm2d(outputs)]
