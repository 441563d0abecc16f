"""The files of published data sets, read strictly: one that holds less or more than it promises is an error.

| set | its files |
|---|---|
| MNIST and its relatives | idx files, plain or gzipped (below) |
| CIFAR-10 | binary batches; the pickled ones of its publisher are not read |
| Food-101 | `images/` by class, and `meta/` with the lists of the two splits |
| mnist_sample | one PNG sheet in the package, whose column j holds digits of class j mod 10 |

An idx file is two zero bytes, the type code (8: uint8), the number of axes, each axis' length as a big-endian
32-bit number, then the values. The embedded digits are those of Y. LeCun, C. Cortes and C. J. C. Burges, "The
MNIST database of handwritten digits", under CC BY-SA 3.0 (see `mnist_sample.txt`); they were drawn by
`tools/make_mnist_sample.py`.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import torch
from PIL import Image

from torchsite.data.dataset import Dataset
from torchsite.data.imagecache import Listing, load_pictures
from torchsite.data.request import Request
from torchsite.errors import DataError
from torchsite.shapes import Labels, Pixels

UINT8 = 8
MAX_BYTES = 1 << 33
PREFIXES = {"train": "train", "test": "t10k"}
N_VALUES = 3 * 32 * 32
BATCHES = {"train": tuple(f"data_batch_{n}" for n in range(1, 6)), "test": ("test_batch",)}
SHEET = Path(__file__).with_name("mnist_sample.png")
N_DIGITS = {"train": 5000, "test": 1000}
DIGITS_A_ROW = 100


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


def food_files(half: str) -> tuple[str, ...]:
    """The list of one split, with lines like `apple_pie/1005649`."""
    return (f"meta/{half}.txt",)


def read_food101(folder: Path, request: Request) -> Dataset:
    """The pictures that the list of the split names."""
    rows = _lines(folder / food_files(request.half)[0])
    classes = tuple(
        sorted({row.partition("/")[0] for half in ("train", "test") for row in _halves(folder, half)})
    )
    labels = tuple(classes.index(row.partition("/")[0]) for row in rows)
    listing = Listing(request.name, folder / "images", tuple(f"{row}.jpg" for row in rows), labels, classes)
    return load_pictures(listing, request)


def _halves(folder: Path, half: str) -> list[str]:
    path = folder / food_files(half)[0]
    return _lines(path) if path.is_file() else []


def _lines(path: Path) -> list[str]:
    rows = path.read_text(encoding="utf-8").split()
    if not rows or any(row.count("/") != 1 or ".." in row for row in rows):
        raise DataError(f"{path}: expected lines like apple_pie/1005649: fetch the archive again")
    return rows


def read_sample(split: str) -> tuple[Pixels, Labels]:
    """The digits of one split, the classes taking turns, so that every slice of ten is balanced."""
    try:
        with Image.open(SHEET) as picture:
            sheet = np.array(picture)
    except OSError as error:
        raise DataError(f"{SHEET} is missing or damaged ({error}): install torchsite again") from error
    digits = sheet.reshape(-1, 28, DIGITS_A_ROW, 28).swapaxes(1, 2).reshape(-1, 1, 28, 28)
    first = N_DIGITS["train"] if split == "test" else 0
    n = N_DIGITS[split]
    return torch.from_numpy(digits[first : first + n].copy()), torch.arange(n) % 10
