"""Pictures and maps that a figure shows, beside the result they belong to: compressed arrays, no pickles."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from torchsite.errors import DataError
from torchsite.files import write_atomically


def save_arrays(path: Path, arrays: Mapping[str, Tensor]) -> Path:
    """Write tensors by name, compressed."""

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
