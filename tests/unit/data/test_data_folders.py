import json
import os
import threading

import numpy as np
import pytest
import torch

from data_makers import picture, write_folder
from torchsite.data import imagecache, load_dataset
from torchsite.errors import ConfigError, DataError


def caches(tmp_path):
    folder = tmp_path / "cache" / "pictures"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_train_and_test_folders(tmp_path):
    root = tmp_path / "pets"
    write_folder(root / "train", n=4)
    write_folder(root / "test", n=2)
    train, test = (load_dataset(root, split, size=16) for split in ("train", "test"))
    assert train.images.shape == (8, 3, 16, 16)
    assert train.labels.tolist() == [0, 1] * 4, "classes take turns"
    assert (test.name, test.classes, test.counts) == ("pets", ("cat", "dog"), (2, 2))
    assert train.images[train.labels == 1, 0].unique().tolist() == [40]


@pytest.mark.parametrize("name", ["val", "valid", "validation"])
def test_validation_by_any_name(tmp_path, name):
    write_folder(tmp_path / "train")
    write_folder(tmp_path / name, n=1)
    for split in ("test", "val", "valid", "validation"):
        assert len(load_dataset(tmp_path, split, size=8)) == 2


def test_a_folder_is_known_by_its_name_in_a_data_directory(tmp_path, monkeypatch):
    write_folder(tmp_path / "data" / "pets" / "train")
    write_folder(tmp_path / "data" / "pets" / "test")
    assert len(load_dataset("pets", "test", data_dir=tmp_path / "data", size=8)) == 10
    monkeypatch.setenv("TORCHSITE_DATA", str(tmp_path / "data"))
    assert len(load_dataset("pets", size=8)) == 10


def test_a_seed_splits_what_has_no_split(tmp_path):
    write_folder(tmp_path / "pets", n=10)

    def files(split, seed):
        data = load_dataset(tmp_path / "pets", split, size=8, seed=seed)
        assert set(data.counts) == {8 if split == "train" else 2}
        return {tuple(pixel) for pixel in data.images[:, :, 0, 0].tolist()}

    assert files("train", 1) | files("test", 1) == files("train", 2) | files("test", 2)
    assert not files("train", 1) & files("test", 1)
    assert files("test", 1) == files("test", 1)
    assert files("test", 1) != files("test", 2)


def test_a_class_may_be_called_train(tmp_path):
    write_folder(tmp_path, ("bus", "train", "tram"))
    assert load_dataset(tmp_path, size=8).classes == ("bus", "train", "tram")


def test_decoded_once_and_again_after_a_change(tmp_path, monkeypatch):
    root = write_folder(tmp_path / "pets" / "train").parent
    first = load_dataset(root, size=8)
    monkeypatch.setattr(imagecache, "decode", None)
    assert torch.equal(load_dataset(root, size=8).images, first.images)
    monkeypatch.undo()
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    picture((255, 255, 255)).save(root / "train" / "cat" / "0.png")
    os.utime(root / "train" / "cat" / "0.png", ns=(1, 1))
    assert load_dataset(root, size=8).images[0].min() == 255
    assert load_dataset(root, size=12).images.shape[-1] == 12
    assert len(caches(tmp_path)) == 3


def test_the_pixels_are_mapped_and_changes_stay_private(tmp_path):
    root = write_folder(tmp_path / "pets" / "train").parent
    data = load_dataset(root, size=8)
    data.images.fill_(7)
    assert load_dataset(root, size=8).images.max() != 7


def test_a_damaged_cache_is_made_again(tmp_path):
    root = write_folder(tmp_path / "pets" / "train").parent
    first = load_dataset(root, size=8).images.clone()
    (cache,) = (tmp_path / "cache" / "pictures").iterdir()
    for damage in (b"", b"{", json.dumps({"shape": [10, 3, 8, 9], "kept": []}).encode()):
        (cache / "about.json").write_bytes(damage)
        assert torch.equal(load_dataset(root, size=8).images, first)
    (cache / "pixels.bin").write_bytes(b"short")
    assert torch.equal(load_dataset(root, size=8).images, first)


