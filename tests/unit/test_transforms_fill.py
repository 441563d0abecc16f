"""Fillings: what stands in the corners of posed pictures and in hidden parts."""

import numpy as np
import pytest
import scipy.ndimage
import torch

from torchsite.errors import ConfigError, NotApplicableError, ShapeError
from torchsite.randomness import make_rng
from torchsite.transforms import FILLS, AffineTransform, TransformFamily, as_fill
from torchsite.transforms.fill import Black, Blur, Colour

HIDING = [name for name in FILLS if name != "reflection"]
POSES = TransformFamily(max_rotation=45, max_shift=0.2, distortion=0.2)


def pictures(n=4, side=12):
    return torch.rand(n, 3, side, side, generator=make_rng(0, "pictures"))


@pytest.mark.parametrize("name", FILLS)
def test_the_seen_part_is_the_same_under_every_filling(name):
    images, transform = pictures(), POSES.sample(4, rng=make_rng(1))
    filled, plain = transform(images, fill=name, rng=make_rng(2)), transform(images)
    seen = transform.mask((12, 12))[:, None].expand_as(images)
    assert torch.allclose(filled[seen], plain[seen], atol=2e-3)
    assert filled.min() >= 0
    assert filled.max() <= 1 + 1e-6


@pytest.mark.parametrize("name", [name for name in FILLS if name != "black"])
def test_no_corner_stays_black(name):
    images, transform = 0.2 + 0.6 * pictures(), AffineTransform.rotation(torch.full((4,), 45.0))
    filled = transform(images, fill=name, rng=make_rng(2))
    assert filled.amin() > 0
    assert (transform(images).amax(1) == 0).any()


@pytest.mark.parametrize("black", ["black", 0.0, Black(), 0, (0.0,)])
def test_black_is_what_transforms_have_always_done(black):
    images, transform = pictures(), POSES.sample(4, rng=make_rng(1))
    assert torch.equal(transform(images, fill=black), transform(images))


@pytest.mark.parametrize("name", HIDING)
def test_a_hidden_part_shows_the_filling_and_the_rest_the_picture(name):
    images = pictures()
    shown = torch.rand(4, 12, 12, generator=make_rng(3)) < 0.5
    found = as_fill(name).replace(images, shown, rng=make_rng(2))
    background = as_fill(name).background(images, rng=make_rng(2))
    expected = shown[:, None] * images + ~shown[:, None] * background
    assert torch.equal(found, expected)
    assert background.shape == images.shape


def test_each_filling_is_what_it_says():
    images = pictures(5, 16)
    mean = FILLS["mean"].background(images)
    assert torch.allclose(mean, images.flatten(2).mean(2)[..., None, None].expand_as(images))
    other = FILLS["other"].background(images, rng=make_rng(0))
    sources = [next(j for j in range(5) if torch.equal(other[i], images[j])) for i in range(5)]
    assert sorted(sources) == list(range(5))
    assert all(i != j for i, j in enumerate(sources))
    noise = FILLS["noise"].background(
        0.4 + 0.2 * torch.rand(5, 3, 64, 64, generator=make_rng(1)), rng=make_rng(0)
    )
    assert float(noise.mean()) == pytest.approx(0.5, abs=0.01)
    assert float(noise.std()) == pytest.approx(0.2 / 12**0.5, abs=0.005)
    turned = AffineTransform.shift(0.5, 0.0)(images[:1], fill="reflection")
    assert torch.allclose(turned[..., :8], images[:1, :, :, :8].flip(-1), atol=1e-6)


def test_a_blur_is_scipys_with_renormalised_edges():
    images = pictures(2, 20).double()
    sigma = 0.1 * 20
    found = Blur(0.1).background(images)
    ones = np.ones((20, 20))
    weight = scipy.ndimage.gaussian_filter(ones, sigma, mode="constant", truncate=20)
    for i in range(2):
        for c in range(3):
            blurred = scipy.ndimage.gaussian_filter(images[i, c].numpy(), sigma, mode="constant", truncate=20)
            assert found[i, c].numpy() == pytest.approx(blurred / weight, abs=1e-9)


def test_a_crop_of_a_larger_picture_has_no_corners():
    larger = pictures(3, 24)
    crop = larger[..., 6:18, 6:18]
    transform = TransformFamily(max_rotation=90, max_shift=0.1).sample(3, rng=make_rng(4))
    found = transform.cropped_from(larger, (12, 12))
    seen = transform.mask((12, 12))[:, None].expand_as(found)
    assert torch.allclose(found[seen], transform(crop)[seen], atol=2e-3)
    whole = transform.cropped_from(torch.ones_like(larger), (12, 12))
    assert torch.allclose(whole, torch.ones_like(whole), atol=1e-5)
    assert torch.allclose(AffineTransform.identity(3).cropped_from(larger, (12, 12)), crop, atol=1e-5)
    with pytest.raises(ShapeError, match="crop"):
        transform.cropped_from(crop, (24, 24))


def test_corners_of_a_crop_are_filled_too():
    larger = 0.5 + 0.5 * pictures(2, 14)
    far = AffineTransform.shift(torch.tensor([0.9, 0.9]), torch.tensor([0.0, 0.0]))
    for name in FILLS:
        if name != "black":
            assert far.cropped_from(larger, (12, 12), fill=name, rng=make_rng(0)).min() > 0
    assert far.cropped_from(larger, (12, 12)).min() == 0


def test_fillings_are_named_and_compare_as_values():
    assert [fill.name for fill in FILLS.values()] == list(FILLS)
    assert as_fill(0.0).name == "black"
    assert as_fill(0.25) == Colour((0.25,)) != as_fill((0.1, 0.2, 0.3))
    assert as_fill(torch.zeros_like).name == "zeros_like"
    assert torch.equal(as_fill(torch.ones_like).background(pictures()), torch.ones(4, 3, 12, 12))
    assert as_fill((0.1, 0.2, 0.3)).background(pictures())[0, :, 0, 0].tolist() == pytest.approx(
        [0.1, 0.2, 0.3]
    )


def test_what_cannot_fill_says_so():
    images, shown = pictures(), torch.ones(4, 12, 12, dtype=torch.bool)
    with pytest.raises(ConfigError, match="'mean'"):
        as_fill("maen")
    with pytest.raises(ConfigError, match="`rng=`"):
        FILLS["noise"].background(images)
    with pytest.raises(ShapeError):
        FILLS["other"].background(images[:1], rng=make_rng(0))
    with pytest.raises(NotApplicableError, match="corners"):
        FILLS["reflection"].replace(images, shown)
    with pytest.raises(ConfigError, match="fill"):
        as_fill((0.0, 1.0)).background(images)
    with pytest.raises(ConfigError, match="sigma"):
        Blur(0.0)
    with pytest.raises(ShapeError, match="shown"):
        FILLS["mean"].replace(images, shown[:, :3])
