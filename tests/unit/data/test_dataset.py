import numpy as np
import pytest
import torch

from torchsite.data import Dataset, batches, load_dataset, to_float
from torchsite.errors import ConfigError, DataError, ShapeError
from torchsite.randomness import make_rng


def small(n=10):
    images = torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1).expand(n, 3, 4, 5).contiguous()
    return Dataset(images, torch.arange(n) % 2, ("even", "odd"), "small", "train")


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (3, [3]),
        (-1, [9]),
        (slice(2, 8, 3), [2, 5]),
        (slice(None, None, -1), list(range(9, -1, -1))),
        ([4, 4, 0], [4, 4, 0]),
        ([], []),
        (torch.tensor([7, 1]), [7, 1]),
        (np.array([7, -1]), [7, 9]),
        (torch.arange(10) > 7, [8, 9]),
    ],
)
def test_an_index_selects_a_smaller_data_set(index, rows):
    part = small()[index]
    assert isinstance(part, Dataset)
    assert part.images[:, 0, 0, 0].tolist() == rows
    assert part.labels.tolist() == [row % 2 for row in rows]
    assert part.classes == ("even", "odd")


def test_iterating_ends():
    assert [int(one.labels) for one in small(3)] == [0, 1, 0]


def test_an_index_outside_is_an_index_error():
    with pytest.raises(IndexError):
        small()[10]


def test_an_index_of_floats_is_refused():
    with pytest.raises(ShapeError, match="index"):
        small()[torch.tensor([0.5])]


def test_the_summary_tells_people_what_is_there():
    text = small().summary()
    assert "small/train: 10 images of 3×4×5" in text
    assert "even" in text
    assert "5" in text


def test_wrong_tensors_are_refused():
    images, labels = small().images, small().labels
    with pytest.raises(ShapeError, match="uint8"):
        Dataset(images.float(), labels, ("a", "b"))
    with pytest.raises(ShapeError, match="labels"):
        Dataset(images, labels[:-1], ("a", "b"))
    with pytest.raises(DataError, match="labels"):
        Dataset(images, labels, ("a",))


def test_float_images_span_0_to_1():
    assert to_float(torch.tensor([0, 255], dtype=torch.uint8)).tolist() == [0.0, 1.0]
    with pytest.raises(ShapeError, match="uint8"):
        to_float(torch.rand(2))


def test_batches_need_a_size():
    with pytest.raises(ConfigError, match="batch_size"):
        batches(small(), 0)


def test_batches_in_order_and_the_last_one_dropped():
    seen = torch.cat([labels for _, labels in batches(small(), 4)])
    assert torch.equal(seen, small().labels)
    assert [len(labels) for _, labels in batches(small(), 4, drop_last=True)] == [4, 4]


def test_nothing_touches_the_global_random_state():
    before = torch.random.get_rng_state()
    list(batches(load_dataset("mnist_sample", "test"), 100, rng=make_rng(3)))
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("order", ["sorted", "in turns"])
def test_some_pictures_are_of_all_classes_in_proportion(order):
    labels = torch.arange(60) % 10 if order == "in turns" else torch.arange(60) // 6
    data = Dataset(torch.zeros(60, 1, 2, 2, dtype=torch.uint8), labels, tuple("abcdefghij"))
    some = data.spread(20)
    assert some.counts == (2,) * 10
    assert torch.equal(some.labels.sort().values, some.labels) == (order == "sorted")
    assert data.spread(None) is data.spread(60) is data
