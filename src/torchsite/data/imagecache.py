"""Decoded pictures, kept as one memory-mapped file per listing and size.

The cache is written as a whole or not at all: a scratch directory gets its final name in one step. Its key is
made of the pictures' paths, sizes and times, so a changed folder is decoded again. Of several processes that
want the same pictures one decodes, on all cores (Pillow frees the interpreter while it works, so threads are
enough); the others wait for it.
"""

import hashlib
import json
import math
import mmap
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from filelock import FileLock
from tqdm import tqdm

from torchsite.data.dataset import Dataset
from torchsite.data.paths import cache_directory, whole_directory
from torchsite.data.pictures import UnreadableImageError, decode
from torchsite.data.request import Request
from torchsite.data.stacks import COLOUR, n_channels
from torchsite.errors import DataError, MissingExtraError
from torchsite.files import visible

FORMAT = 1
N_LOOKED_AT = 20
CHUNK = 256
Picture = TypeVar("Picture")


@dataclass(frozen=True)
class Listing:
    """Picture files below a root, each with its label."""

    name: str
    root: Path
    files: tuple[str, ...]
    labels: tuple[int, ...]
    classes: tuple[str, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files as full paths."""
        return tuple(self.root / file for file in self.files)

    def taken(self, rows: Sequence[int]) -> "Listing":
        """The pictures of these rows, in this order."""
        files, labels = tuple(self.files[row] for row in rows), tuple(self.labels[row] for row in rows)
        return replace(self, files=files, labels=labels)


def load_pictures(listing: Listing, request: Request) -> Dataset:
    """The listed pictures at the working size, decoded the first time and memory-mapped from then on."""
    return read_pictures(listing, request)[0]


def read_pictures(listing: Listing, request: Request) -> tuple[Dataset, Listing]:
    """The pictures and the list of their files, row by row: without those that cannot be read."""
    size, channels = request.kept_size, usual_channels(listing)
    name = re.sub(r"[^ -~]", "_", listing.name)  # a path that any locale can write
    folder = cache_directory() / "pictures" / f"{name}-{size}-{_key(listing, size, channels)}"
    pixels, kept = _open(folder) or _made(folder, listing, request, channels)
    if len(kept) < len(listing.files) and not request.skip_unreadable:
        first = min(set(range(len(listing.files))) - set(kept))
        decode(listing.paths[first], size, channels)  # raises the reason
    labels = torch.tensor(listing.labels)[kept]
    _check_classes(listing, labels)
    skipped = len(listing.files) - len(kept)
    listing = listing.taken(kept)
    images, name = torch.from_numpy(pixels), listing.name
    data = Dataset(images, labels, listing.classes, name, request.split, skipped, listing.paths)
    working = (request.picture_size, request.picture_size)
    return data if request.margin == 1 else data.with_margin(working), listing


def usual_channels(listing: Listing) -> int:
    """How many channels the pictures have: as the first that can be looked at; three for colour and grey."""
    for file in listing.files[:N_LOOKED_AT]:
        try:
            return n_channels(listing.root / file)
        except MissingExtraError:
            raise
        except Exception:  # damaged files fail in many ways; reading them later says how
            continue
    return COLOUR


def _key(listing: Listing, size: int, channels: int) -> str:
    about = (FORMAT, size, str(listing.root.resolve()), *([channels] if channels != COLOUR else []))
    state = hashlib.sha256(repr(about).encode())
    for file in listing.files:
        try:
            status = os.stat(f"{listing.root}/{file}")  # noqa: PTH116  # many times faster than paths
        except OSError:
            status = None  # a file that is missing is an unreadable one
        state.update(repr((file, status and (status.st_size, status.st_mtime_ns))).encode())
    return state.hexdigest()[:16]


def _open(folder: Path) -> tuple[np.ndarray, list[int]] | None:
    """The mapped pixels and which rows of the listing they are; None if there is no whole cache."""
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        shape, kept = tuple(about["shape"]), about["kept"]
        if (folder / "pixels.bin").stat().st_size != math.prod(shape):
            return None
        return _mapped(folder / "pixels.bin").reshape(shape), kept
    except (OSError, ValueError, KeyError):
        return None


def _mapped(path: Path) -> np.ndarray:
    """The bytes of a file, of which memory holds what was looked at; changes of them are never written.

    Training reads pictures in random order. Where the file is larger than memory, pages that the system reads
    ahead are dropped before they are used, so read-ahead is switched off.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if hasattr(mmap, "MADV_RANDOM"):
        content.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(content, np.uint8)


def _made(folder: Path, listing: Listing, request: Request, channels: int) -> tuple[np.ndarray, list[int]]:
    """Decode into the folder, or wait for another process that does."""
    try:
        locks = cache_directory() / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with FileLock(locks / f"{folder.name}.lock"):
            if _open(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)  # a damaged one
                with whole_directory(folder) as scratch:
                    _decode_into(scratch, listing, request, channels)
            opened = _open(folder)
    except OSError as error:
        raise DataError(
            f"cannot write to the cache in {folder.parent} ({error}): free space there or set "
            "TORCHSITE_CACHE to another directory"
        ) from error
    if opened is None:
        raise DataError(f"{folder} was removed or damaged while it was read: call again")
    return opened


def _decode_into(folder: Path, listing: Listing, request: Request, channels: int) -> None:
    size, kept = request.kept_size, []
    pictures = decode_all(
        listing.paths,
        partial(decode, size=size, channels=channels),
        title=f"decoding {listing.name}",
        skip=request.skip_unreadable,
        progress=request.progress,
    )
    with (folder / "pixels.bin").open("wb") as out:
        for row, picture in enumerate(pictures):
            if picture is not None:
                out.write(picture.tobytes())
                kept.append(row)
    if not kept:
        raise DataError(
            f"none of the {len(listing.files)} pictures in {listing.root} can be read: check the files"
        )
    about = {"shape": [len(kept), channels, size, size], "kept": kept, "root": str(listing.root)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def decode_all(
    paths: Sequence[Path], decode: Callable[[Path], Picture], *, title: str, skip: bool, progress: bool
) -> Iterator[Picture | None]:
    """The pictures in order; None for an unreadable one if `skip` allows it, else its error."""
    attempt = partial(_or_none, decode) if skip else decode
    bar = {"desc": visible(title), "disable": None if progress else True}  # None: not outside of a terminal
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        parts = (paths[start : start + CHUNK] for start in range(0, len(paths), CHUNK))
        decoded = chain.from_iterable(pool.map(attempt, part) for part in parts)
        yield from tqdm(decoded, total=len(paths), **bar)


def _or_none(decode: Callable[[Path], Picture], path: Path) -> Picture | None:
    try:
        return decode(path)
    except UnreadableImageError:
        return None


def _check_classes(listing: Listing, labels: torch.Tensor) -> None:
    lost = sorted(set(listing.labels) - set(labels.tolist()))
    if lost:
        names = ", ".join(listing.classes[label] for label in lost)
        raise DataError(
            f"{listing.root}: no picture of {names} can be read: replace them or remove the class"
        )
