"""What the processes (ranks) of a distributed run tell each other; a process alone hears only itself."""

import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.utilities import rank_zero_only
from torch import Tensor


def n_ranks() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this process is the one that writes, as the launcher numbered them; true when alone."""
    return int(getattr(rank_zero_only, "rank", None) or 0) == 0


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


def highest_of_ranks(value: int) -> int:
    """The largest of a small number that each rank has."""
    if n_ranks() == 1:
        return value
    highest = torch.tensor([value])
    if dist.get_backend() == "nccl":
        highest = highest.cuda()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    return int(highest)


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


def launch_options(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What Lightning must be told when `torchrun` has started the processes: how many, on how many nodes."""
    if "TORCHELASTIC_RUN_ID" not in environment or int(environment.get("WORLD_SIZE", "1")) == 1:
        return {}
    world, local = int(environment["WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
    return {"devices": local, "num_nodes": world // local, "strategy": "ddp"}


def rejoin(environment: Mapping[str, str] = os.environ) -> None:
    """After a restart by `torchrun`, form the group of processes under a name of its own.

    `torchrun` keeps one store of addresses for all attempts, and a new group would find those of processes
    that died. Lightning takes a group that is there.
    """
    attempt = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    if attempt == "0" or environment.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or dist.is_initialized():
        return
    world, rank = int(environment["WORLD_SIZE"]), int(environment["RANK"])
    if torch.cuda.is_available():
        torch.cuda.set_device(int(environment["LOCAL_RANK"]))
    address, port = environment["MASTER_ADDR"], int(environment["MASTER_PORT"])
    shared = dist.TCPStore(address, port, world, is_master=False)  # type: ignore[attr-defined]
    store = dist.PrefixStore(f"attempt-{attempt}", shared)  # type: ignore[attr-defined]
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, store=store, rank=rank, world_size=world)
