"""Decoding in shards: resumed after a kill, divided among processes, one file in the end."""

import json
import threading

import numpy as np
import pytest
import torch

from data_makers import write_folder
from torchsite.data import imagecache, load_dataset, shards
from torchsite.data.shards import Shards
from torchsite.errors import DataError


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "SHARD", 3)
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.01)


def number(path):
    """A picture that shows the number of its file."""
    return np.full((1, 2, 2), int(path.stem), np.uint8)


def make(tmp_path, n, decode=number, skip=False):
    (tmp_path / "shards").mkdir(exist_ok=True)
    paths = [tmp_path / f"{i}.png" for i in range(n)]
    return Shards(tmp_path / "shards", paths, decode, lambda: False, "decoding", skip, progress=False)


@pytest.mark.parametrize("n", [1, 3, 4, 10])
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_processes_divide_the_shards_and_the_file_is_the_same(tmp_path, small_shards, n, ranks):
    decoded, lock = [], threading.Lock()

    def watched(path):
        with lock:
            decoded.append(path.name)
        return number(path)

    joins = {}

    def work(rank):
        joins[rank] = make(tmp_path, n, watched).fill({"RANK": str(rank), "WORLD_SIZE": str(ranks)})

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert joins == {rank: rank == 0 for rank in range(ranks)}
    assert sorted(decoded) == sorted(f"{i}.png" for i in range(n)), "each picture is decoded once"
    kept = make(tmp_path, n).join(tmp_path / "pixels.bin")
    assert kept == list(range(n))
    assert (tmp_path / "pixels.bin").read_bytes() == b"".join(bytes([i]) * 4 for i in range(n))


def test_finished_shards_are_not_decoded_again(tmp_path, small_shards):
    def until_seven(path):
        if path.stem == "7":
            raise KeyboardInterrupt
        return number(path)

    with pytest.raises(KeyboardInterrupt):
        make(tmp_path, 10, until_seven).fill({})
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == [
        "000000.bin",
        "000000.json",
        "000001.bin",
        "000001.json",
    ]

    def from_six(path):
        assert int(path.stem) >= 6
        return number(path)

    make(tmp_path, 10, from_six).fill({})
    assert len(make(tmp_path, 10).join(tmp_path / "pixels.bin")) == 10


def test_a_silent_process_is_not_waited_for(tmp_path, small_shards, monkeypatch):
    monkeypatch.setattr(shards, "SILENCE_SECONDS", 0.03)
    assert make(tmp_path, 10).fill({"RANK": "0", "WORLD_SIZE": "2"})
    assert make(tmp_path, 10).join(tmp_path / "pixels.bin") == list(range(10))


def test_what_cannot_be_read_is_left_out(tmp_path, small_shards):
    def picky(path):
        if int(path.stem) % 2:
            raise shards.decode_all.__globals__["UnreadableImageError"]("odd")
        return number(path)

    made = make(tmp_path, 10, picky, skip=True)
    made.fill({})
    assert made.join(tmp_path / "pixels.bin") == [0, 2, 4, 6, 8]
    assert (tmp_path / "pixels.bin").stat().st_size == 5 * 4


def test_a_folder_is_the_same_in_one_shard_and_in_many(tmp_path, monkeypatch):
    root = write_folder(tmp_path / "pets" / "train", n=8).parent
    (root / "train" / "cat" / "3.png").write_bytes(b"broken")
    whole = load_dataset(root, size=8, skip_unreadable=True)
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(shards, "SHARD", 5)
    parts = load_dataset(root, size=8, skip_unreadable=True)
    assert torch.equal(parts.images, whole.images)
    assert torch.equal(parts.labels, whole.labels)
    assert parts.skipped == 1
    (cache,) = (tmp_path / "other" / "pictures").iterdir()
    assert sorted(path.name for path in cache.iterdir()) == ["about.json", "pixels.bin"]
    assert json.loads((cache / "about.json").read_text())["shape"] == [15, 3, 8, 8]


def test_the_other_processes_wait_for_the_first(tmp_path, monkeypatch):
    root, found = write_folder(tmp_path / "pets" / "train", n=8).parent, []
    monkeypatch.setattr(shards, "SHARD", 5)
    monkeypatch.setattr(shards, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    waiting = threading.Thread(target=lambda: found.append(load_dataset(root, size=8)))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    monkeypatch.setenv("RANK", "0")
    first = load_dataset(root, size=8)
    waiting.join()
    assert torch.equal(found[0].images, first.images)


def test_a_first_process_that_never_comes_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(imagecache, "SILENCE_SECONDS", 0.0)
    made = make(tmp_path, 3)
    made.folder.rmdir()
    with pytest.raises(DataError, match="was not made by the first process"):
        imagecache._wait(tmp_path / "nothing", made)
