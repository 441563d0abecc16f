import io
import sys

import pytest

from data_makers import write_folder
from torchsite.data import load_dataset


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "progress", "shown"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False)],
)
def test_only_people_at_a_terminal_see_a_bar(monkeypatch, tmp_path, stream, progress, shown):
    folder = write_folder(tmp_path / "pets\x1b[2J")
    monkeypatch.setattr(sys, "stderr", stream)
    load_dataset(folder, size=8, progress=progress)
    assert ("decoding pets\\x1b[2J" in stream.getvalue()) == shown
    assert "\x1b[2J" not in stream.getvalue()


def test_loading_prints_nothing(tmp_path, capfd):
    load_dataset(write_folder(tmp_path / "pets"), size=8)
    assert capfd.readouterr() == ("", "")
