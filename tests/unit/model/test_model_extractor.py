"""What extractors say of themselves: normalisation, start, learning rates, stride and receptive field."""

import pytest
import torch
from torch import nn

import experiments  # noqa: F401  # its forms of the parts obey the same laws
from torchsite.model import EXTRACTORS, SITE, BlackBox, FeatureExtractor, ParameterGroup
from torchsite.model.base import USUAL_MEAN, USUAL_STD
from torchsite.model.extractor import as_extractor
from torchsite.model.extractors import build_extractor
from torchsite.training import TrainingConfig
from torchsite.training.optimisers import make_optimisers

SMALL = {"widths": (4, 4), "trunk": (4, 4)}
STRIDES = {
    "identity": 1,
    "small_cnn": 4,
    "pyramid": 2,
    "two_scales": 4,
    "two_scales_parts": 4,
} | {f"efficientnet_lite{n}": 8 for n in range(3)}


class Told(FeatureExtractor):
    """An extractor that says everything itself."""

    mean, std = (0.1,), (0.2,)
    pretrained = True

    def __init__(self, channels=1, size=(8, 8), member=""):
        super().__init__()
        self.body, self.head = nn.Conv2d(channels, 4, 3, padding=1), nn.Conv2d(4, 2, 1)
        self.member = member

    def forward(self, images):
        return self.head(self.body(images))

    def load_pretrained(self):
        nn.init.constant_(self.body.weight, 0.25)

    def parameter_groups(self):
        slow = ParameterGroup(tuple(self.body.parameters()), 0.5)
        return [slow, ParameterGroup(tuple(self.head.parameters()))]


def site(extractor, shape=(1, 8, 8), **options):
    return SITE(extractor, "spatial", 3, image_shape=shape, generator_options=SMALL, **options)


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setitem(EXTRACTORS, "told", Told)


def test_a_new_model_normalises_as_its_extractor_says_and_starts_from_its_weights(told):
    model = site("told")
    assert (model.config.mean, model.config.std) == ((0.1,), (0.2,))
    assert bool((model.feature_extractor.body.weight == 0.25).all())
    assert not (site("told", pretrained=False).feature_extractor.body.weight == 0.25).any()


def test_a_configured_normalisation_comes_first(told):
    model = site("told", mean=[0.7], std=[0.8])
    assert (model.config.mean, model.config.std) == ((0.7,), (0.8,))


def test_a_saved_model_never_asks_for_the_weights_to_start_from(told, tmp_path, monkeypatch):
    model = site("told").eval()
    model.save_pretrained(tmp_path)
    monkeypatch.setattr(Told, "load_pretrained", lambda _: pytest.fail("loaded the start"))
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(SITE.from_pretrained(tmp_path)(images), model(images))


def test_an_extractor_of_ones_own_keeps_the_weights_it_comes_with():
    mine = Told()
    before = mine.body.weight.detach().clone()
    assert torch.equal(site(mine).feature_extractor.body.weight, before)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_the_optimiser_reads_the_groups_of_extractors_wherever_they_are(optimiser):
    model = BlackBox(Told(), 3, image_shape=(1, 8, 8), encoder_options={"widths": (4,), "code": 4})
    config = TrainingConfig(learning_rate=0.01, optimiser=optimiser)
    groups = [group for opt in make_optimisers(model, config) for group in opt.param_groups]
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in model.feature_extractor.body.parameters()} == {0.005}
    assert {rates[id(p)] for p in model.feature_extractor.head.parameters()} == {0.01}
    assert rates.keys() == {id(p) for p in model.parameters()}


def test_a_family_of_extractors_builds_its_members_by_name(monkeypatch):
    monkeypatch.setitem(EXTRACTORS, "family/", lambda member, channels, size: Told(channels, size, member))
    model = site("family/one")
    assert model.feature_extractor.member == "one"
    assert model.config.feature_extractor == "family/one"


def test_defaults_hold_for_a_plain_module():
    plain = nn.Conv2d(1, 4, 3, stride=2, padding=1)
    model, seen = site(plain), as_extractor(plain)
    assert (model.config.mean, model.config.std) == ((USUAL_MEAN,), (USUAL_STD,))
    assert not seen.pretrained
    assert not model.pixels_are_features
    (group,) = seen.parameter_groups()
    assert [id(p) for p in group.parameters] == [id(p) for p in plain.parameters()]
    assert group.learning_rate_factor == 1
    assert seen.stride((1, 8, 8)) == 2


# Geometry


@pytest.mark.parametrize("name", sorted(EXTRACTORS))
@pytest.mark.parametrize("size", [(32, 32), (45, 37)])
def test_strides_are_found(name, size):
    assert build_extractor(name, (3, *size), {}).stride((3, *size)) == STRIDES[name]


def test_options_change_the_stride():
    shape = (3, 96, 96)
    assert build_extractor("efficientnet_lite0", shape, {"stride": 4}).stride(shape) == 4


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Conv2d(1, 2, 1)),
        nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.Unflatten(1, (1, 4, 4))),
    ],
)
def test_an_extractor_for_one_size_has_no_stride(module):
    assert as_extractor(module).stride((1, 8, 8)) is None
