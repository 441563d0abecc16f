import pytest
import torch

from torchsite.data import formats, load_dataset


@pytest.mark.parametrize(("split", "n"), [("train", 5000), ("test", 1000), ("val", 1000)])
def test_the_sample_is_whole_and_balanced(split, n):
    data = load_dataset(split=split)
    assert data.name == "mnist_sample"
    assert data.images.shape == (n, 1, 28, 28)
    assert set(data.counts) == {n // 10}
    assert set(data[:100].counts) == {10}


def test_the_file_is_near_one_megabyte_and_attributed():
    assert 0.5e6 < formats.SHEET.stat().st_size < 1.2e6
    text = formats.SHEET.with_suffix(".txt").read_text()
    assert "LeCun" in text
    assert "Share Alike 3.0" in text


def test_a_nearest_mean_classifier_reads_the_digits():
    """The labels belong to the pictures: chance would be 0.1."""
    train, test = load_dataset(), load_dataset(split="test")
    means = torch.stack([train.images[train.labels == k].float().mean(0).flatten() for k in range(10)])
    nearest = torch.cdist(test.images.flatten(1).float(), means).argmin(1)
    assert (nearest == test.labels).float().mean() > 0.75


@pytest.mark.real_data
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_digit_is_one_of_mnist(split):
    whole, part = load_dataset("mnist", split, download=False), load_dataset("mnist_sample", split)
    known = {(pixels.numpy().tobytes(), int(k)) for pixels, k in zip(whole.images, whole.labels, strict=True)}
    mine = {(pixels.numpy().tobytes(), int(k)) for pixels, k in zip(part.images, part.labels, strict=True)}
    assert mine <= known
    assert len(mine) == len(part)
