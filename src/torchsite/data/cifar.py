"""CIFAR-10 in its two published layouts: the binary batches and the pickled ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from torchsite.data.pickles import load_inert
from torchsite.data.request import Request
from torchsite.errors import DataError
from torchsite.shapes import Labels, Pixels

N_VALUES = 3 * 32 * 32
BATCHES = {"train": tuple(f"data_batch_{n}" for n in range(1, 6)), "test": ("test_batch",)}

Rows = tuple[np.ndarray, np.ndarray]


def bin_files(half: str) -> tuple[str, ...]:
    """The names of the binary batches of one split."""
    return tuple(f"{name}.bin" for name in BATCHES[half])


def py_files(half: str) -> tuple[str, ...]:
    """The names of the pickled batches of one split."""
    return BATCHES[half]


def read_bin_folder(folder: Path, request: Request) -> tuple[Pixels, Labels]:
    """`cifar-10-batches-bin`: a label byte, then 3072 bytes red, green, blue, for each picture."""
    return _join(folder, bin_files(request.half), _read_bin)


def read_py_folder(folder: Path, request: Request) -> tuple[Pixels, Labels]:
    """`cifar-10-batches-py`: pickled arrays, read without executing anything."""
    return _join(folder, py_files(request.half), _read_py)


def _join(folder: Path, names: tuple[str, ...], read: Callable[[Path], Rows]) -> tuple[Pixels, Labels]:
    parts = [read(folder / name) for name in names]
    pixels = np.concatenate([part[0] for part in parts]).reshape(-1, 3, 32, 32)
    labels = np.concatenate([part[1] for part in parts]).astype(np.int64)
    return torch.from_numpy(pixels), torch.from_numpy(labels)


def _read_bin(path: Path) -> Rows:
    content = np.fromfile(path, np.uint8)
    if len(content) == 0 or len(content) % (1 + N_VALUES):
        raise DataError(
            f"{path} is truncated: expected a multiple of {1 + N_VALUES} bytes, got {len(content):,}: "
            "delete it and fetch it again"
        )
    rows = content.reshape(-1, 1 + N_VALUES)
    return rows[:, 1:], rows[:, 0]


def _read_py(path: Path) -> Rows:
    values = load_inert(path.read_bytes(), str(path))
    pixels, labels = values.get("data"), values.get("labels")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != N_VALUES:
        raise DataError(f"{path}: expected `data`, an array of n × {N_VALUES}: fetch the file again")
    if not isinstance(labels, list) or len(labels) != len(pixels) or not all(n in range(256) for n in labels):
        raise DataError(
            f"{path}: expected `labels`, a list of {len(pixels)} small whole numbers: fetch the file again"
        )
    return pixels, np.array(labels, np.int64)
