"""Fetch a published file over https: resumed if interrupted, checked before it gets its name.

A download grows in a `.part` file beside its target. Only a complete file with the published checksum is
renamed, in one step, so a file that has its final name is a whole one.
"""

import hashlib
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import BinaryIO

from torchsite.data.progress import progress_bar
from torchsite.errors import DataError

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
    target = folder / remote.name
    if target.is_file():
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _part_file(target) as part:
            if target.is_file():  # another process was faster
                Path(part.name).unlink(missing_ok=True)
            else:
                _fetch_from_any(remote, part, progress)
                Path(part.name).replace(target)
    except PermissionError as error:
        raise DataError(
            f"cannot write {target} ({error}): set TORCHSITE_CACHE to a writable directory"
        ) from error
    return target


def digest(stream: BinaryIO, like: str) -> str:
    """The checksum of what is left in a stream, written as another is: `md5:…` or `sha256:…`."""
    kind = like.partition(":")[0]
    state = hashlib.file_digest(stream, lambda: hashlib.new(kind, usedforsecurity=False))  # type: ignore[arg-type]
    return f"{kind}:{state.hexdigest()}"


def _fetch_from_any(remote: Remote, part: BinaryIO, progress: bool) -> None:
    failures = []
    for url in remote.urls:
        try:
            _continue_download(url, part, progress)
        except (OSError, HTTPException) as error:
            failures.append(f"{url}: {error}")
            continue
        part.seek(0)
        if digest(part, remote.checksum) == remote.checksum:
            return
        part.truncate(0)
        failures.append(f"{url}: wrong checksum, expected {remote.checksum}; what came was thrown away")
    reasons = "\n".join(f"  {failure}" for failure in failures)
    raise DataError(f"could not fetch {remote.name}:\n{reasons}")


def _continue_download(url: str, part: BinaryIO, progress: bool) -> None:
    """Append what is missing; a server that cannot resume, or has nothing more, makes us start again."""
    start = part.seek(0, 2)
    try:
        response = _open(url, start)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not start:
            raise
        start, response = 0, _open(url, 0)
    with response:
        if response.status != 206:
            start = 0
        part.truncate(start)
        part.seek(start)
        _copy(response, part, url, start, progress)


def _open(url: str, start: int) -> HTTPResponse:
    request = urllib.request.Request(url, headers={"User-Agent": "torchsite"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    logger.info("fetching %s from byte %d", url, start)
    response: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
    return response


def _copy(response: HTTPResponse, part: BinaryIO, url: str, start: int, progress: bool) -> None:
    announced = response.headers.get("Content-Length")
    total = start + int(announced) if announced else None
    with progress_bar(url.rsplit("/", 1)[-1], total, enabled=progress, bytes_=True) as advance:
        advance(start)
        while block := response.read(BLOCK):
            part.write(block)
            advance(len(block))
    part.flush()
    if total is not None and part.tell() != total:
        raise OSError(f"the connection ended after {part.tell():,} of {total:,} bytes: call again to resume")


@contextmanager
def _part_file(target: Path) -> Iterator[BinaryIO]:
    """The growing file, ours alone: another process that wants the same file waits, then finds it done."""
    with target.with_name(f"{target.name}.part").open("ab+") as part:
        try:
            import fcntl
        except ImportError:  # no such lock on this system: the checksum still guards the result
            yield part
            return
        fcntl.flock(part, fcntl.LOCK_EX)
        yield part
