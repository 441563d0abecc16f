"""Find a catalogued data set on disk, or fetch it."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from torchsite.data.archives import unpacked
from torchsite.data.catalogue import CATALOGUE
from torchsite.data.checksums import check_content, content_digest
from torchsite.data.dataset import Dataset
from torchsite.data.download import fetch
from torchsite.data.layout import Entry, Layout
from torchsite.data.paths import cache_directory, search_directories
from torchsite.data.request import Request
from torchsite.errors import ConfigError, DataError

logger = logging.getLogger(__name__)


class Find(NamedTuple):
    """A layout that was found, and where."""

    layout: Layout
    folder: Path
    files: tuple[Path, ...]


def load_published(request: Request) -> Dataset:
    """A catalogued set from disk; from its publisher if it is not there and `download` allows it."""
    entry = CATALOGUE[request.name]
    find = _search(entry, request) or _download(entry, request)
    logger.info("%s: reading %s", request.name, find.folder)
    if request.verify:
        _verify(find, request)
    answer = find.layout.read(find.folder, request)
    if isinstance(answer, Dataset):
        return answer
    return Dataset(*answer, classes=entry.classes, name=request.name, split=request.split)


def missing_message(request: Request, entry: Entry) -> str:
    """What to fetch, from where, and which directory to name."""
    looked = ", ".join(str(place) for place in search_directories(request.data_dir))
    lines = [f"{request.name} ({entry.title}) is not here: looked in {looked}"]
    for layout in entry.layouts:
        names, folders = ", ".join(layout.files(request.half)), ", ".join(layout.folders)
        lines.append(f"  expected {names} in one of: {folders}")
    if entry.archives:
        lines.append(f"  or the archive {' or '.join(entry.archives)}")
    urls = [url for remote in entry.remotes for url in remote.urls[:1]] or [entry.home]
    lines.append(f"  fetch {' '.join(urls)}")
    lines.append("  into a directory, and name it with data_dir=… or the environment variable TORCHSITE_DATA")
    return "\n".join(lines)


def _search(entry: Entry, request: Request) -> Find | None:
    """The first layout, or unpacked archive, in the first directory that has one."""
    for place in search_directories(request.data_dir):
        archives = _archives(entry, place, request)
        find = next(_finds(entry, [place], request), None) or next(_finds(entry, archives, request), None)
        if find is not None:
            return find
    return None


def _finds(entry: Entry, roots: Iterable[Path], request: Request) -> Iterator[Find]:
    for root in roots:
        for layout in entry.layouts:
            for folder in layout.folders:
                files = layout.found(root / folder, request.half)
                if files and not _is_another_set(entry, layout, files, request.half):
                    yield Find(layout, root / folder, files)


def _archives(entry: Entry, place: Path, request: Request) -> Iterator[Path]:
    paths = (place / folder / name for folder in ("", request.name) for name in entry.archives)
    return (unpacked(path, progress=request.progress) for path in paths if path.is_file())


def _is_another_set(entry: Entry, layout: Layout, files: tuple[Path, ...], half: str) -> bool:
    """MNIST and its relatives share file names: the labels, a small file, tell them apart."""
    name = layout.files(half)[-1]
    rivals = [other for other in CATALOGUE.values() if other is not entry]
    known = {rival.checksums.get(name) for other in rivals for rival in other.layouts} - {None}
    return bool(known) and content_digest(files[-1], "sha256") in known


def _verify(find: Find, request: Request) -> None:
    if not find.layout.checksums:
        raise ConfigError(f"{request.name} has no published checksums of its files: call without verify=True")
    for name, path in zip(find.layout.files(request.half), find.files, strict=True):
        check_content(path, find.layout.checksums[name])


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
