"""The parts of a model: what is accepted, what is refused and with which words, and what they cost."""

import pytest
import torch
from torch import nn

import experiments  # noqa: F401  # its forms of the parts obey the same laws
import trunk_generator  # noqa: F401  # as does that of tests
from torchsite.errors import ConfigError, ShapeError
from torchsite.model import EXTRACTORS, SITE, BlackBox
from torchsite.model.blocks import n_parameters
from torchsite.modes import evaluating

TINY = {"widths": (4, 5), "code": 6, "trunk": (4, 4, 4)}
NAMES = ("cat", "dog", "frog")


def tiny(extractor="identity", n_classes=3, shape=(1, 12, 12), **options):
    return SITE(extractor, "trunk", n_classes, image_shape=shape, generator_options=TINY, **options)


def pictures(n=2, shape=(1, 12, 12)):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(0))


class Spatial(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.dropout = nn.Dropout()

    def forward(self, images):
        return self.dropout(self.conv(images))


# Pictures


@pytest.mark.parametrize("kind", [tiny, lambda: BlackBox("identity", 3, image_shape=(1, 12, 12))])
@pytest.mark.parametrize(
    ("images", "words"),
    [
        (torch.rand(2, 1, 12, 11), r"\(batch, 1, 12, 12\), got \(2, 1, 12, 11\)"),
        (torch.rand(2, 3, 12, 12), "images"),
        (torch.rand(1, 12, 12), "images"),
        (torch.zeros(2, 1, 12, 12, dtype=torch.int64), "int64"),
        (torch.rand(2, 1, 12, 12, dtype=torch.float64), "float64"),
    ],
)
def test_pictures_of_another_shape_or_type_are_refused(kind, images, words):
    with pytest.raises(ShapeError, match=words):
        kind().eval()(images)


def test_an_empty_batch_has_an_empty_explanation():
    found = tiny().explain(torch.zeros(0, 1, 12, 12))
    assert found.logits.shape == (0, 3)
    assert found.heatmaps().shape == (0, 3, 12, 12)
    assert found.heatmaps(classes=1).shape == (0, 12, 12)


@pytest.mark.parametrize(
    "extractor", sorted(name for name in EXTRACTORS if not name.startswith(("efficientnet", "two_scales")))
)
@pytest.mark.parametrize("shape", [(1, 27, 31), (5, 9, 33), (3, 1, 1)])
def test_sizes_and_channels_are_free(extractor, shape):
    depth = {} if extractor == "identity" else {"depth": 2}
    small = {"widths": (4, 4, 4)} if extractor == "small_cnn" else {}
    narrow = {"widths": (4, 4, 4, 4)} if extractor == "pyramid" else {}
    model = tiny(extractor, 3, shape, extractor_options=depth | small | narrow)
    assert model.explain(pictures(2, shape)).heatmaps().shape == (2, 3, *shape[1:])


# Modes and modules of one's own


def test_explain_uses_evaluation_mode_and_gives_every_part_its_own_mode_back():
    model = tiny(Spatial()).train()
    model.feature_extractor.dropout.eval()
    modes = [module.training for module in model.modules()]
    first, second = model.explain(pictures()), model.explain(pictures())
    assert torch.equal(first.logits, second.logits)
    assert [module.training for module in model.modules()] == modes
    with pytest.raises(ShapeError):
        model.explain(torch.rand(2, 1, 3, 3))
    assert [module.training for module in model.modules()] == modes
    assert not first.logits.requires_grad


def test_evaluating_restores_the_modes_after_an_error():
    model = nn.Sequential(nn.Dropout(), nn.Dropout().eval())

    def fail():
        with evaluating(model):
            assert not model[0].training
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [part.training for part in model] == [True, False]


def test_any_module_with_a_spatial_output_is_a_feature_extractor():
    extractor = Spatial()
    model = tiny(extractor)
    assert model.feature_shape == (4, 6, 6)
    assert model.config.feature_extractor == "custom"
    assert extractor.training
    assert model.config.product_scale == pytest.approx((4 * 6 * 6) ** -0.5)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(144, 5)), r"\(1, 5\)"),
        (nn.Conv2d(3, 4, 3), r"\(1, 12, 12\)"),
        (nn.MaxPool2d(13), "pictures"),
    ],
)
def test_other_modules_are_refused_as_extractors(module, words):
    with pytest.raises(ConfigError, match=words):
        tiny(module)


@pytest.mark.parametrize(
    "module", [nn.Conv2d(1, 3, 1), nn.Sequential(nn.Conv2d(1, 2, 1), nn.Unflatten(1, (2, 1)))]
)
def test_a_generator_must_give_one_prototype_per_class(module):
    with pytest.raises(ConfigError, match="generator"):
        SITE("identity", module, 3, image_shape=(1, 12, 12))


def test_a_generator_of_ones_own():
    module = nn.Sequential(nn.Conv2d(1, 3, 1), nn.Unflatten(1, (3, 1)))
    model = SITE("identity", module, 3, image_shape=(1, 12, 12))
    assert model(pictures()).shape == (2, 3)
    assert model.config.generator == "custom"


# Budgets


def cost(extractor, n_classes, shape, generator="trunk"):
    with torch.device("cpu"):
        model = SITE(extractor, generator, n_classes, image_shape=shape)
    return n_parameters(model.feature_extractor), n_parameters(model.generator)


def test_the_small_cnn_with_its_generator_has_about_1_2_million_parameters():
    assert sum(cost("small_cnn", 10, (3, 32, 32))) == pytest.approx(1.2e6, rel=0.06)


@pytest.mark.parametrize("shape", [(1, 12, 12), (2, 13, 7)])
@pytest.mark.parametrize("trunk", [(4, 4, 4), (4, 4), (4,)])
def test_a_lateral_trunk_may_stop_before_the_full_resolution(trunk, shape):
    """Its heads then draw several pixels at once, and every pixel can be drawn."""
    options = {"widths": (4, 5, 6), "code": 6, "trunk": trunk}
    model = SITE("identity", "lateral", 3, image_shape=shape, generator_options=options)
    raw = model.generator(pictures(3, shape))
    assert raw.shape == (3, 3, *shape)
    assert (raw.flatten(3).std(3) > 0).all()
    assert model.generator.heads.out_channels == 3 * shape[0] * 4 ** (3 - len(trunk))
    raw.sum().backward()
    assert all(p.grad is not None for p in model.generator.parameters())


@pytest.mark.parametrize("trunk", [(), (4, 4, 4, 4)])
def test_a_lateral_trunk_has_no_more_resolutions_than_the_encoder(trunk):
    options = {"widths": (4, 5, 6), "code": 6, "trunk": trunk}
    with pytest.raises(ConfigError, match="trunk: "):
        SITE("identity", "lateral", 3, image_shape=(1, 12, 12), generator_options=options)


# Tools that see an ordinary classifier


@pytest.mark.parametrize("generator", ["trunk", "lateral"])
@pytest.mark.filterwarnings("ignore::FutureWarning:torch")
def test_the_forward_pass_can_be_exported(generator):
    model = SITE("pyramid", generator, 3, image_shape=(3, 16, 16)).eval()
    images = pictures(3, (3, 16, 16))
    batch = torch.export.Dim("batch", min=2, max=8)
    exported = torch.export.export(model, (images,), dynamic_shapes=({0: batch},)).module()
    more = pictures(5, (3, 16, 16))
    torch.testing.assert_close(exported(more), model(more), rtol=1e-4, atol=1e-4)
