"""Files are written whole, with the permissions and in the encoding that they should have."""

import json
import os
import stat

import pytest

from torchsite.data.paths import whole_directory
from torchsite.files import printable, write_atomically
from torchsite.results import Result

NO_TEXT = os.fsdecode(b"caf\xe9")  # what Python makes of a name that is not UTF-8


@pytest.fixture
def mask():
    """Sets the umask for one test."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(("umask", "expected"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_the_umask_is_kept(umask, expected, mask, tmp_path):
    mask(umask)
    paths = [
        write_atomically(tmp_path / "a.txt", "text"),
        write_atomically(tmp_path / "b.bin", lambda path: path.write_bytes(b"bytes")),
    ]
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == expected
    with whole_directory(tmp_path / "cache") as scratch:
        (scratch / "pixels").touch()
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o777 & ~umask


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    path = write_atomically(tmp_path / "a.txt", "before")

    def fail(part):
        part.write_text("half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_atomically(path, fail)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("café", "café"), (NO_TEXT, "caf\\xe9"), (os.fsdecode("日本".encode()), "日本"), ("plain", "plain")],
)
def test_a_name_is_text_that_can_be_written(name, text):
    assert printable(name) == text


def test_text_that_cannot_be_encoded_is_escaped(tmp_path):
    assert write_atomically(tmp_path / "page.html", NO_TEXT).read_bytes() == b"caf\\udce9"
    path = Result("test", {"file": NO_TEXT}, {}, 0, 0.0).save(tmp_path / "result.json")
    assert json.loads(path.read_bytes())["values"] == {"file": NO_TEXT}
