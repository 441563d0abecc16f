"""Photographs from elsewhere are explained like the model's own pictures."""

import pytest

from experiments import shown
from experiments.cache import load_arrays
from torchsite.data.catalogue import THINGS
from torchsite.model import SITE


def test_photographs_are_explained_like_the_models_own_pictures(folder):
    pytest.importorskip("skimage")
    place = folder / "cifar10_photographs-quick"
    result = shown.PHOTOGRAPHED.run("cifar10", place, quick=True)
    assert [note["photograph"] for note in result.values["pictures"]] == list(shown.PHOTOGRAPHS)
    arrays = load_arrays(place / "cifar10_photographs.npz")
    assert arrays["images"].shape == (3, 1, 28, 28)
    assert (arrays["images"].flatten(1).std(1) > 0.05).all(), "flat pictures"
    colour = shown.photographs(SITE(classes=THINGS, image_shape=(3, 32, 32)))
    assert [THINGS[label] for label in colour.labels] == list(shown.PHOTOGRAPHS.values())
    assert colour.images.shape == (3, 3, 32, 32)
