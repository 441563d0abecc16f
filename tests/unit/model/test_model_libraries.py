"""Backbones by name, over a dozen families of timm: the contract holds for all."""

import copy
import sys

import pytest
import torch

from backbone_libraries import backbone_library
from torchsite import extras
from torchsite.errors import ConfigError, MissingExtraError, WeightsError
from torchsite.model import SITE, timm_backbone
from torchsite.model.extractor import ParameterGroup
from torchsite.model.extractors import build_extractor
from torchsite.model.timm_backbone import chosen_levels
from torchsite.training import TrainingConfig
from torchsite.training.optimisers import make_optimisers

# The smallest of each family, with what timm says of its strides.
CONVOLUTIONAL = {
    "test_resnet": [2, 4, 8, 16, 32],
    "test_convnext": [4, 8, 16, 32],
    "test_efficientnet": [2, 4, 8, 16, 32],
    "test_byobnet": [2, 4, 8, 16, 32],
    "test_nfnet": [2, 4, 8, 16, 32],
    "test_mambaout": [4, 8, 16, 32],
    "mobilenetv3_small_050": [2, 4, 8, 16, 32],
    "lcnet_035": [2, 4, 8, 16, 32],
    "ghostnet_050": [2, 4, 8, 16, 32],
    "regnetx_002": [2, 4, 8, 16, 32],
    "dla46_c": [1, 2, 4, 8, 16, 32],
    "efficientvit_b0": [4, 8, 16, 32],
    "edgenext_xx_small": [4, 8, 16, 32],
}
TRANSFORMER = "test_vit"
TIMM = [f"timm/{name}" for name in (*CONVOLUTIONAL, TRANSFORMER)]
FEW = ("timm/test_resnet", f"timm/{TRANSFORMER}")
SHAPE = (3, 64, 64)


def families(names):
    """As parameters: a few quick ones, the others for the whole run."""
    return [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in names]


SMALL = {"widths": (4, 4), "trunk": (4, 4)}
RANDOM = {"weights": None, "depth": 4, "common": 8}


@pytest.fixture(scope="module", autouse=True)
def _timm():
    backbone_library("timm")


def site(name, **options):
    return SITE(name, "spatial", 3, image_shape=SHAPE, generator_options=SMALL, extractor_options=options)


@pytest.fixture(params=families(TIMM))
def model(request):
    model = site(request.param, **RANDOM)
    with torch.no_grad():  # many networks start with branches that are switched off
        rng = torch.Generator().manual_seed(0)
        for parameter in model.parameters():
            parameter += 0.02 * torch.randn(parameter.shape, generator=rng)
    return model


def test_every_family_is_spatial_complete_trainable_and_comes_back(model, tmp_path):
    rng = torch.Generator().manual_seed(0)
    images = torch.rand(2, *SHAPE, generator=rng)
    depth, rows, cols = model.feature_shape
    fixed = model.config.feature_extractor.endswith(TRANSFORMER)
    assert (depth, rows, cols) == ((4, 4, 4) if fixed else (4, 8, 8))
    assert model.any_size == (not fixed)

    logits = model.train()(images)
    (logits * torch.randn(logits.shape, generator=rng)).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [name for name, gradient in gradients.items() if gradient is None] == []
    still = [name for name, gradient in gradients.items() if not gradient.abs().sum() > 0]
    # A convolution's bias before a batch norm, and a key's bias before a softmax, change nothing.
    assert [name for name in still if not name.endswith(".bias")] == []

    explanation = model.explain(images)
    assert torch.allclose(explanation.evidence.sum((-2, -1)), model.eval()(images), atol=1e-5)
    again = SITE.from_pretrained(model.save_pretrained(tmp_path))
    assert torch.equal(again(images), model(images))
    assert torch.equal(copy.deepcopy(model)(images), model(images))
    if not fixed:
        assert model(torch.rand(1, 3, 64, 96, generator=rng)).shape == (1, 3)


