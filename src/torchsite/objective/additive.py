"""Additive evidence: what the map says of a part of the picture is what the model says of that part.

    L_add = mean_i SmoothL1( Σ_u M(u) e_i(u; x),  Σ_u e_i(u; x_M) )
    L_place = mean_i 1 - cos( M ⊙ e_i(x),  e_i(x_M) )

e_i(u; x) is the evidence of class i at cell u, relative to all classes; M is a mask of blocks, 1 where the
picture is shown; x_M is the picture with what is not shown replaced by a neutral filling. Completeness makes
the second sum the logit of what is left, so the term compares a part of the map with an answer of the model.
It is zero for every mask if and only if the model is additive over cells and its map holds the summands: the
evidence of a cell is then its Shapley value for the model itself (FastSHAP's regression, Jethani et al. 2022,
without a second network). Both sides learn.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from torchsite.configs import check_bounds
from torchsite.errors import ConfigError
from torchsite.objective.batch import Batch, Draws
from torchsite.objective.term import Found, MapKind, Memory, Step, Term, own_and_all, shares_shown
from torchsite.objective.views import UPRIGHT, View, check_fills
from torchsite.randomness import Rng
from torchsite.shapes import Images, Masks, Size
from torchsite.transforms import Transform

Evidence = Float[Tensor, "batch classes rows cols"]
Shown = Float[Tensor, "batch rows cols"]
ClassLosses = Float[Tensor, "batch classes"]
NEUTRAL = ("mean", "black", "blur")
Sizes = Literal["uniform", "shapley"]


@dataclass(frozen=True)
class MaskedView(View):
    """A view of which random blocks are hidden, under one of several fillings."""

    blocks: tuple[int, ...] = (4, 8, 16)
    kept: tuple[float, float] = (0.1, 0.9)
    sizes: Sizes = "uniform"
    hidden_fill: tuple[str, ...] = NEUTRAL

    def visible(self, draws: Draws, size: Size) -> Masks:
        """What is left, drawn for all pictures of the global batch."""
        rng = draws.rng(f"{self.name} blocks")
        return block_masks(draws.n, size, self.blocks, self.kept, rng, self.sizes)

    def show(self, batch: Batch, pose: Transform, visible: Masks | None) -> Images:
        """The picture in its pose, then what is hidden under a filling of the picture itself."""
        posed = super().show(batch, pose, None)
        assert visible is not None
        fill, rng = self.filling(self.hidden_fill, batch, len(posed), "hidden way")
        return fill.replace(posed, visible, rng=rng)

    def for_black_box(self) -> View:
        """The same, and judged: hidden blocks are an augmentation, at the same cost."""
        return replace(self, judged=True)


@dataclass(frozen=True, kw_only=True)
class AdditiveEvidence(Term, name="additive_evidence"):
    """The evidence of what is shown is the evidence that the model finds when only that is shown.

    A part of the pictures (`portion`) gets a further view, upright and masked. `maps` are relative to all
    classes, or plain where several classes may be true at once. `place` is the weight of where the evidence
    stands, beside how much there is of it; places are compared between sums over `pool` × `pool` cells, since
    single cells can agree by what is bright or dark there. `blocks` are numbers of blocks along the shorter
    side, one of them drawn for each picture. How many of them are kept is uniform in `kept`, or, with
    `sizes: shapley`, has the weights of Shapley's kernel. Differences above `beta` count by their size,
    smaller ones by their square: a single patch is worth a few tenths of a logit.
    """

    maps: MapKind = "relative"
    place: float = 1.0
    pool: int = 4
    portion: float = 0.5
    blocks: tuple[int, ...] = (4, 8, 16)
    kept: tuple[float, float] = (0.1, 0.9)
    sizes: Sizes = "uniform"
    beta: float = 1.0
    fill: tuple[str, ...] = NEUTRAL

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.kept
        if not 0 <= low <= high <= 1:
            raise ConfigError(f"additive_evidence.kept: expected 0 ≤ low ≤ high ≤ 1, got {self.kept}")
        check_bounds(self, "(0, 1]", "portion")
        check_bounds(self, "[0, ∞)", "place")
        check_bounds(self, "(0, ∞)", "beta")
        check_bounds(self, "[1, ∞)", "pool")
        check_bounds(self, "[2, ∞)", "blocks")
        check_fills("additive_evidence.fill", self.fill, (*NEUTRAL, "noise"))

    def views(self) -> tuple[View, ...]:
        """The whole picture, and the one with parts hidden."""
        masked = MaskedView(
            "masked",
            judged=False,
            blocks=self.blocks,
            kept=self.kept,
            sizes=self.sizes,
            hidden_fill=self.fill,
            portion=self.portion,
        )
        return UPRIGHT, masked

    def loss(self, step: Step, memory: Memory | None) -> Found:
        """How much, and where, both for all classes and for the picture's own."""
        del memory
        part = step.view("masked")
        heard = part.evidence(self.maps)
        whole, labels = step.view("upright").evidence(self.maps)[: len(heard)], step.batch.labels
        assert part.visible is not None
        shown = shares_shown(part.visible, heard)
        said = whole * shown[:, None]
        amount = own_and_all(additive_losses(said, heard, self.beta), labels[: len(heard)])
        if not self.place:
            return Found(amount)
        place = own_and_all(place_losses(said, heard, self.pool), labels[: len(heard)])
        return Found(amount + self.place * place, {"evidence in place": place})


