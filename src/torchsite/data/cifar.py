"""CIFAR-10 as its binary batches; the pickled ones of its publisher are not read."""

from pathlib import Path

import numpy as np
import torch

from torchsite.data.request import Request
from torchsite.errors import DataError
from torchsite.shapes import Labels, Pixels

N_VALUES = 3 * 32 * 32
BATCHES = {"train": tuple(f"data_batch_{n}" for n in range(1, 6)), "test": ("test_batch",)}


def bin_files(half: str) -> tuple[str, ...]:
    """The names of the binary batches of one split."""
    return tuple(f"{name}.bin" for name in BATCHES[half])


def read_bin_folder(folder: Path, request: Request) -> tuple[Pixels, Labels]:
    """`cifar-10-batches-bin`: a label byte, then 3072 bytes red, green, blue, for each picture."""
    rows = np.concatenate([_read_bin(folder / name) for name in bin_files(request.half)])
    pixels = np.ascontiguousarray(rows[:, 1:]).reshape(-1, 3, 32, 32)
    return torch.from_numpy(pixels), torch.from_numpy(rows[:, 0].astype(np.int64))


def _read_bin(path: Path) -> np.ndarray:
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % (1 + N_VALUES):
        raise DataError(
            f"{path} is truncated: expected a multiple of {1 + N_VALUES} bytes, got {len(content):,}: "
            "delete it and fetch it again"
        )
    return content.reshape(-1, 1 + N_VALUES)
