import gzip
import hashlib
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from data_makers import (
    cifar_bin,
    cifar_rows,
    idx_bytes,
    picture,
    write_all,
    write_folder,
    write_idx,
    write_tar,
)
from torchsite.data import CATALOGUE, load_dataset
from torchsite.errors import ConfigError, DataError


@pytest.mark.parametrize("folder", ["mnist", "MNIST/raw", "mnist/raw", "MNIST", "."])
@pytest.mark.parametrize("style", [{}, {"gzipped": True}, {"dots": True}])
def test_idx_layouts(tmp_path, folder, style):
    images, labels = write_idx(tmp_path / folder, 12, prefix="t10k", **style)
    data = load_dataset("mnist", "test", data_dir=tmp_path, download=False)
    assert np.array_equal(data.images[:, 0].numpy(), images)
    assert data.labels.tolist() == labels.tolist()


def test_the_order_of_places(tmp_path, monkeypatch):
    for n, place in enumerate(("explicit", "named", "cache"), start=1):
        write_idx(tmp_path / place / "mnist", n)
    monkeypatch.setenv("TORCHSITE_DATA", str(tmp_path / "named"))
    assert len(load_dataset("mnist", data_dir=tmp_path / "explicit", download=False)) == 1
    assert len(load_dataset("mnist", download=False)) == 2
    monkeypatch.delenv("TORCHSITE_DATA")
    assert len(load_dataset("mnist", download=False)) == 3


def test_fashion_is_not_taken_for_mnist(tmp_path, monkeypatch):
    """Both sets have files of the same names: known labels tell one from the other."""
    _, labels = write_idx(tmp_path)
    digest = hashlib.sha256(idx_bytes(labels)).hexdigest()
    monkeypatch.setitem(CATALOGUE["mnist"].label_checksums, "train-labels-idx1-ubyte", digest)
    assert len(load_dataset("mnist", data_dir=tmp_path, download=False)) == 20
    with pytest.raises(DataError, match="fashion_mnist"):
        load_dataset("fashion_mnist", data_dir=tmp_path, download=False)


def test_a_missing_set_says_what_to_fetch_from_where_and_which_directory_to_name(tmp_path):
    with pytest.raises(DataError) as caught:
        load_dataset("cifar10", data_dir=tmp_path, download=False)
    message = str(caught.value)
    for part in (str(tmp_path), "data_batch_1.bin", "cifar-10-batches-bin", "https://www.cs.toronto.edu/"):
        assert part in message
    for part in ("TORCHSITE_DATA", "data_dir", "download=True"):
        assert part in message


@pytest.mark.parametrize("keep", [0, 3, 15, 16, 100, -1])
@pytest.mark.parametrize("gzipped", [False, True])
def test_a_truncated_idx_file_is_named(tmp_path, keep, gzipped):
    write_idx(tmp_path, gzipped=gzipped)
    path = next(tmp_path.glob("train-images*"))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match="train-images-idx3-ubyte"):
        load_dataset("mnist", data_dir=tmp_path, download=False)


def test_too_many_bytes_and_unequal_counts_are_errors(tmp_path):
    write_idx(tmp_path)
    path = tmp_path / "train-images-idx3-ubyte"
    whole = path.read_bytes()
    path.write_bytes(whole + b"x")
    with pytest.raises(DataError, match="train-images"):
        load_dataset("mnist", data_dir=tmp_path, download=False)
    path.write_bytes(idx_bytes(np.zeros((3, 28, 28), np.uint8)))
    with pytest.raises(DataError, match="train-images"):
        load_dataset("mnist", data_dir=tmp_path, download=False)


def test_a_size_resizes_sets_in_memory(tmp_path):
    data = load_dataset("mnist_sample", "test", size=14)
    assert data.images.shape == (1000, 1, 14, 14)
    original = load_dataset("mnist_sample", "test")
    assert float(data.images.float().mean()) == pytest.approx(float(original.images.float().mean()), rel=0.02)


def test_the_binary_batches_of_cifar(tmp_path):
    write_all(tmp_path / "cifar-10-batches-bin", cifar_bin())
    for split, n in (("train", 20), ("test", 4)):
        data = load_dataset("cifar10", split, data_dir=tmp_path, download=False)
        assert data.images.shape == (n, 3, 32, 32)
    pixels, labels = cifar_rows(4, seed=5)
    assert np.array_equal(data.images.flatten(1).numpy(), pixels)
    assert data.labels.tolist() == labels.tolist()


def test_the_pickled_batches_are_not_read(tmp_path):
    for name in ("data_batch_1", "test_batch"):
        write_all(tmp_path / "cifar-10-batches-py", {name: b"anything"})
    with pytest.raises(DataError, match=r"test_batch\.bin"):
        load_dataset("cifar10", "test", data_dir=tmp_path, download=False)


@pytest.mark.parametrize("name", ["data_batch_3.bin", "test_batch.bin"])
def test_a_truncated_batch_is_named(tmp_path, name):
    write_all(tmp_path, cifar_bin())
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
    with pytest.raises(DataError, match=name):
        load_dataset("cifar10", "train" if "data" in name else "test", data_dir=tmp_path, download=False)


