"""A random map without information: the baseline of every measure.

    heatmap = smooth(r(x, y)),   r uniform in [0, 1) on a coarse grid, or in [-1, 1) when signed

The numbers are a hash of the picture, the class and the seed, so the map is a fixed random *function* of the
picture: the same at every call, in a batch or alone; and a picture that moved by one pixel gets an
unrelated map, so no measure of consistency is flattered by a map that merely stays put.
"""

import torch
from torch import Tensor, nn

from torchsite.attribution.checks import at_least
from torchsite.attribution.contract import Attribution, Seed
from torchsite.attribution.layers import resized
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Images, Labels


class RandomMap(Attribution):
    """Smooth noise, a function of picture, class and seed but of nothing in them."""

    def __init__(
        self,
        model: nn.Module,
        *,
        grid: int = 7,
        signed: bool = False,
        internal_batch_size: int = 32,
        seed: int | None = None,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        at_least(1, grid=grid)
        self.grid = grid
        self.signed = signed
        self._seed = Seed(seed, rng, "random")

    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        with torch.no_grad():
            self._logits(classes)(images[:1])
        keys = torch.randint(2**62, (2,), generator=self._seed.rng()).to(images.device)
        marks = _fingerprint(images, keys[0]) ^ _scrambled(classes + keys[1])
        cells = torch.arange(self.grid**2, device=images.device)
        noise = _uniform(_scrambled(marks[:, None] + _scrambled(cells))).to(images.dtype)
        noise = 2 * noise - 1 if self.signed else noise
        size = (images.shape[-2], images.shape[-1])
        return resized(noise.unflatten(1, (self.grid, self.grid)), size)


def _scrambled(words: Tensor) -> Tensor:
    """The finaliser of SplitMix64 on int64 words, which wrap around; shifts are made logical by masks."""
    words = (words ^ ((words >> 30) & (2**34 - 1))) * -4658895280553007687
    words = (words ^ ((words >> 27) & (2**37 - 1))) * -7723592293110705685
    return words ^ ((words >> 31) & (2**33 - 1))


def _fingerprint(images: Images, key: Tensor) -> Tensor:
    """One 64-bit word per picture: every value's bits, scrambled with its position, summed."""
    bits = images.double().flatten(1).view(torch.int64)
    positions = torch.arange(bits.shape[1], device=bits.device)
    return _scrambled(bits + _scrambled(positions + key)).sum(1)


def _uniform(words: Tensor) -> Tensor:
    """The upper 53 bits of each word as a number in [0, 1)."""
    return ((words >> 11) & (2**53 - 1)).double() * 2.0**-53
