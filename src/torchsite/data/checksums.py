"""Checksums of files, written as `md5:…` or `sha256:…` because publishers use both."""

import hashlib
from pathlib import Path
from typing import BinaryIO

from torchsite.data.idx import open_maybe_gzipped
from torchsite.errors import DataError

BLOCK = 1 << 20


def digest(stream: BinaryIO, kind: str) -> str:
    """The checksum of what is left in a stream."""
    state = hashlib.new(kind, usedforsecurity=False)
    while block := stream.read(BLOCK):
        state.update(block)
    return f"{kind}:{state.hexdigest()}"


def file_matches(path: Path, expected: str) -> bool:
    """Whether a file is, byte by byte, the published one."""
    with path.open("rb") as stream:
        return digest(stream, expected.partition(":")[0]) == expected


def content_digest(path: Path, kind: str) -> str:
    """The checksum of a file's content: the same whether or not it is gzipped, and however well."""
    try:
        with open_maybe_gzipped(path) as stream:
            return digest(stream, kind)
    except (OSError, EOFError) as error:
        raise DataError(f"{path} is truncated or damaged ({error}): delete it and fetch it again") from error


def check_content(path: Path, expected: str) -> None:
    """An error unless the file's content is the published one."""
    found = content_digest(path, expected.partition(":")[0])
    if found != expected:
        raise DataError(
            f"{path} differs from the published file: expected {expected}, got {found}: "
            "delete it and fetch it again"
        )
