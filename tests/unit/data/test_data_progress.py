import io
import sys

import pytest

from data_makers import write_folder
from torchsite.data import load_dataset
from torchsite.data.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "enabled", "shown"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_only_people_at_a_terminal_see_a_bar(monkeypatch, stream, enabled, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("unpacking", 10, enabled=enabled) as advance:
        advance(10)
    assert ("unpacking" in stream.getvalue()) == shown


def test_loading_prints_nothing(tmp_path, capfd):
    load_dataset(write_folder(tmp_path / "pets"), size=8)
    assert capfd.readouterr() == ("", "")
