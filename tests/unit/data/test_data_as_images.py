"""Pictures as people have them: every kind becomes the same batch, and wrong ones say what to do."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import torchsite as ts
from torchsite.data import Dataset, load_dataset
from torchsite.errors import DataError, ShapeError
from torchsite.model import SITE, BlackBox

SMALL = {"widths": (4, 4), "trunk": (4, 4)}


@pytest.fixture
def pixels():
    return torch.randint(
        0, 256, (2, 3, 12, 12), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )


@pytest.fixture
def kinds(pixels, tmp_path):
    """The same two pictures in every form."""
    arrays = pixels.permute(0, 2, 3, 1).numpy()
    pictures = [Image.fromarray(array) for array in arrays]
    paths = [tmp_path / f"{number}.png" for number in range(2)]
    for path, picture in zip(paths, pictures, strict=True):
        picture.save(path)
    return {
        "uint8 tensor": pixels,
        "float tensor": pixels.float() / 255,
        "list of tensors": list(pixels),
        "array": arrays,
        "float array": (arrays / 255).astype(np.float32),
        "array with channels first": pixels.numpy(),
        "list of arrays": list(arrays),
        "pictures": pictures,
        "paths": paths,
        "names": [str(path) for path in paths],
        "mixed": [pictures[0], paths[1]],
        "data": Dataset(pixels, torch.tensor([0, 1]), ("a", "b")),
    }


KINDS = [
    "uint8 tensor",
    "float tensor",
    "list of tensors",
    "array",
    "float array",
    "array with channels first",
    "list of arrays",
    "pictures",
    "paths",
    "names",
    "mixed",
    "data",
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_the_same_batch(kinds, kind, pixels):
    images = ts.as_images(kinds[kind])
    assert images.dtype == torch.float32
    assert torch.allclose(images, pixels.float() / 255, atol=1e-7)


def test_float_tensors_are_handed_on(pixels):
    images = pixels.float() / 255
    assert ts.as_images(images) is images


@pytest.mark.parametrize("one", [0, 1])
def test_one_picture_is_a_batch_of_one(kinds, pixels, one):
    expected = pixels[one : one + 1].float() / 255
    for kind in ("list of tensors", "list of arrays", "pictures", "paths"):
        assert torch.allclose(ts.as_images(kinds[kind][one]), expected, atol=1e-7)


def test_files_and_pictures_are_fitted_to_a_shape(kinds):
    assert ts.as_images(kinds["paths"], (3, 8, 8)).shape == (2, 3, 8, 8)
    assert ts.as_images(kinds["pictures"], (1, 20, 10)).shape == (2, 1, 20, 10)
    wide = Image.new("RGB", (40, 20))
    assert ts.as_images([wide, kinds["paths"][0]], (3, 8, 8)).shape == (2, 3, 8, 8)


@pytest.mark.parametrize(
    ("mode", "channels"), [("L", 1), ("1", 1), ("I;16", 1), ("RGB", 3), ("RGBA", 3), ("P", 3), ("CMYK", 3)]
)
def test_pictures_of_any_mode(mode, channels):
    images = ts.as_images(Image.new(mode, (6, 4)))
    assert images.shape == (1, channels, 4, 6)
    assert float(images.min()) >= 0
    assert float(images.max()) <= 1


def test_sixteen_bits_are_scaled():
    deep = Image.fromarray(np.full((4, 4), 65535, np.uint16))
    assert torch.equal(ts.as_images(deep), torch.ones(1, 1, 4, 4))


def test_grey_arrays():
    grey = np.full((4, 6), 51, np.uint8)
    assert torch.allclose(ts.as_images(grey), torch.full((1, 1, 4, 6), 0.2))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (torch.zeros(4, 4), "unsqueeze"),
        (torch.zeros(2, 8, 8, 3), r"movedim\(-1, -3\)"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.int64), "uint8"),
        (np.zeros((4, 4, 4), np.uint8), r"array\[..., :3\]"),
        (np.zeros((9, 8, 8), np.uint8), r"array\[..., None\]"),
        (np.zeros((4, 4, 3), np.int32), "uint8"),
        (np.full((4, 4, 3), 200.0), "255"),
        (np.zeros(3), "axes"),
        ([Image.new("L", (4, 4)), Image.new("L", (5, 4))], "shape"),
        ([], "none"),
        (3, "tensor"),
        ({"a": 1}, "tensor"),
    ],
)
def test_wrong_ones_say_what_to_do(wrong, said):
    with pytest.raises(ShapeError, match=said):
        ts.as_images(wrong)


def test_a_file_that_is_no_picture_is_an_error_that_names_it(tmp_path):
    (tmp_path / "x.png").write_bytes(b"garbage")
    for path in (tmp_path / "x.png", tmp_path / "none.png"):
        with pytest.raises(DataError, match=path.name):
            ts.as_images(path)


# Who takes them


@pytest.fixture(scope="module")
def model():
    torch.random.manual_seed(0)
    options = {"widths": (4, 4, 4)}
    return SITE(
        "small_cnn", "spatial", 2, image_shape=(3, 12, 12), extractor_options=options, generator_options=SMALL
    ).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_models_take_every_kind(model, kinds, kind):
    expected = model(kinds["float tensor"])
    assert torch.allclose(model(kinds[kind]), expected, atol=1e-5)
    explanation = model.explain(kinds[kind])
    assert torch.allclose(explanation.logits, expected, atol=1e-5)
    assert explanation.images.shape == (2, 3, 12, 12)


def test_a_model_fits_files_to_its_pictures(model, tmp_path):
    Image.new("L", (50, 30), 128).save(tmp_path / "grey.png")
    assert model.explain(tmp_path / "grey.png").images.shape == (1, 3, 12, 12)


def test_the_black_box_takes_them_too(kinds):
    box = BlackBox("identity", 2, image_shape=(3, 12, 12)).eval()
    assert torch.allclose(box(kinds["paths"]), box(kinds["float tensor"]), atol=1e-5)


@pytest.mark.parametrize("kind", ["uint8 tensor", "array", "pictures", "paths", "data"])
def test_metrics_take_them(model, kinds, kind):
    found = []
    for images, labels in ((kinds["float tensor"], torch.tensor([0, 1])), (kinds[kind], [0, 1])):
        metric = ts.metrics.Completeness(model)
        metric.update(images, labels)
        whole = ts.metrics.self_consistency(
            model, images, torch.tensor([0, 1]), rng=torch.Generator().manual_seed(0), n_resamples=0
        )
        found.append((metric.result().mean.value, whole.raw.value))
        assert ts.metrics.Completeness(model)(images, labels)["worst"] < 1e-4
    assert found[0] == pytest.approx(found[1], abs=1e-4)


# Where pictures come from


def test_a_folder_knows_its_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    for label, grey in (("dark", 10), ("light", 200)):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(5):
            Image.new("L", (9, 9), grey + number).save(tmp_path / "photos" / label / f"{number}.png")
    (tmp_path / "photos" / "dark" / "0.png").write_bytes(b"garbage")
    data = load_dataset(tmp_path / "photos", size=8, skip_unreadable=True, progress=False)
    assert len(data.paths) == len(data)
    for one in (data, data[1:], data[[3, 0]], data[-1], data[data.labels == 1], data[::-1]):
        assert len(one.paths) == len(one)
        assert torch.equal(ts.as_images(list(one.paths), (3, 8, 8)), ts.as_images(one))
        assert [path.parent.name for path in one.paths] == [one.classes[label] for label in one.labels]
    assert isinstance(data.paths[0], Path)


def test_sets_without_files_have_no_paths():
    assert load_dataset("mnist_sample")[:3].paths == ()


def test_as_many_paths_as_pictures(pixels):
    with pytest.raises(ShapeError, match="paths"):
        Dataset(pixels, torch.tensor([0, 1]), ("a", "b"), paths=(Path("a.png"),))