def additive_losses(said: Evidence, heard: Evidence, beta: float = 1.0) -> ClassLosses:
    """SmoothL1 between what the map says of a part, Σ M ⊙ e(x), and what the model says of it, Σ e(x_M)."""
    return F.smooth_l1_loss(said.sum((-2, -1)), heard.sum((-2, -1)), reduction="none", beta=beta)


def place_losses(said: Evidence, heard: Evidence, pool: int = 1) -> ClassLosses:
    """1 - cosine of the two maps, summed over `pool` × `pool` cells: what is left stays where it was."""
    if pool > 1:
        said, heard = (F.avg_pool2d(maps, pool, ceil_mode=True, divisor_override=1) for maps in (said, heard))
    return 1 - F.cosine_similarity(said.flatten(-2), heard.flatten(-2), dim=-1, eps=1e-6)


def block_masks(
    n: int,
    size: Size,
    blocks: tuple[int, ...],
    kept: tuple[float, float],
    rng: Rng,
    sizes: Sizes = "uniform",
) -> Masks:
    """True where each picture is shown: square blocks, some of them kept.

    With `sizes: uniform` each block is kept with a chance that is one for a picture, uniform in `kept`, so
    that small and large parts are equally frequent. With `shapley` the number of blocks that are kept has the
    weights of Shapley's kernel, 1/(k(n - k)) for k of n blocks: a single block hidden, or shown alone, says
    most about the value of that block. The grid of blocks begins at a random even pixel, so that borders lie
    everywhere.
    """
    counts = torch.tensor(blocks)[torch.randint(len(blocks), (n,), generator=rng)]
    side = (min(size) // counts).clamp_min(1)
    starts = (torch.rand(2, n, generator=rng) * (side / 2).ceil()).long() * 2
    rows, cols = (
        (torch.arange(length) + start[:, None]) // side[:, None]
        for length, start in zip(size, starts, strict=True)
    )
    most = max(int(rows.max()), int(cols.max())) + 1 if n else 1
    draws = torch.rand(n, most, most, generator=rng)
    if sizes == "uniform":
        low, high = kept
        keeping = draws < (low + (high - low) * torch.rand(n, generator=rng))[:, None, None]
    else:
        down, across = (torch.arange(most) <= ends[:, -1:] for ends in (rows, cols))
        there = down[:, :, None] & across[:, None]
        ranks = draws.masked_fill(~there, 2).flatten(1).argsort(1).argsort(1)
        keeping = (ranks < shapley_sizes(there.flatten(1).sum(1), rng)[:, None]).unflatten(1, (most, most))
    return keeping[torch.arange(n)[:, None, None], rows[:, :, None], cols[:, None, :]]


def shapley_sizes(counts: Tensor, rng: Rng) -> Tensor:
    """For each number n of parts a number k of them, 0 < k < n, with weights 1/(k(n - k))."""
    n, most = counts[:, None].double(), int(counts.max()) if len(counts) else 2
    k = torch.arange(1, most, dtype=torch.float64)
    weights = torch.where(k < n, 1 / (k * (n - k).clamp_min(1)), 0.0)
    return 1 + torch.multinomial(weights, 1, generator=rng)[:, 0] if len(counts) else counts
