"""Food-101 as published: `images/` by class, and `meta/` with the lists of the two splits."""

from pathlib import Path

from torchsite.data.dataset import Dataset
from torchsite.data.imagecache import Listing, load_pictures
from torchsite.data.request import Request
from torchsite.errors import DataError


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
