"""There is something to begin with for every model."""

import pytest
import torch
from web_makers import black_box, colours, digits, seeded

from torchsite.data import CATALOGUE, Dataset, load_dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, load, shipped_models
from torchsite.web.library import Library
from torchsite.web.samples import PICTURES, samples_for


def test_digits_for_a_model_of_digits():
    samples = samples_for(digits().config)
    assert samples.names[:10] == tuple("0123456789")
    assert samples.images.shape == (20, 1, 28, 28)


def test_drawn_clothes_for_a_model_of_clothes():
    names = CATALOGUE["fashion_mnist"].classes
    model = seeded(lambda: SITE("identity", "lateral", 10, image_shape=(1, 28, 28), classes=names))
    samples = samples_for(model.config)
    assert all(name.startswith("drawn") for name in samples.names)
    assert float(samples.images[:, :, :2, :2].max()) < 0.2  # on black


def test_colour_pictures_that_differ():
    samples = samples_for(colours().config)
    assert samples.images.shape[1:] == (3, 32, 24)
    assert len(samples) >= 5
    flat = samples.images.flatten(1)
    assert float(torch.cdist(flat, flat).add(torch.eye(len(flat)) * 99).min()) > 1


def test_the_users_data_come_first():
    pixels = torch.arange(6, dtype=torch.uint8)[:, None, None, None].expand(6, 3, 48, 36).contiguous()
    data = Dataset(pixels, torch.tensor([0, 0, 1, 1, 2, 2]), ("0", "1", "2"), "mine")
    samples = samples_for(colours().config, [load_dataset("mnist_sample", "test"), data])
    assert samples.names == ("0", "1", "2", "0", "1", "2")
    assert samples.images.shape == (6, 3, 32, 24)
    torch.testing.assert_close(samples.images[:, 0, 0, 0] * 255, torch.tensor([0.0, 2, 4, 1, 3, 5]))


def test_folders_are_served_beside_the_shipped_models(tmp_path):
    digits().save_pretrained(tmp_path / "run" / "model")
    black_box().save_pretrained(tmp_path / "mnist")
    library = Library.open([tmp_path / "run" / "model", tmp_path / "mnist"])
    assert set(library.models) == {*shipped_models(), "run", "mnist-2"}
    for name, served in library.models.items():
        assert len(served.samples) >= 5, name
        assert served.samples.images.shape[1:] == served.config.image_shape
        assert torch.isfinite(served.model(served.samples.images[:2])).all()


def test_pictures_of_two_channels_cannot_be_shown(tmp_path):
    model = seeded(lambda: SITE("identity", "lateral", 2, image_shape=(2, 16, 16)))
    model.save_pretrained(tmp_path / "odd")
    with pytest.raises(ConfigError, match="channels"):
        Library.open([tmp_path / "odd"])


def test_a_copy_answers_the_same_and_shares_no_weights():
    library = Library.open()
    first, second = library["mnist"], library.copy()["mnist"]
    images = first.samples.images[:2]
    torch.testing.assert_close(second.model(images), first.model(images))
    assert second.model is not first.model
    assert load("mnist") is not first.model


def test_a_folder_of_samples_is_for_the_classes_of_the_shipped_model_of_its_name():
    for name in (folder.name for folder in PICTURES.iterdir()):
        samples = samples_for(load(name).config)
        kept = {path.stem.partition(" ")[2] for path in (PICTURES / name).glob("*.png")}
        assert kept <= set(samples.names)
