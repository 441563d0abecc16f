"""Decoded pictures, kept as one memory-mapped file per listing and size.

The cache is written as a whole or not at all: a scratch directory gets its final name in one step. Its key is
made of the pictures' paths, sizes and times, so a changed folder is decoded again. Decoding goes on where a
killed process stopped, and is divided among the processes of a distributed run (`shards`).
"""

import hashlib
import json
import math
import mmap
import re
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from torchsite.data.archives import whole_directory
from torchsite.data.dataset import Dataset
from torchsite.data.paths import cache_directory
from torchsite.data.pictures import decode
from torchsite.data.request import Request
from torchsite.data.shards import POLL_SECONDS, SILENCE_SECONDS, Shards
from torchsite.data.stacks import COLOUR, n_channels
from torchsite.errors import DataError, MissingExtraError

FORMAT = 1
N_LOOKED_AT = 20


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


def load_pictures(listing: Listing, request: Request) -> Dataset:
    """The listed pictures at the working size, decoded the first time and memory-mapped ever after."""
    return read_pictures(listing, request)[0]


def read_pictures(listing: Listing, request: Request) -> tuple[Dataset, Listing]:
    """The pictures and the list of their files, row by row: without those that cannot be read."""
    size, channels = request.kept_size, usual_channels(listing)
    name = re.sub(r"[^ -~]", "_", listing.name)  # a path that any locale can write
    folder = cache_directory() / "pictures" / f"{name}-{size}-{_key(listing, size, channels)}"
    existed = folder.is_dir()
    opened = _open(folder)
    if opened is None:
        if existed:  # a damaged one; a whole one that appeared since is another process's work
            shutil.rmtree(folder, ignore_errors=True)
        _make(folder, listing, request, channels)
        opened = _open(folder)
    if opened is None:
        raise DataError(f"{folder} was removed or damaged while it was read: call again")
    pixels, kept = opened
    if len(kept) < len(listing.files) and not request.skip_unreadable:
        first = min(set(range(len(listing.files))) - set(kept))
        decode(listing.paths[first], size, channels)  # says what is wrong with it
    labels = torch.tensor(listing.labels)[kept]
    _check_classes(listing, labels)
    skipped = len(listing.files) - len(kept)
    files = tuple(listing.files[row] for row in kept)
    listing = replace(listing, files=files, labels=tuple(labels.tolist()))
    images, name = torch.from_numpy(pixels), listing.name
    data = Dataset(images, labels, listing.classes, name, request.split, skipped, listing.paths)
    working = (request.picture_size, request.picture_size)
    return data if request.margin == 1 else data.with_margin(working), listing


def usual_channels(listing: Listing) -> int:
    """How many channels the pictures have: as the first that can be looked at; three for colour and grey."""
    for path in listing.paths[:N_LOOKED_AT]:
        try:
            return n_channels(path)
        except MissingExtraError:
            raise
        except Exception:  # damaged files fail in many ways; reading them later says how
            continue
    return COLOUR


def _key(listing: Listing, size: int, channels: int) -> str:
    about = (FORMAT, size, str(listing.root.resolve()), *([channels] if channels != COLOUR else []))
    state = hashlib.sha256(repr(about).encode())
    for file, path in zip(listing.files, listing.paths, strict=True):
        status = path.stat() if path.exists() else None  # a file that is missing is an unreadable one
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

    Training looks at pictures in random order. Where the file is larger than memory, what the system would
    read ahead is thrown out before its turn comes, and a batch costs many times what it needs.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    if hasattr(mmap, "MADV_RANDOM"):
        content.madvise(mmap.MADV_RANDOM)
    return np.frombuffer(content, np.uint8)


def _make(folder: Path, listing: Listing, request: Request, channels: int) -> None:
    """Decode into shards beside the folder and join them there; another process may be faster."""
    shards = Shards(
        folder.with_name(f".{folder.name}.shards"),
        listing.paths,
        partial(decode, size=request.kept_size, channels=channels),
        folder.is_dir,
        title=f"decoding {listing.name}",
        skip=request.skip_unreadable,
        progress=request.progress,
    )
    try:
        shards.folder.mkdir(parents=True, exist_ok=True)
        if shards.fill():
            with whole_directory(folder) as scratch:
                _join(scratch, shards, listing, request.kept_size, channels)
        else:
            _wait(folder, shards)
    except OSError as error:
        if _open(folder) is None:
            raise DataError(
                f"cannot write to the cache in {folder.parent} ({error}): free space there or set "
                "TORCHSITE_CACHE to another directory"
            ) from error
    finally:
        if folder.is_dir():
            shutil.rmtree(shards.folder, ignore_errors=True)
        else:
            with suppress(OSError):
                shards.folder.rmdir()  # unless some shards are finished: they wait for the next attempt


def _join(scratch: Path, shards: Shards, listing: Listing, size: int, channels: int) -> None:
    kept = shards.join(scratch / "pixels.bin")
    if not kept:
        shutil.rmtree(shards.folder, ignore_errors=True)
        raise DataError(
            f"none of the {len(listing.files)} pictures in {listing.root} can be read: check the files"
        )
    about = {"shape": [len(kept), channels, size, size], "kept": kept, "root": str(listing.root)}
    (scratch / "about.json").write_text(json.dumps(about), encoding="utf-8")


def _wait(folder: Path, shards: Shards) -> None:
    """Until the first rank has joined the shards."""
    end = time.monotonic() + SILENCE_SECONDS
    while _open(folder) is None:
        if not shards.folder.is_dir() and time.monotonic() > end:
            raise DataError(f"{folder} was not made by the first process: look at what it says")
        time.sleep(POLL_SECONDS)


def _check_classes(listing: Listing, labels: torch.Tensor) -> None:
    lost = sorted(set(listing.labels) - set(labels.tolist()))
    if lost:
        names = ", ".join(listing.classes[label] for label in lost)
        raise DataError(
            f"{listing.root}: no picture of {names} can be read: replace them or remove the class"
        )
