"""Randomised input sampling: the mean mask, weighted by the score of the picture behind it.

    heatmap = 1/(N·p) · Σ_i score_y(x ⊙ M_i) · M_i

A mask is a grid of `cells` × `cells` coins that show 1 with probability p, enlarged bilinearly to cover the
picture with one cell to spare and cropped at a random offset of less than a cell. The score is the softmax
probability, as in the paper, or the logit (`score="logit"`).

**Balanced masks.** The formula estimates E[score(x ⊙ M)·M]/p, and most of its noise has nothing to do with
the picture: by chance some pixels are visible more often than others, or together with others. For p = 1/2
the masks are therefore drawn in blocks: the rows of a Hadamard matrix with a random sign for each column,
each followed by its complement. Every mask alone is distributed exactly as in the paper, so the estimate has
the same mean; within a block every cell is visible half of the time and any two cells are uncorrelated,
so neither the mean score nor the effect of one cell leaks into another (nor, by the complements, the joint
effect of two). Offsets follow a low-discrepancy sequence over the blocks. Far fewer masks reach the same
error. `balanced=False` draws independent coins, as does any other p.

All pictures of a batch share the same N masks, which are drawn once, from the seed: each heatmap is exactly
the one-picture estimate of the formula, whatever the other pictures are.

Petsiuk, Das, Saenko: RISE: randomized input sampling for explanation of black-box models, BMVC 2018.
"""

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchsite.attribution.checks import at_least, fraction
from torchsite.attribution.contract import Attribution, Seed
from torchsite.errors import ConfigError
from torchsite.randomness import Rng
from torchsite.shapes import Heatmaps, Images, Labels, Size


class RISE(Attribution):
    """What was visible when the model was sure; treats the model as a black box."""

    passes = 128
    budget: ClassVar = {"n_masks": 128}

    def __init__(
        self,
        model: nn.Module,
        *,
        n_masks: int = 1024,
        cells: int = 7,
        keep: float = 0.5,
        score: Literal["probability", "logit"] = "probability",
        balanced: bool = True,
        internal_batch_size: int = 32,
        seed: int | None = None,
        rng: Rng | None = None,
    ) -> None:
        super().__init__(model, internal_batch_size=internal_batch_size)
        at_least(1, n_masks=n_masks, cells=cells)
        fraction(keep=keep)
        if score not in ("probability", "logit"):
            raise ConfigError(f"score: expected 'probability' or 'logit', got {score!r}")
        self.n_masks = n_masks
        self.cells = cells
        self.keep = keep
        self.score = score
        self.balanced = balanced and keep == 0.5
        self._seed = Seed(seed, rng, "rise")

    @torch.no_grad()
    def _explain(self, images: Images, classes: Labels) -> Heatmaps:
        rng = self._seed.rng()
        if self.balanced:
            coins, offsets = balanced_coins(self.n_masks, self.cells + 1, rng)
        else:
            coins, offsets = independent_coins(self.n_masks, self.cells + 1, self.keep, rng)
        coins, offsets = coins.to(images), offsets.to(images.device)
        return self._in_batches(lambda *part: self._mean_mask(coins, offsets, *part), images, classes)

    def _mean_mask(self, coins: Tensor, offsets: Tensor, images: Images, classes: Labels) -> Heatmaps:
        size = (images.shape[-2], images.shape[-1])
        total = images.new_zeros(len(images), size[0] * size[1])
        per_pass = max(1, self.internal_batch_size // len(images))
        for coin, offset in zip(coins.split(per_pass), offsets.split(per_pass), strict=True):
            masks = cropped(coin, offset, size)
            total += self._scores(images, classes, masks) @ masks.flatten(1)
        heatmaps: Heatmaps = total.view(-1, *size) / (self.n_masks * self.keep)
        return heatmaps

    def _scores(self, images: Images, classes: Labels, masks: Tensor) -> Tensor:
        """The score of every picture behind every mask, (batch, masks)."""
        hidden = (images[:, None] * masks[:, None]).flatten(0, 1)
        answers = self._logits(classes)(hidden)
        answers = answers.softmax(1) if self.score == "probability" else answers
        asked = classes.repeat_interleave(len(masks))
        scores: Tensor = answers.gather(1, asked[:, None])
        return scores.view(len(images), len(masks))


def independent_coins(n: int, side: int, keep: float, rng: Rng) -> tuple[Tensor, Tensor]:
    """Grids of 0 and 1, and an offset for each, all independent."""
    return torch.rand(n, side, side, generator=rng) < keep, torch.rand(n, 2, generator=rng)


def balanced_coins(n: int, side: int, rng: Rng) -> tuple[Tensor, Tensor]:
    """Grids in blocks of ± the rows of a Hadamard matrix with random column signs; one offset per block."""
    rows = hadamard(side**2)[:, : side**2]
    block = 2 * len(rows)
    n_blocks = -(-n // block)
    signs = 2 * torch.randint(2, (n_blocks, 1, 1, side**2), generator=rng) - 1
    pairs = torch.stack([rows, -rows], 1)
    coins = (signs * pairs > 0).view(-1, side, side)
    golden = torch.tensor([0.7548776662466927, 0.5698402909980532], dtype=torch.float64)
    start = torch.rand(2, generator=rng, dtype=torch.float64)
    offsets = (start + torch.arange(n_blocks)[:, None] * golden) % 1
    return coins[:n], offsets.repeat_interleave(block, 0)[:n]


def hadamard(at_least_order: int) -> Tensor:
    """Sylvester's matrix of ±1 with orthogonal rows and columns, of the next power of two."""
    matrix = torch.ones(1, 1, dtype=torch.int64)
    while len(matrix) < at_least_order:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def cropped(coins: Tensor, offsets: Tensor, size: Size) -> Tensor:
    """Grids of coins as masks of the picture's size: enlarged bilinearly, cropped at whole-pixel offsets.

    A cell is ⌈side / cells⌉ pixels; the enlarged grid has one cell more than the picture needs, and an offset
    in [0, 1) says how much of it is cropped away.
    """
    n_cells = coins.shape[-1] - 1
    cell = [-(-side // n_cells) for side in size]
    enlarged = [pixels * (n_cells + 1) for pixels in cell]
    large = F.interpolate(coins[:, None], size=enlarged, mode="bilinear", align_corners=False)[:, 0]
    top, left = ((offsets[:, axis] * cell[axis]).long() for axis in (0, 1))
    rows = top[:, None] + torch.arange(size[0], device=coins.device)
    cols = left[:, None] + torch.arange(size[1], device=coins.device)
    index = torch.arange(len(coins), device=coins.device)[:, None, None]
    return large[index, rows[:, :, None], cols[:, None, :]]
