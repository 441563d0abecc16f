"""Fetch published files over https, and unpack archives: what has its final name is whole.

A download grows beside its target and gets its name when its checksum is the published one. An archive is
unpacked once, into the cache; members that would leave their folder, and devices, are refused.
"""

import hashlib
import logging
import sys
import tarfile
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tqdm import tqdm

from torchsite.data.paths import cache_directory, sweep, whole_directory
from torchsite.errors import DataError
from torchsite.files import visible, write_atomically

TIMEOUT = 30.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Remote:
    """A published file: its name, its checksum (`md5:…` or `sha256:…`), and the mirrors that offer it."""

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
        except (OSError, ValueError) as error:
            failures.append(f"  {url}: {error}")
    raise DataError("\n".join([f"could not fetch {remote.name}:", *failures]))


def _download(url: str, checksum: str, progress: bool, part: Path) -> None:
    """Write the file; an OSError if the server fails, a ValueError if the checksum is another."""
    import pooch

    logger.info("fetching %s", url)
    download = pooch.HTTPDownloader(progressbar=progress and sys.stderr.isatty(), timeout=TIMEOUT)
    download(url, str(part), None)
    pooch.hashes.hash_matches(str(part), checksum, strict=True, source=url)


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
    bar = {"desc": f"unpacking {visible(archive.name)}", "disable": None if progress else True}
    try:
        with archive.open("rb") as file:
            stream = tqdm.wrapattr(file, "read", total=archive.stat().st_size, **bar)
            with stream as source, tarfile.open(fileobj=source, mode="r|*") as members:
                members.extractall(folder, filter="data")
    except tarfile.FilterError as error:
        raise DataError(f"{archive} is no archive of plain files ({error}): fetch the original") from error
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(
            f"{archive} is truncated or damaged ({error}): delete it and fetch it again"
        ) from error
