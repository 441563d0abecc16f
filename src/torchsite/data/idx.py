"""The idx files of MNIST and its relatives, plain or gzipped.

An idx file is two zero bytes, the type code (8: uint8), the number of axes, each axis' length as a big-endian
32-bit number, then the values. The file must hold exactly what its header promises.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import torch

from torchsite.data.request import Request
from torchsite.errors import DataError
from torchsite.shapes import Labels, Pixels

UINT8 = 8
MAX_BYTES = 1 << 33
PREFIXES = {"train": "train", "test": "t10k"}


def idx_files(half: str) -> tuple[str, str]:
    """The names of the image and of the label file of one split."""
    prefix = PREFIXES[half]
    return f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"


def find_idx(folder: Path, name: str) -> Path | None:
    """The file under its usual spellings: with a dot instead of the second dash, plain or gzipped."""
    spellings = [f"{stem}{suffix}" for stem in (name, name.replace("-idx", ".idx")) for suffix in ("", ".gz")]
    return next((folder / spelling for spelling in spellings if (folder / spelling).is_file()), None)


def read_idx_folder(folder: Path, request: Request) -> tuple[Pixels, Labels]:
    """The pictures and labels of one split."""
    images_file, labels_file = (find_idx(folder, name) for name in idx_files(request.half))
    if images_file is None or labels_file is None:
        raise DataError(f"{folder} lacks {' or '.join(idx_files(request.half))}: fetch both")
    images, labels = read_idx(images_file, axes=3), read_idx(labels_file, axes=1)
    if len(images) != len(labels):
        raise DataError(
            f"{images_file} holds {len(images)} images but {labels_file} {len(labels)} labels: "
            "they belong to different sets, fetch both again"
        )
    return torch.from_numpy(images[:, None]), torch.from_numpy(labels.astype(np.int64))


def read_idx(path: Path, axes: int) -> np.ndarray:
    """The array in one idx file; anything but a whole one is an error that names the file."""
    try:
        with open_maybe_gzipped(path) as stream:
            shape = _read_header(stream, path, axes)
            values = stream.read(math.prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is truncated or damaged ({error}): delete it and fetch it again") from error
    if len(values) != math.prod(shape):
        surplus = "more" if len(values) > math.prod(shape) else f"only {len(values):,}"
        raise DataError(
            f"{path} is damaged: its header promises {math.prod(shape):,} bytes, it holds {surplus}: "
            "delete it and fetch it again"
        )
    return np.frombuffer(bytearray(values), np.uint8).reshape(shape)


def open_maybe_gzipped(path: Path) -> BinaryIO:
    """The content of a file, whether or not it is gzipped."""
    with path.open("rb") as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
    return cast(BinaryIO, gzip.open(path, "rb")) if gzipped else path.open("rb")


def _read_header(stream: BinaryIO, path: Path, axes: int) -> tuple[int, ...]:
    header = stream.read(4 + 4 * axes)
    if len(header) < 4 + 4 * axes or header[:4] != bytes([0, 0, UINT8, axes]):
        raise DataError(
            f"{path} is not an idx file of uint8 with {axes} axes (it begins with {header[:4]!r}): "
            "check what was downloaded, fetch it again"
        )
    shape = struct.unpack(f">{axes}I", header[4:])
    if math.prod(max(1, n) for n in shape) > MAX_BYTES:
        raise DataError(f"{path} claims to hold an array of {shape}: its header is damaged, fetch it again")
    return shape
