"""Any folder with one sub-folder per class is a data set.

`train/` and `test/` (or `val/`, `valid/`, `validation/`) hold the class folders of the two halves; without
them a seed splits the pictures, every class in proportion.
"""

from collections.abc import Callable, Hashable
from pathlib import Path

from torchsite.data.dataset import Dataset
from torchsite.data.imagecache import Listing, load_pictures
from torchsite.data.request import Request
from torchsite.data.splitting import held_out
from torchsite.errors import DataError
from torchsite.files import printable
from torchsite.randomness import make_rng

EXTENSIONS = (
    ".bmp",
    ".dcm",
    ".dicom",
    ".gif",
    ".jpe",
    ".jpeg",
    ".jpg",
    ".npy",
    ".pbm",
    ".pgm",
    ".png",
    ".ppm",
    ".tif",
    ".tiff",
    ".webp",
)
VALIDATION = ("val", "valid", "validation")
SPLIT_FOLDERS = {"train": ("train", "training"), "test": ("test", *VALIDATION)} | {
    name: (name, *VALIDATION, "test") for name in VALIDATION
}


def load_folder(folder: Path, request: Request) -> Dataset:
    """The pictures of a folder, decoded once into the cache."""
    return load_pictures(list_split(folder, request), request)


def list_split(folder: Path, request: Request, group: Callable[[Path], Hashable] = str) -> Listing:
    """The pictures of one split; where no folders say which, pictures of one group stay together."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder: name one with a sub-folder for every class")
    train = _split_folder(folder, "train")
    if train is None:
        return _half(list_classes(folder), request, group)
    classes = list_classes(train).classes
    mine = _split_folder(folder, request.split)
    if mine is None:
        raise DataError(
            f"{folder} has {train.name}/ but no folder for {request.split!r} "
            f"({', '.join(SPLIT_FOLDERS[request.split])}): add one, or name {train} to split it with a seed"
        )
    return list_classes(mine, classes, name=printable(folder.resolve().name))


def list_classes(folder: Path, classes: tuple[str, ...] | None = None, name: str | None = None) -> Listing:
    """Every picture below the class folders, in order of its path."""
    found = {printable(name): name for name in _class_folders(folder)}
    _check_classes(folder, tuple(found), classes)
    names = classes or tuple(found)
    files, labels = [], []
    for label, class_name in enumerate(names):
        pictures = _pictures(folder, found[class_name]) if class_name in found else []
        files += pictures
        labels += [label] * len(pictures)
    return Listing(name or printable(folder.resolve().name), folder, tuple(files), tuple(labels), names)


def _half(whole: Listing, request: Request, group: Callable[[Path], Hashable]) -> Listing:
    rng = make_rng(request.seed, "split", whole.name)
    groups = [group(Path(file)) for file in whole.files]
    test = held_out(whole.labels, groups, request.holdout, rng)
    rows = [row for row in range(len(whole.files)) if (row in test) == (request.half == "test")]
    files, labels = (tuple(values[row] for row in rows) for values in (whole.files, whole.labels))
    return Listing(whole.name, whole.root, files, labels, whole.classes)  # type: ignore[arg-type]


def _split_folder(folder: Path, split: str) -> Path | None:
    """The folder of a split: it must have sub-folders, for a class may be called `train` as well."""
    names = SPLIT_FOLDERS[split]
    return next(
        (folder / name for name in names if (folder / name).is_dir() and _class_folders(folder / name)), None
    )


def _class_folders(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name[0] not in "._"))


def _check_classes(folder: Path, found: tuple[str, ...], expected: tuple[str, ...] | None) -> None:
    if not found:
        raise DataError(
            f"{folder} has no sub-folders: put the pictures of every class into a folder of its own"
        )
    if expected is None and len(found) == 1:
        raise DataError(f"{folder} has the single class {found[0]!r}: a classifier needs at least two")
    strangers = sorted(set(found) - set(expected or found))
    if strangers:
        raise DataError(
            f"{folder} has classes that the training half lacks ({', '.join(strangers)}): "
            "add them there or remove them here"
        )


def _pictures(folder: Path, class_name: str) -> list[str]:
    paths = sorted((folder / class_name).rglob("*"))
    pictures = [path for path in paths if path.suffix.lower() in EXTENSIONS and path.name[0] not in "._"]
    if not pictures:
        raise DataError(
            f"{folder / class_name} has no pictures ({', '.join(EXTENSIONS)}): fill or remove the folder"
        )
    return [path.relative_to(folder).as_posix() for path in pictures]
