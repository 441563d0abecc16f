"""`run.json`: what a run depends on, written when it starts and compared when it goes on.

A resumed run reaches the weights it would have reached only if nothing that they depend on has changed.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from torchsite.configs import from_mapping, to_mapping
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.files import write_atomically
from torchsite.model import ImageClassifier
from torchsite.training.config import TrainingConfig
from torchsite.training.precision import Precision
from torchsite.training.recipes import without_gone

RUN_FILE = "run.json"
FREE = ("checkpoint_seconds", "validate_every", "n_validation", "collapse_patience")
N_SAMPLED = 1000


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


def check_run(folder: Path, description: Mapping[str, Any]) -> None:
    """The run to go on with must be the run that was begun."""
    path = folder / RUN_FILE
    try:
        begun = dict(_flat(_completed(json.loads(path.read_text(encoding="utf-8")))))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}, which says how this run was begun, cannot be read ({error}): delete {folder}, or name "
            "another folder"
        ) from error
    now = dict(_flat(json.loads(json.dumps(description))))
    differing = [name for name in {**begun, **now} if begun.get(name) != now.get(name)]
    if differing:
        changes = "; ".join(f"{name} was {begun.get(name)!r}, is {now.get(name)!r}" for name in differing)
        raise ConfigError(
            f"{folder} holds a run that was begun differently ({changes}): go on with what it was begun "
            f"with, or name another folder"
        )


def read_precision(folder: Path) -> Precision:
    """The precision that the run in this folder was begun with."""
    path = folder / RUN_FILE
    try:
        return from_mapping(Precision, json.loads(path.read_text(encoding="utf-8"))["precision"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path} does not say in which precision the run was begun: {error}") from error


def fingerprint(data: Dataset) -> str:
    """A short checksum of the labels and of pictures spread over the data."""
    rows = torch.linspace(0, len(data) - 1, min(len(data), N_SAMPLED)).long()
    digest = hashlib.sha256(data.labels.numpy().tobytes())
    if data.marks is not None:
        digest.update(data.marks.numpy().tobytes())
    digest.update(data.images[rows].numpy().tobytes())
    return digest.hexdigest()[:16]


def _completed(description: dict[str, Any]) -> dict[str, Any]:
    """A run begun before a field existed was begun with its default."""
    config = from_mapping(TrainingConfig, without_gone(description["training"]))
    compared = {name: value for name, value in description.items() if name != "precision"}
    return compared | {"training": _training(config)}


def _training(config: TrainingConfig) -> dict[str, Any]:
    return {name: value for name, value in to_mapping(config).items() if name not in FREE}


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested fields under dotted names."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
