"""Collective operations between the processes (ranks) of a run; a single process gets its own values back."""

import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

RANK_NAMES = ("RANK", "LOCAL_RANK", "SLURM_PROCID")


def n_ranks() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is the one that writes, as the launcher numbered them; true when alone."""
    if n_ranks() > 1:
        return dist.get_rank() == 0
    numbers = (int(environment[name]) for name in RANK_NAMES if name in environment)
    return next(numbers, 0) == 0


def sum_over_ranks(values: Tensor) -> Tensor:
    """The sums of all ranks, on each of them; no gradient passes."""
    if n_ranks() == 1:
        return values
    total = values.detach().clone()
    dist.all_reduce(total)
    return total


def mean_over_ranks(values: Tensor) -> Tensor:
    """The means of all ranks, on each of them; no gradient passes."""
    return sum_over_ranks(values) / n_ranks()


def mean_with_gradients(values: Tensor) -> Tensor:
    """The means of all ranks; gradients pass to the values of each.

    A loss of such means is the same on every rank, and the gradients that each rank finds for its own values
    are those of that loss times the number of ranks: averaged over ranks they are those of the global batch.
    """
    if n_ranks() == 1:
        return values
    total: Tensor = _SumOverRanks.apply(values)  # type: ignore[no-untyped-call]
    return total / n_ranks()


class _SumOverRanks(torch.autograd.Function):
    """The sum over all ranks; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        total = gradient.clone()
        dist.all_reduce(total)
        return total


def highest_of_ranks(value: float) -> float:
    """The largest of the numbers that the ranks have."""
    if n_ranks() == 1:
        return value
    highest = torch.tensor([value], dtype=torch.float64)
    if dist.get_backend() == "nccl":
        highest = highest.cuda()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return float(highest)


def rows_of_all_ranks(rows: Tensor) -> Tensor:
    """The rows of all ranks, those of the first rank first; every rank brings equally many."""
    if n_ranks() == 1:
        return rows
    gathered = [torch.empty_like(rows) for _ in range(n_ranks())]
    dist.all_gather(gathered, rows.contiguous())
    return torch.cat(gathered)


def notes_of_all_ranks(note: Any) -> list[Any]:
    """A small plain value from each rank."""
    if n_ranks() == 1:
        return [note]
    notes: list[Any] = [None] * n_ranks()
    dist.all_gather_object(notes, note)
    return notes
