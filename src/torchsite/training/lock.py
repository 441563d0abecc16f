"""One run at a time in a folder.

The lock is the operating system's, so it ends with the process that holds it, however that ends: what a
killed process left behind stands in nobody's way.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from torchsite.distributed import is_first, notes_of_all_ranks
from torchsite.errors import ConfigError
from torchsite.files import write_atomically

LOCK, HOLDER = ".lock", ".lock-holder"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for the processes of one run; an error in all of them if another run holds it."""
    lock = FileLock(folder / LOCK)
    refused = notes_of_all_ranks(_take(lock, folder) if is_first() else "")[0]
    if refused:
        raise ConfigError(refused)
    try:
        yield
    finally:
        lock.release()


def _take(lock: FileLock, folder: Path) -> str:
    """Take the lock and say who has it; if another process has it, the words of the error."""
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / HOLDER
    try:
        lock.acquire(blocking=False)
    except Timeout:
        other = holder.read_text(encoding="utf-8").strip() if holder.is_file() else "another process"
        return f"{folder} is in use by {other}: wait until it ends, or name another folder"
    write_atomically(holder, f"process {os.getpid()} on {platform.node()}\n")
    return ""
