"""The vocabulary of the catalogue: what a published data set is, and the ways it lies on disk."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchsite.data.dataset import Dataset
from torchsite.data.download import Remote
from torchsite.data.idx import find_idx
from torchsite.data.request import Request
from torchsite.shapes import Labels, Pixels

Read = Callable[[Path, Request], tuple[Pixels, Labels] | Dataset]


@dataclass(frozen=True)
class Layout:
    """One usual way to lay out a set: folders below a data directory, the files of a split, the reader."""

    folders: tuple[str, ...]
    files: Callable[[str], tuple[str, ...]]
    read: Read
    checksums: Mapping[str, str] = field(default_factory=dict)

    def found(self, folder: Path, half: str) -> tuple[Path, ...] | None:
        """The files of a split in `folder`, if all are there."""
        paths = [find_idx(folder, name) for name in self.files(half)]
        present = [path for path in paths if path is not None]
        return tuple(present) if len(present) == len(paths) else None


@dataclass(frozen=True)
class Entry:
    """A published data set: its classes, its layouts, its original archives, and where to fetch it."""

    title: str
    classes: tuple[str, ...]
    home: str
    layouts: tuple[Layout, ...] = ()
    archives: tuple[str, ...] = ()
    remotes: tuple[Remote, ...] = ()
