"""Load any data set: by its name in the catalogue, or by its folder."""

from dataclasses import replace
from pathlib import Path

import torch
from torch.nn.functional import interpolate

from torchsite.data.catalogue import CATALOGUE
from torchsite.data.dataset import Dataset
from torchsite.data.folders import load_folder
from torchsite.data.formats import read_sample
from torchsite.data.paths import search_directories
from torchsite.data.published import load_published
from torchsite.data.request import Request
from torchsite.errors import ConfigError, DataError, did_you_mean
from torchsite.shapes import Pixels

CHUNK = 1024
SAMPLE = "mnist_sample"


def load_dataset(
    name_or_folder: str | Path = "mnist_sample",
    split: str = "train",
    *,
    data_dir: str | Path | None = None,
    size: int | None = None,
    download: bool = True,
    seed: int = 0,
    holdout: float = 0.2,
    progress: bool = True,
    skip_unreadable: bool = False,
    margin: float = 1.0,
) -> Dataset:
    """A data set as one value, from disk if it is there, else from its publisher.

    `size` is the side of square pictures in pixels (folders: 128 by default); `seed` and `holdout` split
    folders without `train/` and `test/`; `margin` keeps their pictures so many times larger, of which the
    centre is the picture (`margins.py`).
    """
    request = Request(
        name=str(name_or_folder),
        split=split,
        data_dir=None if data_dir is None else Path(data_dir),
        size=size,
        download=download,
        seed=seed,
        holdout=holdout,
        progress=progress,
        skip_unreadable=skip_unreadable,
        margin=margin,
    )
    by_name = isinstance(name_or_folder, str) and name_or_folder in CATALOGUE
    if by_name and margin != 1 and not CATALOGUE[request.name].pictures:
        raise ConfigError(f"margin is for folders of pictures: those of {request.name!r} have one size")
    if by_name:
        return resized(load_sample(request) if request.name == SAMPLE else load_published(request), size)
    return load_folder(find_folder(request), request)


def load_sample(request: Request) -> Dataset:
    """The digits embedded in the package."""
    images, labels = read_sample(request.half)
    return Dataset(images, labels, CATALOGUE[request.name].classes, request.name, request.split)


def find_folder(request: Request) -> Path:
    """The folder of that name, here or in a data directory."""
    here = Path(request.name).expanduser()
    if here.is_dir():
        return here
    candidates = [place / request.name for place in search_directories(request.data_dir)]
    found = next((folder for folder in candidates if folder.is_dir()), None)
    if found is None:
        looked = ", ".join(str(folder) for folder in (here, *candidates))
        raise DataError(
            f"unknown data set {request.name!r}: {did_you_mean(request.name, CATALOGUE)}; "
            f"and no folder of that name: looked for {looked}"
        )
    return found


def resized(data: Dataset, size: int | None) -> Dataset:
    """The pictures as squares of `size` pixels, bilinear and antialiased; as they are if `size` is None."""
    if size is None or data.images.shape[-2:] == (size, size):
        return data
    return replace(
        data, images=torch.cat([_resize(part, size) for part in data.images.split(CHUNK)]), larger=None
    )


def _resize(pixels: Pixels, size: int) -> Pixels:
    shrinks = size < max(pixels.shape[-2:])  # enlarging needs no antialiasing, which is slow
    resampled = interpolate(pixels.float(), size=(size, size), mode="bilinear", antialias=shrinks)
    return resampled.round_().clamp_(0, 255).to(torch.uint8)
