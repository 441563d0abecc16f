"""Batches of row numbers, as a pure function of the seed, the epoch and the step.

Nothing is drawn from a running generator, so a run that was killed continues with the very batches it would
have seen: the loader only has to be told how many steps are done.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int64
from torch import Tensor

from torchsite.errors import ConfigError
from torchsite.randomness import make_rng

Rows = Int64[Tensor, " batch"]


def epoch_order(n: int, seed: int, epoch: int) -> Rows:
    """The order in which an epoch visits the pictures."""
    return torch.randperm(n, generator=make_rng(seed, "order", epoch))


@dataclass(frozen=True)
class Share:
    """What one process works on at once: a part of the global batch, and of that every `ranks`-th row.

    A part is the same for any number of ranks, which matters to statistics of batches.
    """

    rank: int = 0
    ranks: int = 1
    part: int = 0
    parts: int = 1

    @property
    def of(self) -> int:
        """How many shares make a global batch; all are of one size."""
        return self.ranks * self.parts

    def rows(self, n: int) -> slice:
        """These rows of anything that has a row for each of the `n` pictures of a global batch."""
        start, stop = (n * part // self.parts for part in (self.part, self.part + 1))
        return slice(start + self.rank, stop, self.ranks)


class RowLoader:
    """Iterates over the rows of one epoch, from the step that training has reached.

    `steps_done` tells the optimiser steps so far; each of `ranks` processes sees its own part of every
    global batch, and works on it in `parts`.
    """

    def __init__(
        self,
        n: int,
        batch_size: int,
        seed: int,
        steps_done: Callable[[], int],
        rank: int = 0,
        ranks: int = 1,
        parts: int = 1,
    ) -> None:
        if batch_size % (ranks * parts):
            raise ConfigError(
                f"batch_size: expected a multiple of {ranks * parts} ({ranks} processes × {parts} parts that "
                f"are accumulated), got {batch_size}"
            )
        if n < batch_size:
            raise ConfigError(f"batch_size: expected at most the {n} training pictures, got {batch_size}")
        self.n, self.batch_size, self.seed = n, batch_size, seed
        self.steps_done, self.share = steps_done, Share(rank, ranks)

    def __len__(self) -> int:
        return self.n // self.batch_size

    def state_dict(self) -> dict[str, int]:
        """Nothing to remember; that it can say so tells Lightning that the loader resumes within an epoch."""
        return {}

    def load_state_dict(self, state_dict: dict[str, int]) -> None:
        """Nothing to restore: the place follows from the steps done."""

    def __iter__(self) -> Iterator[Rows]:
        epoch, first = divmod(self.steps_done(), len(self))
        order = epoch_order(self.n, self.seed, epoch)
        for step in range(first, len(self)):
            rows = order[step * self.batch_size : (step + 1) * self.batch_size]
            yield rows[self.share.rows(len(rows))]


class Parts:
    """The rows 0 to n - 1 in order, in parts of at most `size`; one process of several takes some of them."""

    def __init__(self, n: int, size: int, share: Share | None = None) -> None:
        parts = torch.arange(n).split(size) if n else ()
        self.parts = parts[(share or Share()).rows(len(parts))]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Rows]:
        return iter(self.parts)