def test_many_at_once_share_one_cache(tmp_path):
    root, results = write_folder(tmp_path / "pets" / "train").parent, []
    threads = [threading.Thread(target=lambda: results.append(load_dataset(root, size=8))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(torch.equal(result.images, results[0].images) for result in results)
    assert len(caches(tmp_path)) == 1


def test_an_unreadable_picture_is_named_or_skipped_and_counted(tmp_path):
    root = write_folder(tmp_path / "pets" / "train").parent
    (root / "train" / "cat" / "3.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"cat/3\.png"):
        load_dataset(root, size=8)
    assert caches(tmp_path) == []
    data = load_dataset(root, size=8, skip_unreadable=True)
    assert (len(data), data.skipped, data.counts) == (9, 1, (4, 5))
    assert "1 unreadable skipped" in data.summary()
    with pytest.raises(DataError, match=r"cat/3\.png"):
        load_dataset(root, size=8)


def test_a_class_without_a_readable_picture_is_an_error(tmp_path):
    root = write_folder(tmp_path / "pets" / "train", n=1).parent
    (root / "train" / "cat" / "0.png").write_bytes(b"broken")
    with pytest.raises(DataError, match="cat"):
        load_dataset(root, size=8, skip_unreadable=True)
    (root / "train" / "dog" / "0.png").write_bytes(b"broken")
    with pytest.raises(DataError):
        load_dataset(root, size=8, skip_unreadable=True)


def test_a_crash_leaves_no_half_written_cache(tmp_path, monkeypatch):
    root = write_folder(tmp_path / "pets" / "train").parent

    def crash(path, size, channels):
        if path.name == "4.png":
            raise KeyboardInterrupt
        return np.zeros((3, size, size), np.uint8)

    monkeypatch.setattr(imagecache, "decode", crash)
    with pytest.raises(KeyboardInterrupt):
        load_dataset(root, size=8)
    assert caches(tmp_path) == []


def test_a_full_disk_leaves_no_half_written_cache(tmp_path, monkeypatch):
    root = write_folder(tmp_path / "pets" / "train").parent

    def full(path, size, channels):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(imagecache, "decode", full)
    with pytest.raises(DataError, match="No space left"):
        load_dataset(root, size=8)
    assert caches(tmp_path) == []


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="TORCHSITE_CACHE"):
        load_dataset(write_folder(tmp_path / "pets"), size=8)


def test_old_scratch_directories_are_swept(tmp_path):
    old = tmp_path / "cache" / "pictures" / ".killed.abc"
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    load_dataset(write_folder(tmp_path / "pets"), size=8)
    assert not old.exists()


def test_bad_folders(tmp_path):
    with pytest.raises(DataError):
        load_dataset(tmp_path / "nowhere")
    (tmp_path / "flat").mkdir()
    picture().save(tmp_path / "flat" / "0.png")
    with pytest.raises(DataError):
        load_dataset(tmp_path / "flat")
    write_folder(tmp_path / "one", ("only",))
    with pytest.raises(DataError, match="'only'"):
        load_dataset(tmp_path / "one")
    write_folder(tmp_path / "empty")
    (tmp_path / "empty" / "bird").mkdir()
    with pytest.raises(DataError, match="bird"):
        load_dataset(tmp_path / "empty")
    write_folder(tmp_path / "half" / "train")
    with pytest.raises(DataError, match="'test'"):
        load_dataset(tmp_path / "half", "test")
    write_folder(tmp_path / "half" / "test", ("cat", "dog", "eel"))
    with pytest.raises(DataError, match=r"\(eel\)"):
        load_dataset(tmp_path / "half", "test")
    with pytest.raises(ConfigError, match="holdout"):
        load_dataset(tmp_path / "half", holdout=1.5)


def test_a_class_missing_from_the_test_half_keeps_the_labels(tmp_path):
    write_folder(tmp_path / "train", ("ant", "bee", "cat"))
    write_folder(tmp_path / "test", ("bee", "cat"), n=1)
    assert load_dataset(tmp_path, "test", size=8).labels.tolist() == [1, 2]


def test_what_is_no_picture_is_passed_over(tmp_path):
    root = tmp_path / "pets"
    write_folder(root, n=2)
    for name in (".hidden.png", "._cat.png", "notes.txt", "Thumbs.db"):
        (root / "cat" / name).write_text("x")
    (root / ".git").mkdir()
    (root / "__MACOSX").mkdir()
    picture().save(root / "cat" / "UPPER.PNG")
    data = load_dataset(root, size=8)
    assert data.classes == ("cat", "dog")
    assert len(data) + len(load_dataset(root, "test", size=8)) == 5


def test_names_that_are_not_utf8_are_shown_escaped(tmp_path):
    root = tmp_path / os.fsdecode(b"pi\xe8ces")
    write_folder(root, (os.fsdecode(b"caf\xe9"), "日本"), n=4)
    data = load_dataset(root, size=16)
    assert data.classes == ("caf\\xe9", "日本")
    assert data.name == "pi\\xe8ces"
    for text in (repr(data), data.summary()):
        text.encode()
