"""Files that are written whole or not at all, and names of files as text that can always be written."""

import os
import uuid
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, content: bytes | str | Callable[[Path], None]) -> Path:
    """Write bytes or text (or let a function write a file) beside `path`, then rename: all or nothing.

    The file gets the permissions that the umask leaves. Text becomes UTF-8; what UTF-8 cannot hold (parts of
    file names that are not text) is written as an escape.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        if callable(content):
            content(temporary)
        else:
            content = content.encode(errors="backslashreplace") if isinstance(content, str) else content
            temporary.write_bytes(content)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def printable(name: str) -> str:
    """The name of a file as text, whatever the locale: UTF-8, with other bytes as escapes such as `\\xe9`."""
    return os.fsencode(name).decode(errors="backslashreplace")
