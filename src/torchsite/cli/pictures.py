"""Picture files: found in folders, and where what is said of them goes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchsite.errors import DataError


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
