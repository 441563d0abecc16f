import os

import pytest

from torchsite.data import paths


@pytest.fixture(autouse=True)
def apart(request, monkeypatch, tmp_path):
    """Every test has a cache of its own and sees nothing of the machine's data, except the real-data ones."""
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    if request.node.get_closest_marker("real_data"):
        if not os.environ.get("TORCHSITE_DATA"):
            pytest.skip("TORCHSITE_DATA is not set: name the directory with the full data sets")
        return
    monkeypatch.delenv("TORCHSITE_DATA", raising=False)
    monkeypatch.setattr(paths, "SYSTEM", tmp_path / "no-system-data")
