"""Models, data and picture files as the commands name them, at the size that the model takes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchsite.errors import DataError, NotApplicableError

if TYPE_CHECKING:
    from torchsite.data import Dataset
    from torchsite.model import SITE, BlackBox


def open_model(name: str) -> "SITE | BlackBox":
    """A saved SITE model or black box; any other kind is an error."""
    from torchsite.model import load_classifier

    return load_classifier(name)


def open_site(name: str) -> "SITE":
    """A model that explains itself; a black box is an error."""
    from torchsite.model import SITE

    loaded = open_model(name)
    if not isinstance(loaded, SITE):
        raise NotApplicableError(
            f"{name!r} is a black box, which has no explanation of its own: use `compare`"
        )
    return loaded


def open_data(name: str, split: str, model: "SITE | BlackBox") -> "Dataset":
    """A data set or a folder, its pictures at the size that the model takes."""
    from torchsite.data import CATALOGUE, load_dataset

    _, height, width = model.config.image_shape
    margin = 1.0 if name in CATALOGUE else model.config.margin
    return load_dataset(name, split, size=height if height == width else None, margin=margin)


def training_data(model_name: str, data: str, model: "SITE | BlackBox") -> "Dataset | None":
    """The training half of `data`, if `run.json` of the model's run names it."""
    path = Path(model_name).resolve().parent / "run.json"
    if not (Path(model_name).is_dir() and path.is_file()):
        return None
    trained_on = json.loads(path.read_text(encoding="utf-8")).get("data", {}).get("name")
    return open_data(data, "train", model) if trained_on == Path(data).resolve().name else None


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class Task:
    """A picture, and the file to be written about it."""

    picture: Path
    target: Path


def plan(pictures: Sequence[Path], out: Path, ending: str) -> list[Task]:
    """What to read and what to write; no file is written twice, and no picture is written over.

    The tree of a folder is kept; where two pictures would be written to the same place, the later one gets a
    number.
    """
    found = [(path, inside) for given in pictures for path, inside in _pictures_at(given)]
    taken = {path.resolve() for path, _ in found}
    tasks = []
    for path, inside in found:
        target = _free(out / inside.with_suffix(f".{ending}"), taken)
        taken.add(target.resolve())
        tasks.append(Task(path, target))
    return tasks


def _pictures_at(path: Path) -> list[tuple[Path, Path]]:
    """The pictures of a file or folder, with their places inside it."""
    from torchsite.data.folders import EXTENSIONS

    if path.is_file():
        return [(path, Path(path.name))]
    if not path.is_dir():
        raise DataError(f"no picture at {path}: expected a file or a folder")
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in EXTENSIONS and file.is_file())
    shown = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    if not shown:
        raise DataError(f"no pictures in {path}: expected files ending in {', '.join(EXTENSIONS)}")
    return [(file, file.relative_to(path)) for file in shown]


def _free(path: Path, taken: set[Path]) -> Path:
    """The path, or the first numbered neighbour that no other picture has."""
    candidate, number = path, 1
    while candidate.resolve() in taken:
        number += 1
        candidate = path.with_stem(f"{path.stem}-{number}")
    return candidate
