"""Where data sets are looked for, in order, and the cache: the one directory that torchsite writes to."""

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from torchsite.errors import DataError

STALE_SECONDS = 7 * 24 * 3600
SYSTEM = Path("/usr/share/datasets")
"""Where Linux distributions install data sets (Debian's `dataset-fashion-mnist`, for one)."""


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """`TORCHSITE_CACHE`, else `torchsite` in `XDG_CACHE_HOME`, else in `~/.cache`."""
    if chosen := environment.get("TORCHSITE_CACHE"):
        return Path(chosen).expanduser()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "torchsite"


def search_directories(
    data_dir: Path | None, environment: Mapping[str, str] = os.environ
) -> tuple[Path, ...]:
    """The explicit directory, `TORCHSITE_DATA`, the cache, then the system's own, without repetition."""
    found = [_existing(data_dir, "data_dir")] if data_dir is not None else []
    if named := environment.get("TORCHSITE_DATA"):
        found.append(_existing(Path(named), "TORCHSITE_DATA"))
    return tuple(dict.fromkeys([*found, cache_directory(environment), SYSTEM]))


@contextmanager
def whole_directory(target: Path) -> Iterator[Path]:
    """A scratch directory that becomes `target` in one step if all goes well, and vanishes if not."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep(target.parent)
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


def sweep(folder: Path) -> None:
    """Remove what processes that were killed long ago have left half written."""
    for path in folder.glob(".*"):
        with suppress(OSError):  # its owner may remove it at this moment
            if time.time() - path.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _existing(folder: Path, origin: str) -> Path:
    folder = folder.expanduser()
    if not folder.is_dir():
        raise DataError(f"{origin} names {folder}, which is not a directory: create it or name another")
    return folder
