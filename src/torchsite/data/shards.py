"""Decode a long list of pictures in shards: files of some thousand pictures, each whole or not there.

A process that is killed leaves its finished shards to the next one. The processes of a distributed run
divide the shards among themselves; one that finds the others silent for long decodes what is missing. In the
end the shards are joined to one file, so that the pictures can be mapped as one tensor.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torchsite.data.decoding import decode_all
from torchsite.files import write_atomically

SHARD = 4096
POLL_SECONDS = 0.2
SILENCE_SECONDS = 600.0


@dataclass(frozen=True)
class Shards:
    """The work of decoding `paths` in a folder for scratch files; `done` tells that somebody has done it."""

    folder: Path
    paths: Sequence[Path]
    decode: Callable[[Path], np.ndarray]
    done: Callable[[], bool]
    title: str
    skip: bool
    progress: bool

    def __len__(self) -> int:
        return -(-len(self.paths) // SHARD)

    def fill(self, environment: Mapping[str, str] = os.environ) -> bool:
        """Decode this process's shards and wait for those of the others; whether it is to join them."""
        rank, ranks = (int(environment.get(name, usual)) for name, usual in (("RANK", 0), ("WORLD_SIZE", 1)))
        for number in range(rank, len(self), ranks):
            if self.done():
                return False
            self._decode(number)
        heard, missing = time.monotonic(), self._missing()
        while missing and not self.done():
            time.sleep(POLL_SECONDS)
            before, missing = missing, self._missing()
            if missing != before:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENCE_SECONDS:
                self._decode(missing[0])
        return rank == 0 and not self.done()

    def join(self, path: Path) -> list[int]:
        """Write all pixels to one file; the rows of the list that they are."""
        kept: list[int] = []
        with path.open("wb") as out:
            for number in range(len(self)):
                with self._pixels(number).open("rb") as shard:
                    shutil.copyfileobj(shard, out, 1 << 22)
                kept += json.loads(self._rows(number).read_text(encoding="utf-8"))
        return kept

    def _decode(self, number: int) -> None:
        if self._rows(number).exists():
            return
        first, kept = number * SHARD, []
        paths = self.paths[first : first + SHARD]
        title = self.title if len(self) == 1 else f"{self.title}, part {number + 1} of {len(self)}"
        pictures = decode_all(paths, self.decode, title=title, skip=self.skip, progress=self.progress)

        def write(part: Path) -> None:
            with part.open("wb") as out:
                for row, picture in enumerate(pictures, start=first):
                    if picture is not None:
                        out.write(picture.tobytes())
                        kept.append(row)

        write_atomically(self._pixels(number), write)
        write_atomically(self._rows(number), json.dumps(kept))  # last: it says that all is there

    def _missing(self) -> list[int]:
        return [number for number in range(len(self)) if not self._rows(number).exists()]

    def _pixels(self, number: int) -> Path:
        return self.folder / f"{number:06d}.bin"

    def _rows(self, number: int) -> Path:
        return self.folder / f"{number:06d}.json"
