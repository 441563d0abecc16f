"""Unpack the original archives, once, into the cache: safely, and all or nothing."""

import hashlib
import shutil
import tarfile
import time
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from torchsite.data.paths import cache_directory
from torchsite.data.progress import progress_bar
from torchsite.errors import DataError

STALE_SECONDS = 7 * 24 * 3600


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


@contextmanager
def whole_directory(target: Path) -> Iterator[Path]:
    """A scratch directory that becomes `target` in one step if all goes well, and vanishes if not."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        scratch = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        scratch.mkdir()
    except OSError as error:
        raise DataError(
            f"cannot write to the cache in {target.parent} ({error}): "
            "set TORCHSITE_CACHE to a writable directory"
        ) from error
    try:
        yield scratch
        scratch.replace(target)
    except OSError as error:
        if not target.is_dir():  # else another process finished first, with the same content
            raise DataError(
                f"cannot write {target} ({error}): free space or set TORCHSITE_CACHE to another directory"
            ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove scratch directories that processes which were killed long ago have left."""
    for path in folder.glob(".*"):
        with suppress(OSError):  # its owner may remove it at this moment
            if path.is_dir() and time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path)


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
