"""Files written whole or not at all, and read only if they are regular; names and tables safe to show."""

import csv
import io
import os
import stat
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
FORMULA = ("=", "+", "-", "@", "\t", "\r")


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


def csv_table(rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV. Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def visible(text: str) -> str:
    """The text with control characters written as escapes: a file's name may contain any."""
    return text.translate(CONTROL)


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(FORMULA) else visible(value)


def printable(name: str) -> str:
    """The name of a file as text, whatever the locale: UTF-8, with other bytes as escapes such as `\\xe9`."""
    return os.fsencode(name).decode(errors="backslashreplace")


def regular(path: Path) -> Path:
    """The path, if a regular file is there, directly or behind links; else an OSError.

    Opening a pipe waits for somebody to write to it, reading a device may never end.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(f"{path} is no regular file but a folder, a pipe or a device: give a file")
    return path
