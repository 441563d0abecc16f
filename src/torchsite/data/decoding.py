"""Decode many pictures at once: Pillow frees the interpreter while it works, so threads are enough."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from torchsite.data.pictures import UnreadableImageError
from torchsite.data.progress import progress_bar

CHUNK = 256
Picture = TypeVar("Picture")


def decode_all(
    paths: Sequence[Path], decode: Callable[[Path], Picture], *, title: str, skip: bool, progress: bool
) -> Iterator[Picture | None]:
    """The pictures in order; None for an unreadable one if `skip` allows it, else its error."""
    attempt = partial(_or_none, decode) if skip else decode
    with (
        ThreadPoolExecutor(max_workers=os.cpu_count()) as pool,
        progress_bar(title, len(paths), enabled=progress) as advance,
    ):
        for start in range(0, len(paths), CHUNK):
            for picture in pool.map(attempt, paths[start : start + CHUNK]):
                advance(1)
                yield picture


def _or_none(decode: Callable[[Path], Picture], path: Path) -> Picture | None:
    try:
        return decode(path)
    except UnreadableImageError:
        return None
