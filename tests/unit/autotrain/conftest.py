import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Every test decodes into a cache of its own."""
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
