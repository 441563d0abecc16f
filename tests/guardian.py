"""Waits until a run of tests is gone, and kills all processes that carry its mark: see `children`."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

MARK = "TORCHSITE_TEST_RUN"
PROC = Path("/proc")
PAUSE = 0.5


def marked(mark):
    """The processes that carry a mark; those that have ended carry none."""
    found = set()
    for folder in PROC.iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.add(int(folder.name))
    return found


def is_running(pid):
    """Whether a process is there and has not ended: a zombie has."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def guard(mark, parent):
    """Wait until the run is gone; then kill all that is left of it."""
    while os.getppid() == parent:
        time.sleep(PAUSE)
    while left := marked(mark):
        kill(left)
        time.sleep(PAUSE)


if __name__ == "__main__":
    guard(sys.argv[1], int(sys.argv[2]))
