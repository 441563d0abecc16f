"""The processes of a run: one, or several that share every batch, on this machine or on many.

Lightning's Fabric finds the devices and starts the processes; under `torchrun` they are there already.
"""

import atexit
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.utilities.exceptions import MisconfigurationException

from torchsite.errors import ConfigError

LOGGERS = ("lightning.fabric", "lightning.pytorch")


def launch(**options: Any) -> Fabric:
    """The processes that train together; options: Fabric's accelerator, devices, num_nodes."""
    rejoin()
    with quiet():
        try:
            given = {name: value for name, value in options.items() if value not in ("auto", 1)}
            fabric = Fabric(**(options | launch_options() | given))
        except (ValueError, TypeError, RuntimeError, MisconfigurationException) as error:
            raise ConfigError(f"these devices cannot be trained on: {error}") from error
        fabric.launch()
    if dist.is_available() and dist.is_initialized():
        atexit.register(leave)
    return fabric


def leave() -> None:
    """Destroy the process group; a process that ends without may be aborted by its remaining threads."""
    if dist.is_initialized():
        dist.destroy_process_group()


def launch_options(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Fabric's options when `torchrun` has started the processes: how many, on how many nodes."""
    if "TORCHELASTIC_RUN_ID" not in environment or int(environment.get("WORLD_SIZE", "1")) == 1:
        return {}
    world, local = int(environment["WORLD_SIZE"]), int(environment["LOCAL_WORLD_SIZE"])
    return {"devices": local, "num_nodes": world // local, "strategy": "ddp"}


def rejoin(environment: Mapping[str, str] = os.environ) -> None:
    """After a restart by `torchrun`, form the group of processes under a name of its own.

    `torchrun` keeps one store of addresses for all attempts, and a new group would find those of processes
    that died. Fabric takes a group that is there.
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


@contextmanager
def quiet() -> Iterator[None]:
    """Only warnings of Lightning's loggers for a while: a library prints no greeting."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(max(logging.WARNING, logger.level))
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