def test_the_original_archive_is_unpacked_once(tmp_path):
    archive = tmp_path / "data" / "cifar-10-binary.tar.gz"
    write_tar(archive, cifar_bin(), "cifar-10-batches-bin")
    for _ in range(2):
        assert len(load_dataset("cifar10", data_dir=tmp_path / "data", download=False)) == 20
    assert len(list((tmp_path / "cache" / "unpacked").iterdir())) == 1
    assert list((tmp_path / "data").iterdir()) == [archive]


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil"])
def test_archives_cannot_write_outside(tmp_path, name):
    write_tar(tmp_path / "data" / "cifar-10-binary.tar.gz", {name: b"x"})
    with pytest.raises(DataError):
        load_dataset("cifar10", data_dir=tmp_path / "data", download=False)
    unpacked = tmp_path / "cache" / "unpacked"
    assert {path.parent.parent for path in tmp_path.rglob("evil")} <= {unpacked}


def test_archives_with_links_that_lead_outside_are_refused(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    link = tarfile.TarInfo("cifar-10-batches-bin")
    link.type, link.linkname = tarfile.SYMTYPE, "../../.."
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(link)
    with pytest.raises(DataError):
        load_dataset("cifar10", data_dir=tmp_path, download=False)
    assert not list((tmp_path / "cache" / "unpacked").iterdir())


def test_a_truncated_archive_leaves_nothing_behind(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    write_tar(path, cifar_bin(), "cifar-10-batches-bin")
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(DataError):
        load_dataset("cifar10", data_dir=tmp_path, download=False)
    assert not list((tmp_path / "cache" / "unpacked").iterdir())


def test_food101_as_published(tmp_path):
    root = tmp_path / "food-101"
    for half, names in {"train": ["pie/1", "soup/1", "pie/2"], "test": ["soup/2"]}.items():
        write_all(root / "meta", {f"{half}.txt": "\n".join(names).encode()})
        for name in names:
            (root / "images" / name).parent.mkdir(parents=True, exist_ok=True)
            picture().save(root / "images" / f"{name}.jpg")
    data = load_dataset("food101", data_dir=tmp_path, download=False, size=16)
    assert data.classes == ("pie", "soup")
    assert data.labels.tolist() == [0, 1, 0]
    assert load_dataset("food101", "test", data_dir=tmp_path, download=False, size=16).labels.tolist() == [1]
    (root / "images" / "pie" / "2.jpg").unlink()
    with pytest.raises(DataError, match=r"2\.jpg"):
        load_dataset("food101", data_dir=tmp_path, download=False, size=16)
    skipping = load_dataset("food101", data_dir=tmp_path, download=False, size=16, skip_unreadable=True)
    assert (len(skipping), skipping.skipped) == (2, 1)
    write_all(root / "meta", {"train.txt": b"../../etc/passwd"})
    with pytest.raises(DataError, match="apple_pie"):
        load_dataset("food101", data_dir=tmp_path, download=False, size=16)


@pytest.mark.parametrize(("folder", "side"), [("eurosat-8px", 8), ("eurosat", 128)])
def test_class_folders_of_a_published_set(tmp_path, monkeypatch, folder, side):
    monkeypatch.setitem(CATALOGUE, "eurosat", replace(CATALOGUE["eurosat"], pictures=(folder,)))
    with pytest.raises(DataError, match=rf"train/ and test/ of: {folder}"):
        load_dataset("eurosat", data_dir=tmp_path, download=False)
    for half, n in (("train", 3), ("test", 2)):
        write_folder(tmp_path / folder / half, ("Forest", "River"), n)
    data = load_dataset("eurosat", "test", data_dir=tmp_path, download=False)
    assert (data.name, data.classes, data.counts) == ("eurosat", ("Forest", "River"), (2, 2))
    assert data.size == (side, side)
    with_margin = load_dataset("eurosat", data_dir=tmp_path, download=False, size=8, margin=1.5)
    assert with_margin.size == (8, 8)
    assert with_margin.margin == 1.5


def test_the_published_layout_of_food101_comes_first(tmp_path):
    write_folder(tmp_path / "food101-64px" / "train")
    assert load_dataset("food101", data_dir=tmp_path, download=False).classes == ("cat", "dog")
    write_all(tmp_path / "food101" / "meta", {"train.txt": b"pie/1"})
    (tmp_path / "food101" / "images" / "pie").mkdir(parents=True)
    picture().save(tmp_path / "food101" / "images" / "pie" / "1.jpg")
    assert load_dataset("food101", data_dir=tmp_path, download=False).classes == ("pie",)


def test_unknown_names_options_and_directories(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="'mnist'"):
        load_dataset("mnsit")
    with pytest.raises(ConfigError, match="split"):
        load_dataset("mnist_sample", "trian")
    with pytest.raises(ConfigError, match="size"):
        load_dataset("mnist_sample", size=0)
    with pytest.raises(DataError, match="data_dir"):
        load_dataset("mnist", data_dir=tmp_path / "nowhere")
    monkeypatch.setenv("TORCHSITE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="TORCHSITE_DATA"):
        load_dataset("mnist")


def test_the_catalogue_names_https_mirrors_and_checksums():
    remotes = [remote for entry in CATALOGUE.values() for remote in entry.remotes]
    assert all(url.startswith("https://") for remote in remotes for url in remote.urls)
    assert all(remote.checksum.partition(":")[0] in ("md5", "sha256") for remote in remotes)
    for entry in CATALOGUE.values():
        names = {name for half in ("train", "test") for name in entry.files(half)}
        assert set(entry.label_checksums) <= names


def test_a_gzipped_file_may_lack_the_ending(tmp_path):
    write_idx(tmp_path)
    for path in list(tmp_path.glob("train-*")):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert len(load_dataset("mnist", data_dir=tmp_path, download=False)) == 20
