"""Where data sets are looked for, in order, and the one directory that torchsite writes to."""

import os
from collections.abc import Mapping
from pathlib import Path

from torchsite.errors import DataError

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


def _existing(folder: Path, origin: str) -> Path:
    folder = folder.expanduser()
    if not folder.is_dir():
        raise DataError(f"{origin} names {folder}, which is not a directory: create it or name another")
    return folder
