"""Regions of pictures that a user gives: boxes in a JSON file, or a folder of masks.

    {"birds/owl1.jpg": [[10, 20, 60, 70]], "birds/owl2.jpg": [[0, 0, 32, 16], [96, 0, 128, 16]]}

Boxes are (left, top, right, bottom) in pixels of the upright file, masks are pictures of its size that are
white inside; both are cropped and shrunk as the picture is. A picture is named by the end of its path; a mask
has the name of its picture, with any ending. Pictures of data without files are named by their row.
"""

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageOps

from torchsite.data.dataset import Dataset
from torchsite.data.folders import EXTENSIONS
from torchsite.data.pictures import opened, read_special
from torchsite.errors import DataError
from torchsite.shapes import Masks

ORIENTATION, TURNED = 0x0112, 5  # EXIF: from 5 on, width and height are exchanged
DEEPEST = 4  # folders and file of which a name consists
Draw = Callable[[tuple[int, int]], Image.Image]  # the mask of a picture of (width, height)


def read_regions(path: Path | str, data: Dataset, beside: Dataset | None = None) -> Masks:
    """A mask for each picture as it is kept, True inside; all False where no region is given.

    Regions of pictures in `beside`, such as the other half of a folder, are passed over. Fails if nothing is
    there, if a name belongs to no picture or to several, and for regions that are empty or reach outside of
    their picture.
    """
    path = Path(path)
    given = _masks(path) if path.is_dir() else _boxes(path)
    rows = _rows_by_name(data, path.is_dir())
    elsewhere = _rows_by_name(beside, path.is_dir()) if beside is not None and beside.paths else {}
    found = torch.zeros(len(data), *data.kept.shape[-2:], dtype=torch.bool)
    for name, draw in given.items():
        known = rows.get(name, [])
        if not known and name in elsewhere:
            continue
        if len(known) > 1:
            raise DataError(f"{path}: {len(known)} pictures are called {name!r}: give more of the path")
        if not known:
            near = (
                " or ".join(map(repr, get_close_matches(name, rows, n=2)))
                or f"one such as {next(iter(rows))!r}"
            )
            raise DataError(f"{path}: the data has no picture {name!r}: did you mean {near}?")
        found[known[0]] |= torch.from_numpy(_fitted(draw(_file_size(data, known[0])), data))
    if not found.any():
        raise DataError(f"{path}: no region lies in the part of the pictures that the model sees")
    return found


def _boxes(path: Path) -> Mapping[str, Draw]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"no regions at {path}: expected a JSON file of boxes or a folder of masks") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON file of boxes ({error})") from error
    if not isinstance(given, dict) or not given:
        raise DataError(f'{path}: expected {{"picture.jpg": [[left, top, right, bottom], …], …}}')
    return {name: partial(_drawn, boxes, f"{path}, {name}") for name, boxes in given.items()}


def _drawn(boxes: Any, where: str, size: tuple[int, int]) -> Image.Image:
    mask = Image.new("L", size)
    if not isinstance(boxes, list) or not boxes:
        raise DataError(f"{where}: expected a list of boxes, got {boxes!r}")
    for box in boxes:
        numbers = isinstance(box, list) and len(box) == 4 and all(isinstance(x, int | float) for x in box)
        if not (numbers and 0 <= box[0] < box[2] <= size[0] and 0 <= box[1] < box[3] <= size[1]):
            raise DataError(
                f"{where}: expected [left, top, right, bottom] within {size[0]} × {size[1]} pixels, "
                f"left < right and top < bottom, got {box}"
            )
        left, top, right, bottom = (round(x) for x in box)
        inside = (left, top, max(right - 1, left), max(bottom - 1, top))  # Pillow draws the last pixel too
        ImageDraw.Draw(mask).rectangle(inside, fill=255)
    return mask


def _masks(folder: Path) -> Mapping[str, Draw]:
    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in EXTENSIONS)
    if not files:
        raise DataError(f"no masks in {folder}: expected files ending in {', '.join(EXTENSIONS)}")
    return {file.relative_to(folder).with_suffix("").as_posix(): partial(_read, file) for file in files}


def _read(file: Path, size: tuple[int, int]) -> Image.Image:
    with opened(file) as picture:
        mask = ImageOps.exif_transpose(picture).convert("L")
    if mask.size != size:
        raise DataError(f"{file}: expected a mask of {size[0]} × {size[1]} pixels, got {mask.size}")
    if not np.any(np.asarray(mask) > 127):
        raise DataError(f"{file}: the mask is empty: make the region white, or remove the file")
    return mask


def _fitted(mask: Image.Image, data: Dataset) -> np.ndarray:
    """The mask as its picture is kept: its centre, at the working size."""
    if not data.paths:
        return np.asarray(mask) > 127
    side = data.kept.shape[-1]
    return np.asarray(ImageOps.fit(mask, (side, side), Image.Resampling.BOX)) > 127


def _file_size(data: Dataset, row: int) -> tuple[int, int]:
    if not data.paths:
        return data.size[1], data.size[0]
    stack = read_special(data.paths[row])
    if stack is not None:
        return stack.shape[-1], stack.shape[-2]
    with opened(data.paths[row]) as file:
        turned = file.getexif().get(ORIENTATION, 1) >= TURNED
        return (file.size[1], file.size[0]) if turned else file.size


def _rows_by_name(data: Dataset, without_ending: bool) -> Mapping[str, list[int]]:
    """The rows of the pictures whose path ends so."""
    names = [path.with_suffix("") if without_ending else path for path in data.paths]
    rows: dict[str, list[int]] = {}
    for row, parts in enumerate([path.parts for path in names] or ((str(n),) for n in range(len(data)))):
        for n in range(1, min(DEEPEST, len(parts)) + 1):
            rows.setdefault("/".join(parts[-n:]), []).append(row)
    return rows
