"""One door to every data set: by its name in the catalogue, or by its folder."""

from collections.abc import Callable, Mapping
from pathlib import Path

from torchsite.data.catalogue import CATALOGUE
from torchsite.data.dataset import Dataset
from torchsite.data.published import load_published
from torchsite.data.request import Request
from torchsite.data.resizing import resized
from torchsite.data.sample import read_sample
from torchsite.errors import DataError, did_you_mean


def load_dataset(
    name_or_folder: str | Path = "mnist_sample",
    split: str = "train",
    *,
    data_dir: str | Path | None = None,
    size: int | None = None,
    download: bool = True,
    seed: int = 0,
    progress: bool = True,
    skip_unreadable: bool = False,
    verify: bool = False,
) -> Dataset:
    """A data set as one value, from disk if it is there, else from its publisher."""
    request = Request(
        name=str(name_or_folder),
        split=split,
        data_dir=None if data_dir is None else Path(data_dir),
        size=size,
        download=download,
        seed=seed,
        progress=progress,
        skip_unreadable=skip_unreadable,
        verify=verify,
    )
    if request.name in CATALOGUE and not isinstance(name_or_folder, Path):
        return resized(LOADERS.get(request.name, load_published)(request), size)
    raise DataError(f"unknown data set {request.name!r}: {did_you_mean(request.name, CATALOGUE)}")


def load_sample(request: Request) -> Dataset:
    """The digits embedded in the package."""
    images, labels = read_sample(request.half)
    classes = CATALOGUE[request.name].classes
    return Dataset(images, labels, classes, request.name, request.split)


LOADERS: Mapping[str, Callable[[Request], Dataset]] = {"mnist_sample": load_sample}
