"""Fetch published files over https, and unpack archives: what has its final name is whole.

A download grows beside its target and gets its name when its checksum is the published one. An archive is
unpacked once, into the cache; links, devices and paths that lead outside are refused.
"""

import hashlib
import logging
import shutil
import tarfile
import urllib.request
import zlib
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from torchsite.data.paths import cache_directory, sweep, whole_directory
from torchsite.data.progress import progress_bar
from torchsite.errors import DataError
from torchsite.files import write_atomically

BLOCK = 1 << 18
TIMEOUT = 30.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Remote:
    """A published file: its name, its checksum, and the mirrors that offer it."""

    name: str
    checksum: str
    mirrors: tuple[str, ...]

    @property
    def urls(self) -> tuple[str, ...]:
        """The file's address on every mirror."""
        return tuple(f"{mirror}{self.name}" for mirror in self.mirrors)


def fetch(remote: Remote, folder: Path, *, progress: bool = True) -> Path:
    """The file in `folder`, from the first mirror that offers it whole."""
    target, failures = folder / remote.name, []
    for url in remote.urls:
        if target.is_file():
            return target
        try:
            sweep(folder)
            return write_atomically(target, partial(_download, url, remote.checksum, progress))
        except PermissionError as error:
            raise DataError(
                f"cannot write {target} ({error}): set TORCHSITE_CACHE to a writable directory"
            ) from error
        except (OSError, HTTPException) as error:
            failures.append(f"  {url}: {error}")
    raise DataError("\n".join([f"could not fetch {remote.name}:", *failures]))


def _download(url: str, checksum: str, progress: bool, part: Path) -> None:
    """All of a file; a wrong checksum, also of one that ended early, is an OSError."""
    logger.info("fetching %s", url)
    request = urllib.request.Request(url, headers={"User-Agent": "torchsite"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response, part.open("wb") as out:
        total = response.headers.get("Content-Length")
        title = url.rsplit("/", 1)[-1]
        with progress_bar(title, int(total) if total else None, enabled=progress, bytes_=True) as advance:
            while block := response.read(BLOCK):
                advance(out.write(block))
    with part.open("rb") as whole:
        if (found := digest(whole, checksum)) != checksum:
            raise OSError(f"wrong checksum, expected {checksum}, got {found}; what came was thrown away")


def digest(stream: BinaryIO, like: str) -> str:
    """The checksum of what is left in a stream, written as another is: `md5:…` or `sha256:…`."""
    kind = like.partition(":")[0]
    state = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))  # type: ignore[arg-type]
    return f"{kind}:{state.hexdigest()}"


def unpacked(archive: Path, *, progress: bool = True) -> Path:
    """The directory with the content of a tar archive."""
    status = archive.stat()
    key = hashlib.sha256(
        repr((str(archive.resolve()), status.st_size, status.st_mtime_ns)).encode()
    ).hexdigest()
    target = cache_directory() / "unpacked" / f"{archive.name.split('.')[0]}-{key[:16]}"
    if not target.is_dir():
        with whole_directory(target) as folder:
            _unpack(archive, folder, progress)
    return target


def _unpack(archive: Path, folder: Path, progress: bool) -> None:
    try:
        with (
            archive.open("rb") as stream,
            tarfile.open(fileobj=stream, mode="r|*") as members,
            progress_bar(
                f"unpacking {archive.name}", archive.stat().st_size, enabled=progress, bytes_=True
            ) as advance,
        ):
            before = 0
            for member in members:
                _write_member(members, member, folder, archive)
                advance(stream.tell() - before)
                before = stream.tell()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive} is truncated or damaged ({error}): delete it and fetch it again"
        ) from error


def _write_member(members: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, archive: Path) -> None:
    """Regular files below `folder` only: links, devices and paths that lead outside are refused."""
    path = PurePosixPath(member.name)
    if member.isdir():
        return
    if not member.isfile() or path.is_absolute() or ".." in path.parts or "\\" in member.name:
        raise DataError(
            f"{archive} holds {member.name!r}, which is no plain file inside it: fetch the original"
        )
    if any(part.startswith("._") for part in path.parts):  # what macOS leaves in archives
        return
    content = members.extractfile(member)
    assert content is not None  # it is a regular file
    target = folder.joinpath(*path.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    with content, target.open("wb") as out:
        shutil.copyfileobj(content, out)
