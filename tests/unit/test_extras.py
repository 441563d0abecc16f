"""Optional packages: what is there is imported, what is not is asked for by name."""

import sys

import pytest

from torchsite.errors import MissingExtraError
from torchsite.extras import needed


def test_what_is_there_is_imported():
    assert needed("json.decoder", who="a test", install="nothing").JSONDecoder


def test_what_is_missing_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "absent", None)
    with pytest.raises(MissingExtraError) as caught:
        needed("absent.part", who="this file", install="torchsite[more]", package="absent-cpu")
    said = "this file needs absent-cpu, which is not installed: pip install 'torchsite[more]'"
    assert str(caught.value) == said


@pytest.mark.parametrize(
    "error", ["ImportError('no such symbol')", "RuntimeError('no such symbol\\nat all')"]
)
def test_what_cannot_be_imported_is_told_apart(error, tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text(f"raise {error}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"\(no such symbol\)"):
        needed("broken_package", who="this file", install="torchsite[more]")
