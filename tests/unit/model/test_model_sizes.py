"""Pictures of other sizes than the model's own: complete where all parts are convolutional, else refused."""

import pytest
import torch
from torch import nn

import experiments  # noqa: F401  # its forms of the parts obey the same laws
import trunk_generator  # noqa: F401  # as does that of tests
from pairwise import pairwise
from torchsite.errors import ShapeError
from torchsite.model import EXTRACTORS, GENERATORS, SITE, BlackBox, load

OPTIONS = {
    "small_cnn": {"depth": 3, "widths": (4, 4, 4)},
    "pyramid": {"depth": 3, "widths": (4, 4, 4, 4), "common": 4},
}
SPATIAL = {"widths": (4, 5), "trunk": (4, 5)}
SHAPE = (3, 32, 32)


def spatial(extractor, shape=SHAPE, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        options = {"extractor_options": OPTIONS.get(extractor, {}), "pretrained": False} | options
        return SITE(extractor, "spatial", 3, image_shape=shape, generator_options=SPATIAL, **options)


def pictures(n, channels, height, width):
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(0))


def mosaic(images):
    """Four pictures as one of twice the size."""
    above, below = torch.cat([*images[:2]], 2), torch.cat([*images[2:4]], 2)
    return torch.cat([above, below], 1)[None]


@pytest.mark.parametrize(
    ("extractor", "zero_sum", "size"), pairwise(sorted(EXTRACTORS), [False, True], [(32, 32), (24, 40)])
)
def test_heatmaps_of_a_mosaic_sum_to_its_logits(extractor, zero_sum, size):
    model = spatial(extractor, (3, *size), zero_sum=zero_sum)
    found = model.explain(mosaic(pictures(4, 3, *size)))
    assert model.any_size
    maps = found.heatmaps()
    assert maps.shape == (1, 3, 2 * size[0], 2 * size[1])
    torch.testing.assert_close(maps.sum((-2, -1)), found.logits, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model.eval()(found.images), found.logits)


def test_the_shipped_model_explains_a_mosaic_completely():
    model = load("cifar10")
    images = pictures(4, *SHAPE)
    found = model.explain(mosaic(images))
    assert found.features.shape[-2:] == (32, 32)
    assert found.product_scale == model.config.product_scale
    torch.testing.assert_close(found.heatmaps().sum((-2, -1)), found.logits, rtol=1e-4, atol=1e-4)


def test_a_picture_of_one_colour_has_the_same_features_inside_at_any_size():
    model = spatial("pyramid").eval()
    small, large = (model.features(torch.full((1, 3, n, n), 0.3))[0, :, n // 4, n // 4] for n in (128, 256))
    torch.testing.assert_close(small, large)


@pytest.mark.parametrize(
    "generator", sorted(set(GENERATORS) - {"spatial", "constant", "two_scales", "shared_patterns"})
)
def test_generators_with_a_code_take_one_size(generator):
    model = SITE("identity", generator, 3, image_shape=(1, 12, 12))
    assert not model.any_size
    with pytest.raises(ShapeError, match=r"\(batch, 1, 12, 12\), got "):
        model.explain(pictures(1, 1, 24, 24))


def test_an_extractor_of_one_size_keeps_its_model_at_it():
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(4))
    model = spatial(pooled, extractor_options=None)
    assert not model.any_size
    with pytest.raises(ShapeError, match="size"):
        model(pictures(2, 3, 64, 64))
    assert model(pictures(2, *SHAPE)).shape == (2, 3)


@pytest.mark.parametrize("size", [(33, 32), (32, 63), (1, 1)])
def test_sides_must_be_multiples_of_the_stride(size):
    model = spatial("pyramid")
    with pytest.raises(ShapeError, match="stride, 2, "):
        model(pictures(2, 3, *size))


def test_other_channels_are_refused_at_any_size():
    with pytest.raises(ShapeError, match=r"\(batch, 3, 32, 32\), got \(2, 1, 64, 64\)"):
        spatial("pyramid")(pictures(2, 1, 64, 64))


def test_the_black_box_with_a_pooled_code_takes_any_size_too():
    pooled, flat = (
        BlackBox("pyramid", 3, image_shape=SHAPE, extractor_options=OPTIONS["pyramid"], encoder_of=name)
        for name in ("spatial", "lateral")
    )
    assert pooled.any_size
    assert pooled.eval()(pictures(2, 3, 64, 40)).shape == (2, 3)
    assert not flat.any_size
    with pytest.raises(ShapeError, match="size"):
        flat(pictures(2, 3, 64, 64))
