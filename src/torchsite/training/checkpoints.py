"""Checkpoints that survive a kill at any time.

A checkpoint is written to a temporary file and renamed once, to a name that carries its checksum; only then
are older ones deleted. A damaged newest one is noticed when the run resumes, and the one before is used.
"""

import hashlib
import io
import logging
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchsite.distributed import highest_of_ranks
from torchsite.errors import StoppedError, TrainingError

if TYPE_CHECKING:
    from torchsite.training.loop import Run

log = logging.getLogger(__name__)
CHECKPOINT = re.compile(r"(?P<number>\d{8})-(?P<digest>[0-9a-f]{16})\.ckpt")
FORMAT = 2
KEPT = 2


class Checkpoints:
    """Writes the whole state of a run every so many seconds, at its end, and on a signal to stop.

    SIGTERM, which schedulers send before they kill, and SIGINT (Ctrl+C) let the running step end; then the
    state is written and `StoppedError` raised, on all ranks if one of them got the signal. A second Ctrl+C
    interrupts at once.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.told_to_stop = 0  # the number of the signal
        self.folder, self.seconds = folder / "checkpoints", seconds
        self.started = self.written = time.monotonic()
        self.spent_before = 0.0
        self.saved_steps = -1

    @property
    def seconds_spent(self) -> float:
        """How long the run has taken, the time before it was resumed included."""
        return self.spent_before + time.monotonic() - self.started

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle SIGTERM and SIGINT for a while; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _: Any) -> None:
        if number == self.told_to_stop == signal.SIGINT:
            raise KeyboardInterrupt
        self.told_to_stop = number

    def save_if_due(self, run: "Run", *, at_end: bool = False) -> None:
        """Save if it is time, on all ranks together; raise `StoppedError` if one got a signal to stop."""
        due = at_end or time.monotonic() - self.written >= self.seconds
        wish = int(highest_of_ranks(self.told_to_stop or due))  # a signal's number is more than 1
        if wish:
            self.save(run)
        if wish > 1:
            raise StoppedError(
                f"told to stop ({signal.Signals(wish).name}) after step {run.steps_done}: the state of the "
                f"run is in {self.folder}, go on with resume=True (on the command line: --resume)",
                wish,
            )

    def save(self, run: "Run") -> None:
        """Write a checkpoint unless this step's is there, and keep the one before."""
        if self.saved_steps == run.steps_done:
            return
        temporary = self.folder / "writing.part"
        try:
            if run.fabric.is_global_zero:
                self.folder.mkdir(parents=True, exist_ok=True)
                content = io.BytesIO()  # with a file, torch hides the reason why it could not write
                torch.save({"format": FORMAT, "seconds": self.seconds_spent, **run.state_dict()}, content)
                temporary.write_bytes(content.getbuffer())
                publish(temporary)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise TrainingError(
                f"no checkpoint could be written to {self.folder} ({error}): make room, then go on with "
                f"resume=True from the checkpoint before"
            ) from error
        run.fabric.barrier()
        self.written, self.saved_steps = time.monotonic(), run.steps_done

    def restore(self, run: "Run", path: Path) -> None:
        """Go on from a checkpoint as if never interrupted."""
        state = run.fabric.load(path, weights_only=True)
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise TrainingError(
                f"{path} was written by another version of torchsite, whose runs this one cannot go on with: "
                f"finish the run with that version, or begin again in another folder"
            )
        self.spent_before, self.saved_steps = state["seconds"], state["steps_done"]
        run.load_state_dict(state)


def publish(temporary: Path) -> Path:
    """Rename a finished file to be the newest checkpoint, then delete all but the last ones."""
    folder, earlier = temporary.parent, checkpoints(temporary.parent)
    number = int(earlier[0].name[:8]) + 1 if earlier else 0
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    path = folder / f"{number:08d}-{_digest(temporary)}.ckpt"
    temporary.replace(path)
    for old in earlier[KEPT - 1 :]:
        old.unlink()
    return path


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, whole or not, newest first."""
    return sorted((path for path in folder.glob("*.ckpt") if CHECKPOINT.fullmatch(path.name)), reverse=True)


def last_checkpoint(folder: Path) -> Path | None:
    """The newest checkpoint of a run that is whole; an error if there are some but none is whole."""
    found = checkpoints(folder / "checkpoints")
    for path in found:
        if _digest(path) in path.name:
            return path
        log.warning("%s is damaged (its checksum differs); trying the one before", path)
    if found:
        raise TrainingError(
            f"all checkpoints in {found[0].parent} are damaged: begin again in another folder"
        )
    return None


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:16]
