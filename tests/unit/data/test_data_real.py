"""The full data sets, whole and unchanged: counts, classes, published checksums."""

import os
from pathlib import Path

import pytest
import torch

from experiments.bam.sources import load_bam, photo
from torchsite.data import load_dataset
from torchsite.data.folders import list_split
from torchsite.data.request import Request
from torchsite.errors import DataError

pytestmark = pytest.mark.real_data


@pytest.mark.parametrize(
    ("name", "split", "shape"),
    [
        ("mnist", "train", (60_000, 1, 28, 28)),
        ("mnist", "test", (10_000, 1, 28, 28)),
        ("cifar10", "train", (50_000, 3, 32, 32)),
        ("cifar10", "test", (10_000, 3, 32, 32)),
    ],
)
def test_published_sets_are_what_was_published(name, split, shape):
    data = load_dataset(name, split, download=False)
    assert tuple(data.images.shape) == shape
    assert len(data.classes) == 10
    assert name != "cifar10" or set(data.counts) == {shape[0] // 10}


def test_fashion_mnist_where_the_system_has_it():
    try:
        data = load_dataset("fashion_mnist", download=False)
    except DataError as error:
        pytest.skip(f"Fashion-MNIST is not installed: {str(error).splitlines()[0]}")
    assert set(data.counts) == {6000}


@pytest.mark.parametrize(("split", "n"), [("train", 200), ("test", 75)])
def test_ten_classes_of_food(split, n):
    data = load_dataset("food10", split, size=32, download=False)
    assert data.counts == (n,) * 10
    assert data.skipped == 0


@pytest.mark.parametrize(("name", "split", "n"), [("eurosat", "test", 3_000), ("food101", "test", 25_247)])
def test_copies_of_64_pixels(name, split, n):
    data = load_dataset(name, split, download=False)
    assert tuple(data.images.shape) == (n, 3, 64, 64)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize(("objects", "n_classes"), [("fruit", None), ("pets", 10), ("coco", 10)])
def test_bam_composes_every_pair(split, objects, n_classes):
    bam = load_bam(split, objects=objects, size=32, per_pair=1)
    n = len(bam.object_classes)
    assert n_classes in (None, n)
    assert len(bam.scene_classes) == 10
    assert len(bam) == 10 * n
    assert bool(bam.regions.flatten(1).any(1).all())
    assert not torch.equal(bam.images, bam.scenes_only)


@pytest.mark.parametrize(("split", "n"), [("train", 300), ("test", 100)])
def test_scenes(split, n):
    assert load_dataset("bam/scenes", split, size=16, download=False).counts == (n,) * 10


@pytest.mark.parametrize(
    ("objects", "train", "test"), [("objects_fruit", 900, 400), ("objects_pets", 500, 300)]
)
def test_objects(objects, train, test):
    sizes = [
        len(load_dataset(f"bam/{objects}", split, size=16, download=False)) for split in ("train", "test")
    ]
    assert sizes == [train, test]


def test_cutouts_of_coco_share_no_photo_between_the_halves():
    folder = Path(os.environ["TORCHSITE_DATA"]) / "bam" / "objects_coco"
    train, test = (list_split(folder, Request("bam", split), group=photo) for split in ("train", "test"))
    assert len(train.files) + len(test.files) == 202
    assert not {photo(path) for path in train.paths} & {photo(path) for path in test.paths}
    assert len(set(test.labels)) == len(set(train.labels)) == 10
