"""A folder of pictures: what is known of it before anything is decoded, and both its halves at a size."""

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


def survey_data(data: str, limit: int | None = None) -> Survey:
    """How many pictures of which size, from the heads of the files."""
    if data in CATALOGUE:
        train, test = (load_dataset(data, half, progress=False) for half in ("train", "test"))
        n_train = len(train.spread(limit))
        side = min(train.images.shape[-2:])
        return Survey(n_train, len(test), len(train.classes), side, train.counts)
    requests = [_request(data, half, None, False) for half in ("train", "test")]
    ours, theirs = (list_split(find_folder(request), request) for request in requests)
    n_train = len(ours.files) if limit is None else min(limit, len(ours.files))
    counts = tuple(ours.labels.count(label) for label in range(len(ours.classes)))
    side, channels = usual_side(ours), usual_channels(ours)
    return Survey(n_train, len(theirs.files), len(ours.classes), side, counts, channels)


def survey_labelled(data: str, labels: Path) -> Survey:
    """The same of a table of labels and its pictures."""
    requests = [_request(data, half, None, False) for half in ("train", "test")]
    root = find_folder(requests[0])
    table = read_label_table(labels, root)
    ours, theirs = (labelled_rows(table, request) for request in requests)
    files = tuple(table.files[row] for row in ours)
    listing = Listing(root.name, root, files, (0,) * len(files), table.classes)
    counts = tuple(table.marks[ours].sum(0).tolist())
    side, channels = usual_side(listing), usual_channels(listing)
    return Survey(len(ours), len(theirs), len(table.classes), side, counts, channels)


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
    data: str, size: int | None, progress: bool, labels: Path | None = None, margin: float = 1.0
) -> tuple[Dataset, Dataset, tuple[Finding, ...]]:
    """Both halves at a size; those of a folder are inspected, published sets are taken as they are.

    With a table of labels the folder holds the pictures that it names; with a margin its pictures are
    the centres of larger ones.
    """
    if labels is not None:
        both = [_request(data, half, size, progress, margin) for half in ("train", "test")]
        folder = find_folder(both[0])
        table = read_label_table(labels, folder)
        ours, theirs = (load_labelled(folder, table, request) for request in both)
        return ours, theirs, ()
    if data in CATALOGUE:
        train, test = (load_dataset(data, half, size=size, progress=progress) for half in ("train", "test"))
        return train, test, ()
    requests = [_request(data, half, size, progress, margin) for half in ("train", "test")]
    mine, others = (read_half(find_folder(request), request) for request in requests)
    return mine.pictures, others.pictures, tuple(inspect_halves(mine, others))


def _request(data: str, half: str, size: int | None, progress: bool, margin: float = 1.0) -> Request:
    return Request(data, half, size=size, progress=progress, skip_unreadable=True, margin=margin)
