"""A tiny model and a digit on disk, for all tests of the command line."""

import pytest
from PIL import Image

from torchsite.data import load_dataset
from torchsite.model import SITE, BlackBox

TINY = {"widths": [4, 4, 4], "code": 8}


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    options = TINY | {"trunk": [4, 4, 4]}
    model = SITE("identity", "lateral", 10, image_shape=(1, 28, 28), generator_options=options)
    return model.save_pretrained(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def black_box_folder(tmp_path_factory):
    model = BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options=TINY)
    return model.save_pretrained(tmp_path_factory.mktemp("black"))


@pytest.fixture(scope="session")
def digit(tmp_path_factory):
    """A picture of a 0, the first of the test digits."""
    path = tmp_path_factory.mktemp("pictures") / "digit.png"
    Image.fromarray(load_dataset("mnist_sample", "test").images[0, 0].numpy()).save(path)
    return path
