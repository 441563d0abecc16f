"""Pictures kept larger than they are seen: the centre is the picture, poses show what is around it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from torchsite.autotrain.folds import joined
from torchsite.data import Dataset, as_images, larger_pictures, load_dataset
from torchsite.data.margins import centre, larger_size
from torchsite.errors import ConfigError, ShapeError
from torchsite.evaluation.evaluate import evaluate
from torchsite.model import SITE
from torchsite.model.regions import fitted_placement
from torchsite.objective import Draws, Share
from torchsite.objective.batch import show_batch
from torchsite.objective.views import POSED, UPRIGHT
from torchsite.training import TrainingConfig
from torchsite.training.batches import make_batch
from torchsite.transforms import AffineTransform, TransformFamily

SIZE = (16, 16)


def kept(n=6, side=24, seed=0):
    """Noise of which the centres are the pictures."""
    rng = torch.Generator().manual_seed(seed)
    pixels = torch.randint(1, 256, (n, 3, side, side), generator=rng, dtype=torch.uint8)
    return Dataset(pixels, torch.arange(n) % 2, ("a", "b")).with_margin(SIZE)


@given(size=st.integers(1, 600), margin=st.floats(1, 4))
def test_as_much_stands_on_either_side(size, margin):
    side = larger_size(size, margin)
    assert (side - size) % 2 == 0
    assert margin * size - 1e-3 <= side < margin * size + 2
    assert larger_size(size, 1) == size


def test_selecting_rows_keeps_pictures_and_what_is_around_them_together():
    data = kept()
    for index in ([4, 1], slice(1, 5, 2), torch.tensor([0]), 3):
        some = data[index]
        assert some.larger.shape[1:] == (3, 24, 24)
        assert torch.equal(some.images, some.larger[..., 4:20, 4:20])
    assert data.images.data_ptr() != data.larger.data_ptr()
    assert data.images.untyped_storage().data_ptr() == data.larger.untyped_storage().data_ptr()  # no copy
    assert data.margin == 1.5
    both = joined(data[:2], data[2:])
    assert torch.equal(both.larger, data.larger)


def test_larger_pictures_must_stand_around_their_own():
    data = kept()
    with pytest.raises(ShapeError, match="around each"):
        Dataset(data.images, data.labels, data.classes, larger=data.images[..., 2:, 2:])
    with pytest.raises(ShapeError, match="either side"):
        Dataset(data.images[..., 1:, 1:], data.labels, data.classes, larger=data.larger)


@pytest.mark.parametrize("flip", [False, True])
def test_the_upright_view_is_the_centre_and_poses_turn_the_larger_picture(flip):
    data, config = kept(8), TrainingConfig(batch_size=4, flip=flip, family=TransformFamily(max_shift=0.1))
    batch = make_batch(data, config, (UPRIGHT, POSED), 0, torch.zeros(1), Share())
    upright, posed = batch.pictures().chunk(2)
    assert torch.equal(upright, centre(batch.larger, SIZE))
    if not flip:
        assert torch.equal((255 * upright).round().byte(), data.images[batch.rows])
    pose = batch.poses[1]
    assert torch.equal(posed, pose.cropped_from(batch.larger, SIZE))
    assert not torch.allclose(posed, pose(upright))
    parts = [part.pictures() for part in batch.parts(2)]
    assert torch.equal(parts[0][:2], upright[:2])


@given(quarters=st.integers(-4, 4), seed=st.integers(0, 99))
def test_a_quarter_turn_of_a_larger_picture_is_the_centre_of_the_turned_one(quarters, seed):
    larger = torch.rand(1, 3, 24, 24, generator=torch.Generator().manual_seed(seed))
    turn = AffineTransform.rotation(torch.tensor([quarters * 90.0]))
    expected = centre(turn(larger), SIZE)
    assert torch.allclose(turn.cropped_from(larger, SIZE), expected, atol=1e-5)


@given(pixels=st.integers(-4, 4), seed=st.integers(0, 99))
def test_a_shift_brings_in_what_was_beyond_the_edge(pixels, seed):
    larger = torch.rand(1, 3, 24, 24, generator=torch.Generator().manual_seed(seed))
    shift = AffineTransform.shift(pixels / 16, 0.0)
    moved = shift.cropped_from(larger, SIZE)
    assert torch.allclose(moved, larger[..., 4:20, 4 - pixels : 20 - pixels], atol=1e-5)


def test_within_the_margin_nothing_is_filled_and_beyond_it_corners_are():
    larger = torch.rand(2, 3, 24, 24) + 1
    for degrees in (0.0, 20.0, 45.0):  # 1.5 > √2: every turn shows content alone
        turn = AffineTransform.rotation(torch.tensor([degrees, -degrees]))
        assert turn.cropped_from(larger, SIZE).amin() > 0.9
        assert torch.allclose(turn.cropped_from(larger, SIZE), turn.cropped_from(larger, SIZE, fill="mean"))
    far = AffineTransform.shift(torch.tensor([0.5, 0.5]), torch.zeros(2))  # the margin is a quarter
    black, filled = far.cropped_from(larger, SIZE), far.cropped_from(larger, SIZE, fill="mean")
    assert (black[..., :3] == 0).all()
    assert (filled[..., :3] > 1).all()
    assert torch.equal(black[..., 5:], filled[..., 5:])


def test_a_view_without_larger_pictures_is_as_before():
    data = kept(4)
    images = data.images.float() / 255
    draws, family = Draws(0, 0, 4), TransformFamily()
    batch = show_batch(torch.arange(4), images, data.labels, (POSED,), draws, family)
    assert torch.equal(batch.pictures(), batch.poses[0](images))


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    for name, shade in (("dark", 40), ("light", 200)):
        for number in range(4):
            picture = np.random.default_rng(number).integers(0, 50, (48, 64, 3), np.uint8) + np.uint8(shade)
            folder = tmp_path / "photographs" / name
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"{number}.png")
    return tmp_path / "photographs"


def test_folders_are_decoded_with_a_margin_and_models_see_files_as_they_learnt(photographs):
    options = {"progress": False, "seed": 1}
    data = load_dataset(photographs, size=16, margin=1.5, **options)
    whole = load_dataset(photographs, size=24, **options)
    assert data.images.shape[1:] == (3, 16, 16)
    assert torch.equal(data.larger, whole.images)
    assert torch.equal(data.images, centre(whole.images, SIZE))
    model = SITE("identity", "lateral", 2, image_shape=(3, 16, 16), margin=1.5)
    seen = model.prepare([str(path) for path in data.paths])
    assert torch.equal((255 * seen).round().byte(), data.images)
    with Image.open(data.paths[0]) as file:
        assert torch.equal(as_images(file, (3, 16, 16), 1.5)[0], seen[0])
        placed = fitted_placement(file.size, (3, 16, 16), 1.5)
    assert (placed.left, placed.top, placed.scale) == pytest.approx(
        (8 + 8, 8, 2)
    )  # 48 of 64 × 48, a sixth cut


def test_a_margin_is_for_folders_and_is_no_shrinking():
    with pytest.raises(ConfigError, match="folders"):
        load_dataset("mnist_sample", margin=1.2)
    with pytest.raises(ConfigError, match="margin"):
        load_dataset("nowhere", margin=0.5)


def test_measures_take_the_larger_pictures_of_the_data():
    data = kept(6)
    model = SITE("identity", "lateral", 2, image_shape=(3, 16, 16), family=TransformFamily(max_shift=0.1))
    fills = evaluate(model, data, batch_size=3).values["frame_control"]["fills"]
    assert "larger" in fills
    assert math.isfinite(fills["larger"]["raw"]["value"])
    without = Dataset(data.images, data.labels, data.classes)
    assert "larger" not in evaluate(model, without, batch_size=3).values["frame_control"]["fills"]
    assert larger_pictures(without, torch.arange(2)) is None
