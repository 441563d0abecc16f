"""Several labels for a picture, or none: a folder of pictures and a table of labels (CSV).

    file,edema,effusion          file,labels
    scan1.png,1,0                scan1.png,edema
    scan2.png,1,1                scan2.png,edema;effusion
    scan3.png,0,0                scan3.png,

The first column names files inside the folder; a path that leads out of it (`..`, an absolute one, a link) is
refused. Either every other column is a label with 0 or 1, or there is
one more column, with names separated by semicolons or bars. A column called `split` has the half of each
picture; without one a seed splits them, labels in proportion to the rarest of each picture.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from torchsite.data.dataset import Dataset
from torchsite.data.folders import held_out
from torchsite.data.imagecache import Listing, read_pictures
from torchsite.data.request import SPLITS, Request
from torchsite.errors import DataError
from torchsite.files import regular
from torchsite.randomness import make_rng
from torchsite.shapes import MultiHot

YES, NO = ("1", "1.0", "true", "yes", "y", "x"), ("0", "0.0", "false", "no", "n", "", "-1", "-1.0")
SPLIT = "split"


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Files, which labels are true of each, and the half of each, if the table has it."""

    files: tuple[str, ...]
    multi_hot: MultiHot
    classes: tuple[str, ...]
    halves: tuple[str, ...] = ()


def read_label_table(path: Path, folder: Path) -> LabelTable:
    """The table in a CSV file about pictures in `folder`; what is wrong is an error that names the line."""
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            header, *lines = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError) as error:
        raise DataError(
            f"{path} cannot be read as a table of labels ({error}): expected a CSV file"
        ) from error
    names = [name.strip() for name in header]
    place = names.index(SPLIT) if SPLIT in names else None
    columns = [i for i in range(1, len(names)) if i != place]
    for number, row in enumerate(lines, start=2):
        if len(row) != len(names):
            raise DataError(f"{path}, line {number}: expected {len(names)} values, got {len(row)}")
        if not _is_inside(row[0].strip(), folder):
            raise DataError(
                f"{path}, line {number}: {row[0]!r} is no file inside {folder}: "
                "name pictures by their path in it"
            )
    if not columns or not lines:
        raise DataError(f"{path}: expected a column of files and columns of labels, got {names}")
    cells = [[row[i].strip() for i in columns] for row in lines]
    if len(columns) == 1 and not all(row[0].lower() in (*YES, *NO) for row in cells):
        classes, multi_hot = _from_names(cells)
    else:
        classes = tuple(names[i] for i in columns)
        multi_hot = [
            [_yes(value, path, number) for value in row] for number, row in enumerate(cells, start=2)
        ]
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise DataError(f"{path}: expected two labels or more, each once, got {list(classes)}")
    halves = () if place is None else tuple(_half(row[place], path) for row in lines)
    return LabelTable(tuple(row[0].strip() for row in lines), torch.tensor(multi_hot), classes, halves)


def load_labelled(folder: Path, table: LabelTable, request: Request) -> Dataset:
    """One half of the pictures of a table, decoded once into the cache."""
    if len(set(table.files)) != len(table.files):
        raise DataError("the table names a file twice: keep one line for each")
    primary, rows = rarest(table.multi_hot), labelled_rows(table, request)
    if not rows:
        raise DataError(f"the table has no picture in the half {request.half!r}: correct its column `split`")
    listing = Listing(
        folder.resolve().name,
        folder,
        tuple(table.files[row] for row in rows),
        tuple(primary[row] for row in rows),
        table.classes,
    )
    place = {file: row for row, file in enumerate(table.files)}
    pictures, kept = read_pictures(listing, request)
    return replace(pictures, multi_hot=table.multi_hot[[place[file] for file in kept.files]])


def rarest(multi_hot: MultiHot) -> list[int]:
    """Of the labels that are true of each picture the one with the fewest pictures; 0 if none is."""
    counts = multi_hot.sum(0).expand(len(multi_hot), -1).masked_fill(~multi_hot, len(multi_hot) + 1)
    found: list[int] = torch.where(multi_hot.any(1), counts.argmin(1), 0).tolist()
    return found


def labelled_rows(table: LabelTable, request: Request) -> list[int]:
    """The rows of a table in the requested half."""
    everything = range(len(table.files))
    if table.halves:
        return [row for row in everything if table.halves[row] == request.half]
    rng = make_rng(request.seed, "split", request.name)
    strata = [
        p if mark else -1
        for p, mark in zip(rarest(table.multi_hot), table.multi_hot.any(1).tolist(), strict=True)
    ]
    test = held_out(strata, table.files, request.holdout, rng)
    return [row for row in everything if (row in test) == (request.half == "test")]


def _from_names(cells: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], list[list[bool]]]:
    sets = [{name.strip() for name in row[0].replace("|", ";").split(";") if name.strip()} for row in cells]
    classes = tuple(sorted(set().union(*sets)))
    return classes, [[name in named for name in classes] for named in sets]


def _is_inside(file: str, folder: Path) -> bool:
    """Whether a path stays in a folder, wherever links lead."""
    if not file or "\0" in file or Path(file).is_absolute() or ".." in Path(file).parts:
        return False
    return (folder / file).resolve().is_relative_to(folder.resolve())


def _yes(value: str, path: Path, number: int) -> bool:
    if value.lower() in YES:
        return True
    if value.lower() in NO:
        return False
    raise DataError(f"{path}, line {number}: expected 0 or 1 for a label, got {value!r}")


def _half(value: str, path: Path) -> str:
    if value.strip().lower() not in SPLITS:
        raise DataError(f"{path}: expected {', '.join(SPLITS)} as a split, got {value!r}")
    return SPLITS[value.strip().lower()]
