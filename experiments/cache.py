"""What an experiment keeps in its folder: steps that are done once, and the arrays that its figures show."""

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from experiments.provenance import with_weights
from torchsite.errors import ConfigError, DataError
from torchsite.files import write_atomically
from torchsite.results import Result

log = logging.getLogger(__name__)


def step(
    path: Path, config: Mapping[str, Any], find: Callable[[], Mapping[str, Any]], seed: int = 0
) -> Result:
    """What `find` finds, kept in the file; a file made with other settings is refused, not mixed."""
    if path.exists():
        found = Result.load(path)
        if (found.config, found.seed) != (dict(config), seed):
            raise ConfigError(
                f"{path} was made with other settings ({found.config}, not {dict(config)}): "
                "delete it, or name another folder"
            )
        return found
    started = time.monotonic()
    result = Result(path.stem, find(), dict(config), seed, time.monotonic() - started)
    result.save(path)
    log.info("%s: %.0f s", path.stem, result.seconds)
    return result


def save_result(result: Result, folder: Path, arrays: Mapping[str, Tensor] | None = None) -> Result:
    """Write the result as NAME.json, and the arrays that belong to it as NAME.npz beside it.

    A result that does not state the weights that it measured is an error.
    """
    with_weights(result)
    if arrays is not None:
        save_arrays(folder / f"{result.name}.npz", arrays)
    result.save(folder / f"{result.name}.json")
    return result


def save_arrays(path: Path, arrays: Mapping[str, Tensor]) -> Path:
    """Write tensors by name, compressed and without pickles."""

    def write(place: Path) -> None:
        with place.open("wb") as file:
            plain = {name: tensor.detach().cpu().numpy() for name, tensor in arrays.items()}
            np.savez_compressed(file, allow_pickle=False, **plain)

    return write_atomically(path, write)


def load_arrays(path: Path) -> dict[str, Tensor]:
    """Read the tensors back."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    except FileNotFoundError:
        raise DataError(f"no arrays at {path}: run the experiment that writes them first") from None
    except (OSError, ValueError, BadZipFile) as error:
        raise DataError(f"{path} holds no arrays ({error}): delete it and run again") from error