@pytest.mark.parametrize("name", families(f"timm/{name}" for name in CONVOLUTIONAL))
def test_each_level_has_its_stride(name):
    strides = CONVOLUTIONAL[name.removeprefix("timm/")]
    level = len(strides) - 2
    extractor = build_extractor(name, SHAPE, {"level": level, "weights": None})
    assert extractor.backbone.strides() == strides
    assert extractor.stride(SHAPE) == strides[level]
    features = extractor.eval()(torch.rand(1, *SHAPE))
    assert features.shape[-2:] == (64 // strides[level], 64 // strides[level])


@pytest.mark.parametrize("name", ["timm/test_resnet", "timm/test_vit"])
def test_models_with_them_can_be_exported(name):
    model, images = site(name, **RANDOM).eval(), torch.rand(2, *SHAPE)
    program = torch.export.export(model, (images,))
    assert torch.allclose(program.module()(images), model(images), atol=1e-5)


@pytest.mark.parametrize(
    ("strides", "level", "chosen"),
    [
        ([2, 4, 8, 16, 32], None, (2, 3, 4)),
        ([16] * 6, None, (5,)),
        ([1, 2, 4], None, (2,)),
        ([2, 4, 8], -1, (2,)),
        ([2, 4, 8], (-1, 0, 2), (0, 2)),
    ],
)
def test_levels_are_chosen(strides, level, chosen):
    assert chosen_levels(strides, level) == chosen


@pytest.mark.parametrize("level", [3, -4, (), (0, 9)])
def test_a_level_that_is_not_there_is_an_error(level):
    with pytest.raises(ConfigError, match="level"):
        chosen_levels([2, 4, 8], level)


# Weights


def test_weights_of_a_file_are_an_error_that_names_the_other_way():
    with pytest.raises(ConfigError, match="from_classifier"):
        site("timm/test_resnet", weights="resnet.safetensors")


def test_weights_that_cannot_be_had_are_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(
        "urllib.request.urlopen", lambda *_, **__: (_ for _ in ()).throw(OSError("no network"))
    )
    with pytest.raises(WeightsError, match="from_classifier"):
        site("timm/test_resnet.r160_in1k")


# What they say of themselves


def test_statistics_are_the_librarys():
    assert site("timm/lcnet_035", **RANDOM).config.mean == (0.485, 0.456, 0.406)
    assert site("timm/test_vit", **RANDOM).config.std == (0.5, 0.5, 0.5)
    grey = build_extractor("timm/test_resnet", (1, 64, 64), RANDOM)
    assert grey.mean == (0.5,)
    assert grey.eval()(torch.rand(1, 1, 64, 64)).shape == (1, 4, 8, 8)


def test_weights_that_have_learnt_are_tuned_at_a_share_of_the_rate_and_keep_their_statistics():
    extractor = build_extractor("timm/test_resnet", SHAPE, {"fine_tuning": 0.25})
    assert extractor.pretrained
    groups = [
        g for o in make_optimisers(extractor, TrainingConfig(learning_rate=0.01)) for g in o.param_groups
    ]
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert {rates[id(p)] for p in extractor.body.parameters()} == {0.0025}
    assert {rates[id(p)] for p in extractor.answer.parameters()} == {0.01}
    before = {name: value.clone() for name, value in extractor.named_buffers()}
    extractor.train()(torch.rand(4, *SHAPE))
    changed = [name for name, value in extractor.named_buffers() if not torch.equal(value, before[name])]
    assert changed
    assert all(name.startswith("answer.") for name in changed)


def test_random_weights_learn_at_the_full_rate_and_gather_statistics():
    extractor = build_extractor("timm/test_resnet", SHAPE, {"weights": None})
    assert not extractor.pretrained
    assert [group.learning_rate_factor for group in extractor.parameter_groups()] == [1, 1]
    before = {name: value.clone() for name, value in extractor.body.named_buffers()}
    extractor.train()(torch.rand(4, *SHAPE))
    assert any(not torch.equal(value, before[name]) for name, value in extractor.body.named_buffers())


def test_frozen_weights_ask_for_no_gradient():
    extractor = build_extractor("timm/test_resnet", SHAPE, {"fine_tuning": 0.0})
    assert not any(p.requires_grad for p in extractor.body.parameters())
    assert isinstance(extractor.parameter_groups()[0], ParameterGroup)


# Errors


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("timm/resnet81", "resnet"),
        ("timm/hf-hub:someone/something", "hf-hub"),
        ("torchvision/resnet18", "timm/NAME"),
        ("tim/resnet18", "known: .*timm/"),
    ],
)
def test_unknown_names_are_errors(name, said):
    with pytest.raises(ConfigError, match=said):
        build_extractor(name, SHAPE, RANDOM)


def test_unknown_options_are_errors():
    with pytest.raises(ConfigError, match="'level'"):
        build_extractor("timm/test_resnet", SHAPE, {"levels": 1})


def test_without_the_extra_the_error_names_it_in_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'torchsite\[timm\]'$") as caught:
        build_extractor("timm/resnet18", SHAPE, {})
    assert "\n" not in str(caught.value)


def test_a_library_that_does_not_fit_torch_is_an_error_that_says_so(monkeypatch):
    def broken(_):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(extras, "import_module", broken)
    with pytest.raises(MissingExtraError, match=r"nms does not exist\)"):
        timm_backbone.TimmBackbone("resnet18", 3, (64, 64))
