"""Batches of pictures, as a pure function of the seed and the step.

No random state is carried from step to step, so a run that was killed goes on with the batches it would have
seen: all that is needed is the number of steps that are done.
"""

import functools
from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from torchsite.data import Dataset, to_float
from torchsite.data.margins import centre
from torchsite.errors import ConfigError
from torchsite.objective import Batch, Draws, Share, View
from torchsite.objective.batch import Rows, show_batch
from torchsite.objective.ignored import donor_rows, without_regions
from torchsite.randomness import make_rng
from torchsite.shapes import Images, Pixels
from torchsite.training.config import TrainingConfig


def make_batch(
    data: Dataset,
    config: TrainingConfig,
    views: Sequence[View],
    step: int,
    like: Tensor,
    share: Share,
    clock: float = 0.0,
) -> Batch:
    """This process's pictures of a step and their views, on the device and in the dtype of `like`.

    `clock` is the share of the training's time that is used.
    """
    rows = step_rows(len(data), config.batch_size, config.seed, step)[share.rows(config.batch_size)]
    kept = _floats(data.kept, rows, like)
    draws = Draws(config.seed, step, config.batch_size, config.n_steps(len(data)), clock)
    if data.regions is not None:  # from here on they move with the pictures, as a channel more
        donors = donor_rows(data, draws, share)
        own, theirs = (data.regions[some].to(like.device) for some in (rows, donors))
        kept, hidden = without_regions(kept, own, _floats(data.kept, donors, like), theirs, draws, share)
        kept = torch.cat([kept, hidden[:, None].to(kept)], dim=1)
    kept = _flipped(kept, draws, share) if config.flip else kept
    kept = _jittered(kept, config.jitter, draws, share) if config.jitter else kept
    kept, regions = (kept, None) if data.regions is None else (kept[:, :-1], kept[:, -1] > 0.5)
    images, larger = (kept, None) if data.larger is None else (centre(kept, data.size), kept)
    labels = data.labels[rows].to(like.device)
    return show_batch(rows, images, labels, views, draws, config.family, share, larger, regions)


def look_up(data: Dataset, rows: Rows, like: Tensor) -> tuple[Images, Tensor]:
    """Pictures and labels by their numbers, on the device and in the dtype of `like`."""
    return _floats(data.images, rows, like), data.labels[rows].to(like.device)


def _floats(pixels: Pixels, rows: Rows, like: Tensor) -> Images:
    return to_float(pixels[rows].to(like.device)).to(like.dtype)


def step_rows(n: int, batch_size: int, seed: int, step: int) -> Rows:
    """The numbers of the pictures in the global batch of a step."""
    epoch, number = divmod(step, n // batch_size)
    return epoch_order(n, seed, epoch)[number * batch_size : (number + 1) * batch_size]


@functools.lru_cache(maxsize=1)
def epoch_order(n: int, seed: int, epoch: int) -> Rows:
    """The order in which an epoch visits the pictures."""
    return torch.randperm(n, generator=make_rng(seed, "order", epoch))


def check_batches(n: int, batch_size: int, ranks: int = 1, parts: int = 1) -> None:
    """Every process must get equally many pictures of every part of a batch."""
    if batch_size % (ranks * parts):
        raise ConfigError(
            f"batch_size: expected a multiple of {ranks * parts} ({ranks} processes × {parts} parts that "
            f"are accumulated), got {batch_size}"
        )
    if n < batch_size:
        raise ConfigError(f"batch_size: expected at most the {n} training pictures, got {batch_size}")


def parts_in_order(n: int, size: int, share: Share | None = None) -> Iterator[Rows]:
    """The rows 0 to n - 1 in order, in parts of at most `size`; one process of several takes some of them."""
    parts = torch.arange(n).split(size) if n else ()
    yield from parts[(share or Share()).rows(len(parts))]


def _flipped(images: Images, draws: Draws, share: Share) -> Images:
    """A random half of the pictures mirrored."""
    mirror = (torch.rand(draws.n, generator=draws.rng("flip")) < 0.5)[share.rows(draws.n)].to(images.device)
    return torch.where(mirror[:, None, None, None], images.flip(-1), images)


def _jittered(images: Images, most: int, draws: Draws, share: Share) -> Images:
    """Each picture moved by up to `most` pixels along both axes, mirrored where an edge came in."""
    moves = torch.randint(2 * most + 1, (2, draws.n, 1), generator=draws.rng("jitter"))
    mine = moves[:, share.rows(draws.n)].to(images.device)
    down, across = (
        start + torch.arange(n, device=images.device)
        for start, n in zip(mine, images.shape[-2:], strict=True)
    )
    padded = F.pad(images, (most,) * 4, mode="reflect")
    pictures = torch.arange(len(images), device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[pictures, down[:, :, None], across[:, None, :]].permute(0, 3, 1, 2)
