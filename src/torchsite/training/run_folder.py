"""The folder of a run: one run at a time, and `run.json` with all that the run depends on.

The lock is the operating system's, so it ends with the process that holds it, however that ends. A resumed
run reaches the weights it would have reached only if nothing that they depend on has changed: `run.json` is
written when a run begins and compared when it goes on.
"""

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from torchsite.configs import from_mapping, to_mapping
from torchsite.data import Dataset
from torchsite.distributed import is_first, notes_of_all_ranks
from torchsite.errors import ConfigError
from torchsite.files import write_atomically
from torchsite.model import ImageClassifier
from torchsite.model.config import with_new_names
from torchsite.training.config import TrainingConfig
from torchsite.training.precision import Precision
from torchsite.training.recipes import without_gone

RUN_FILE, LOCK, HOLDER = "run.json", ".lock", ".lock-holder"
FREE = ("checkpoint_seconds", "validate_every", "n_validation", "collapse_patience")
N_SAMPLED = 1000


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for the processes of one run; an error in all of them if another run holds it."""
    lock = FileLock(folder / LOCK)
    refused = notes_of_all_ranks(_take(lock, folder) if is_first() else "")[0]
    if refused:
        raise ConfigError(refused)
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, folder: Path) -> str:
    """Take the lock and note this process as its holder; the error message if another process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / HOLDER
    try:
        lock.acquire(blocking=False)
    except Timeout:
        other = holder.read_text(encoding="utf-8").strip() if holder.is_file() else "another process"
        return f"{folder} is in use by {other}: wait until it ends, or name another folder"
    write_atomically(holder, f"process {os.getpid()} on {platform.node()}\n")
    return ""


def describe_run(model: ImageClassifier, data: Dataset, config: TrainingConfig) -> dict[str, Any]:
    """Everything that the final weights depend on, as plain data."""
    described = {name: value for name, value in to_mapping(model.config).items() if name != "version"}
    if model.config.margin == 1:  # runs were begun before there were margins
        del described["margin"]
    pictures = {"name": data.name, "pictures": len(data), "fingerprint": fingerprint(data)}
    return {"training": _training(config), "model": described, "data": pictures}


def write_run(folder: Path, description: Mapping[str, Any]) -> None:
    """Note what the run in this folder depends on."""
    write_atomically(folder / RUN_FILE, json.dumps(description, indent=2, ensure_ascii=False) + "\n")


def check_run(folder: Path, description: Mapping[str, Any]) -> Precision:
    """The precision that the run in this folder was begun with; an error if it is another run."""
    path = folder / RUN_FILE
    try:
        begun = json.loads(path.read_text(encoding="utf-8"))
        precision = from_mapping(Precision, begun.pop("precision"))
        # A run begun before a field existed was begun with its default.
        config = from_mapping(TrainingConfig, without_gone(begun["training"]))
        then = dict(_flat({**begun, "training": _training(config), "model": with_new_names(begun["model"])}))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}, the settings of this run, cannot be read ({error}): delete {folder}, or name "
            "another folder"
        ) from error
    now = dict(_flat(json.loads(json.dumps(description))))
    differing = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    if differing:
        changes = "; ".join(f"{name} was {then.get(name)!r}, is {now.get(name)!r}" for name in differing)
        raise ConfigError(
            f"{folder} holds a run that was begun differently ({changes}): go on with what it was begun "
            f"with, or name another folder"
        )
    return precision


def fingerprint(data: Dataset) -> str:
    """A short checksum of the labels and of pictures spread over the data."""
    rows = torch.linspace(0, len(data) - 1, min(len(data), N_SAMPLED)).long()
    digest = hashlib.sha256(data.labels.numpy().tobytes())
    if data.multi_hot is not None:
        digest.update(data.multi_hot.numpy().tobytes())
    digest.update(data.images[rows].numpy().tobytes())
    if data.regions is not None:
        digest.update(data.regions[rows].numpy().tobytes())
    return digest.hexdigest()[:16]


def _training(config: TrainingConfig) -> dict[str, Any]:
    return {name: value for name, value in to_mapping(config).items() if name not in FREE}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested fields under dotted names."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
