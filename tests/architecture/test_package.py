"""What `make package` would build has all it needs and is not too large; the rest is tried out by itself."""

import re
import runpy
import tomllib
import zipfile
import zlib
from pathlib import Path

import pytest

from torchsite.version import __version__

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "package.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = [path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def test_the_metadata_say_what_was_tested():
    project = PROJECT["project"]
    assert [c for c in project["classifiers"] if "Python :: 3." in c] == [
        "Programming Language :: Python :: 3.11"
    ]
    assert project["readme"] == "README.md"
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_the_package_has_its_data():
    assert TOOL["missing"]([str(path.relative_to(ROOT / "src")) for path in FILES]) == []
    assert TOOL["missing"](["torchsite/py.typed"]) == list(TOOL["NEEDED"])[1:]


def test_no_file_of_the_package_is_left_out_by_what_git_ignores():
    pathspec = pytest.importorskip("pathspec")
    ignored = pathspec.PathSpec.from_lines("gitignore", (ROOT / ".gitignore").read_text().splitlines())
    names = [str(path.relative_to(ROOT)) for path in FILES]
    assert [name for name in names if ignored.match_file(name) and ".egg-info" not in name] == []


def test_the_package_stays_below_its_limit():
    """As a wheel packs it: every file compressed by itself."""
    packed = sum(len(zlib.compress(path.read_bytes())) for path in FILES)
    assert 0.5 * sum(path.stat().st_size for path in FILES) < packed < TOOL["MOST_BYTES"]


def test_the_quick_start_is_the_first_code_of_the_readme():
    code = TOOL["quick_start"]((ROOT / "README.md").read_text())
    assert code.startswith("import torchsite as ts\n")
    assert "why.png" in code


def test_an_archive_that_lacks_something_is_refused(tmp_path):
    path = tmp_path / "torchsite-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("torchsite/py.typed", "")
    with pytest.raises(SystemExit, match=r"torchsite/data/mnist_sample\.png"):
        TOOL["check"](path)
    with zipfile.ZipFile(path, "a") as wheel:
        for name in TOOL["NEEDED"][1:]:
            wheel.writestr(name + ("x" if name.endswith("/") else ""), "")
    assert "MB" in TOOL["check"](path)
