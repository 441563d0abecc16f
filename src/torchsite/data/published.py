"""Find a catalogued data set on disk, or fetch it."""

import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from torchsite.data.catalogue import CATALOGUE, Entry
from torchsite.data.dataset import Dataset
from torchsite.data.download import fetch, unpacked
from torchsite.data.folders import load_folder
from torchsite.data.formats import open_maybe_gzipped
from torchsite.data.paths import cache_directory, search_directories
from torchsite.data.request import Request
from torchsite.errors import DataError

logger = logging.getLogger(__name__)


class Find(NamedTuple):
    """The folder and the files of a split; no files: those of class folders below it."""

    folder: Path
    files: tuple[Path, ...]


def load_published(request: Request) -> Dataset:
    """A catalogued set from disk; from its publisher if it is not there and `download` allows it."""
    entry = CATALOGUE[request.name]
    find = _search(entry, request) or _download(entry, request)
    logger.info("%s: reading %s", request.name, find.folder)
    if not find.files:
        return _of_class_folders(find.folder, request)
    assert entry.read is not None  # sets that have no reader are loaded elsewhere
    answer = entry.read(find.folder, request)
    if isinstance(answer, Dataset):
        return answer
    return Dataset(*answer, classes=entry.classes, name=request.name, split=request.split)


def _of_class_folders(folder: Path, request: Request) -> Dataset:
    """The pictures of a folder; one whose name ends in `-64px` holds pictures of 64 pixels."""
    side = re.search(r"-(\d+)px$", folder.name)
    if side and request.size is None:
        request = replace(request, size=int(side[1]))
    return replace(load_folder(folder, request), name=request.name)


def missing_message(request: Request, entry: Entry) -> str:
    """What to fetch, from where, and which directory to name."""
    looked = ", ".join(str(place) for place in search_directories(request.data_dir))
    names = ", ".join(entry.files(request.half))
    urls = [url for remote in entry.remotes for url in remote.urls[:1]] or [entry.home]
    lines = [
        f"{request.name} ({entry.title}) is not here: looked in {looked}",
        *([f"  expected {names} in one of: {', '.join(entry.folders)}"] if names else []),
        *(
            [f"  or CLASS/*.jpg in train/ and test/ of: {', '.join(entry.pictures)}"]
            if entry.pictures
            else []
        ),
        *([f"  or the archive {' or '.join(entry.archives)}"] if entry.archives else []),
        f"  fetch {' '.join(urls)}",
        "  into a directory, and name it with data_dir=… or the environment variable TORCHSITE_DATA",
    ]
    return "\n".join(lines)


def _search(entry: Entry, request: Request) -> Find | None:
    """The first usual folder, or unpacked archive, in the first directory that has one."""
    for place in search_directories(request.data_dir):
        for root in chain([place], _archives(entry, place, request)):
            for folder in entry.folders:
                files = entry.found(root / folder, request.half)
                if files and not _is_another_set(entry, files, request.half):
                    return Find(root / folder, files)
        for folder in entry.pictures:
            if (place / folder / "train").is_dir():
                return Find(place / folder, ())
    return None


def _archives(entry: Entry, place: Path, request: Request) -> Iterator[Path]:
    paths = (place / folder / name for folder in ("", request.name) for name in entry.archives)
    return (unpacked(path, progress=request.progress) for path in paths if path.is_file())


def _is_another_set(entry: Entry, files: tuple[Path, ...], half: str) -> bool:
    """MNIST and its relatives share file names: the small label files differ."""
    name = entry.files(half)[-1]
    known = {other.label_checksums.get(name) for other in CATALOGUE.values() if other is not entry} - {None}
    return bool(known) and _content_digest(files[-1]) in known


def _content_digest(path: Path) -> str:
    """The checksum of a file's content: the same whether or not it is gzipped, and however well."""
    try:
        with open_maybe_gzipped(path) as stream:
            found = hashlib.file_digest(stream, "sha256")  # type: ignore[arg-type]  # gzip's files will do
            return found.hexdigest()
    except (OSError, EOFError) as error:
        raise DataError(f"{path} is truncated or damaged ({error}): delete it and fetch it again") from error


def _download(entry: Entry, request: Request) -> Find:
    if not request.download:
        raise DataError(f"{missing_message(request, entry)}\n  or call with download=True")
    try:
        for remote in entry.remotes:
            fetch(remote, cache_directory() / request.name, progress=request.progress)
    except DataError as error:
        raise DataError(f"{error}\n{missing_message(request, entry)}") from error
    find = _search(entry, request)
    if find is None:
        raise DataError(missing_message(request, entry))
    return find
