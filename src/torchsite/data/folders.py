"""Any folder with one sub-folder per class is a data set.

`train/` and `test/` (or `val/`, `valid/`, `validation/`) hold the class folders of the two halves; without
them a seed splits the pictures, every class in proportion; pictures of one group stay together.
"""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

import torch

from torchsite.data.dataset import Dataset
from torchsite.data.imagecache import Listing, load_pictures
from torchsite.data.pictures import STACKED
from torchsite.data.request import Request
from torchsite.errors import DataError
from torchsite.files import printable
from torchsite.randomness import Rng, make_rng

PLAIN = (".bmp", ".gif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".webp")
EXTENSIONS = tuple(sorted([*PLAIN, *STACKED]))
VALIDATION = ("val", "valid", "validation")
SPLIT_FOLDERS = {"train": ("train", "training"), "test": ("test", *VALIDATION)} | {
    name: (name, *VALIDATION, "test") for name in VALIDATION
}


def load_folder(folder: Path, request: Request) -> Dataset:
    """The pictures of a folder, decoded once into the cache."""
    return load_pictures(list_split(folder, request), request)


def list_split(folder: Path, request: Request, group: Callable[[Path], Hashable] = str) -> Listing:
    """The pictures of one split, classes taking turns.

    Where a seed splits the pictures, those of one group stay together.
    """
    return taking_turns(_of_split(folder, request, group))


def _of_split(folder: Path, request: Request, group: Callable[[Path], Hashable]) -> Listing:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder: name one with a sub-folder for every class")
    train = _split_folder(folder, "train")
    if train is None:
        return _half(list_classes(folder), request, group)
    classes = tuple(printable(name) for name in _class_folders(train))
    _check_classes(train, classes, None)
    mine = _split_folder(folder, request.split)
    if mine is None:
        raise DataError(
            f"{folder} has {train.name}/ but no folder for {request.split!r} "
            f"({', '.join(SPLIT_FOLDERS[request.split])}): add one, or name {train} to split it with a seed"
        )
    return list_classes(mine, classes, name=printable(folder.resolve().name))


def taking_turns(listing: Listing) -> Listing:
    """The same pictures, the classes spread evenly: the first ones are a sample, neighbours are unlike."""
    totals, seen = Counter(listing.labels), Counter[int]()
    places = []
    for label in listing.labels:
        places.append((seen[label] + 0.5) / totals[label])
        seen[label] += 1
    return listing.taken(sorted(range(len(places)), key=lambda row: places[row]))


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


def held_out(labels: Sequence[int], groups: Sequence[Hashable], share: float, rng: Rng) -> frozenset[int]:
    """The rows that go to the test half.

    Each class gives `share` of its pictures, at least one, and keeps at least one. Groups (pictures that show
    the same thing) come in random order; one is held out if none of its classes gives more than its share.
    """
    totals = Counter(labels)
    room = Counter({label: min(n - 1, max(1, round(share * n))) for label, n in totals.items()})
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    rows_of = list(members.values())
    chosen: set[int] = set()
    for which in torch.randperm(len(rows_of), generator=rng).tolist():
        wanted = Counter(labels[row] for row in rows_of[which])
        if wanted <= room:
            room -= wanted
            chosen.update(rows_of[which])
    return frozenset(chosen)


def _half(whole: Listing, request: Request, group: Callable[[Path], Hashable]) -> Listing:
    rng = make_rng(request.seed, "split", whole.name)
    groups = [group(Path(file)) for file in whole.files]
    test = held_out(whole.labels, groups, request.holdout, rng)
    rows = [row for row in range(len(whole.files)) if (row in test) == (request.half == "test")]
    return whole.taken(rows)


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
    pictures = [
        (*inside, name)
        for root, _, names in os.walk(folder / class_name)
        for inside in [Path(root).relative_to(folder).parts]
        for name in names
        if name.lower().endswith(EXTENSIONS) and name[0] not in "._"
    ]
    if not pictures:
        raise DataError(
            f"{folder / class_name} has no pictures ({', '.join(EXTENSIONS)}): fill or remove the folder"
        )
    return ["/".join(parts) for parts in sorted(pictures)]
