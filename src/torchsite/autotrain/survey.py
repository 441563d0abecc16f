"""Survey a folder of pictures before anything is decoded, and open both its halves at a size.

With a table of labels, the folder holds the pictures that the table names. Published sets are taken as they
are.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from torchsite.autotrain.inspection import Finding, inspect_halves, read_half
from torchsite.data import CATALOGUE, Dataset, load_dataset
from torchsite.data.folders import list_split
from torchsite.data.imagecache import Listing, usual_channels
from torchsite.data.label_tables import labelled_rows, load_labelled, read_label_table
from torchsite.data.load import find_folder
from torchsite.data.request import Request
from torchsite.data.stacks import is_special, open_picture, read_stack
from torchsite.errors import ConfigError

N_SURVEYED = 400
HALVES = ("train", "test")


@dataclass(frozen=True)
class Survey:
    """What is known of a folder before anything is decoded; `side` is the usual shorter side in pixels."""

    n_train: int
    n_test: int
    n_classes: int
    side: int
    counts: tuple[int, ...] = ()
    channels: int = 3

    def __post_init__(self) -> None:
        if self.n_train < 4 or self.n_test < 2:
            raise ConfigError(
                f"expected at least 4 pictures to train on and 2 to test with, got {self.n_train} and "
                f"{self.n_test}: add some"
            )


def survey_halves(train: Dataset, test: Dataset) -> Survey:
    """The same of pictures that are decoded already."""
    channels, height, width = train.images.shape[1:]
    n_classes = len(train.classes)
    return Survey(len(train), len(test), n_classes, min(height, width), train.counts, channels)


def survey_data(data: str, labels: Path | None = None, limit: int | None = None) -> Survey:
    """How many pictures of which size, from the heads of the files; `limit` is for those to train on."""
    if labels is None and data in CATALOGUE:
        train, test = (load_dataset(data, half, progress=False) for half in HALVES)
        return survey_halves(train.spread(limit), test)
    requests = [Request(data, half, progress=False, skip_unreadable=True) for half in HALVES]
    folder = find_folder(requests[0])
    if labels is None:
        ours, theirs = (list_split(folder, request) for request in requests)
        n_test = len(theirs.files)
        counts = tuple(ours.labels.count(label) for label in range(len(ours.classes)))
    else:
        table = read_label_table(labels, folder)
        rows, others = (labelled_rows(table, request) for request in requests)
        files = tuple(table.files[row] for row in rows)
        ours, n_test = Listing(folder.name, folder, files, (0,) * len(files), table.classes), len(others)
        counts = tuple(table.multi_hot[rows].sum(0).tolist())
    n_train = len(ours.files) if limit is None else min(limit, len(ours.files))
    return Survey(n_train, n_test, len(ours.classes), usual_side(ours), counts, usual_channels(ours))


def usual_side(listing: Listing) -> int:
    """The median of the shorter sides, from some of the pictures."""
    step = max(1, len(listing.files) // N_SURVEYED)
    sides = []
    for path in listing.paths[::step]:
        try:
            if is_special(path):
                sides.append(min(read_stack(path).shape[1:]))
                continue
            with open_picture(path) as picture:
                sides.append(min(picture.size))
        except Exception:  # damaged files make Pillow fail in many ways; reading them later says how
            continue
    return round(median(sides)) if sides else 128


def open_halves(
    data: str, size: int | None, *, labels: Path | None = None, margin: float = 1.0, progress: bool = False
) -> tuple[Dataset, Dataset, tuple[Finding, ...]]:
    """Both halves at a size, and the faults found in those of a folder with classes.

    With a margin, pictures are the centres of larger ones.
    """
    if labels is None and data in CATALOGUE:
        train, test = (load_dataset(data, half, size=size, progress=progress) for half in HALVES)
        return train, test, ()
    requests = [
        Request(data, half, size=size, progress=progress, skip_unreadable=True, margin=margin)
        for half in HALVES
    ]
    folder = find_folder(requests[0])
    if labels is not None:
        table = read_label_table(labels, folder)
        train, test = (load_labelled(folder, table, request) for request in requests)
        return train, test, ()
    ours, theirs = (read_half(folder, request) for request in requests)
    return ours.pictures, theirs.pictures, tuple(inspect_halves(ours, theirs))
