"""Layers, bad input, and what the methods have in common."""

import pytest
import torch
from attribution_networks import batch, small_resnet, small_vgg
from torch import nn

from torchsite.attribution import METHODS, Attribution
from torchsite.errors import ConfigError, NotApplicableError, ShapeError

POST_HOC = sorted(METHODS.keys() - {"self_explanation"})
LAYERED = [
    "contrastive_excitation_backprop",
    "excitation_backprop",
    "grad_cam",
    "linear_approximation",
    "score_cam",
]


def test_the_table_has_every_method_of_the_paper_and_more():
    paper = {"gradient", "guided_backprop", "deconvnet", "linear_approximation", "grad_cam"}
    paper |= {"excitation_backprop", "rise", "extremal_perturbation"}
    expected = {"integrated_gradients", "smooth_grad", "occlusion", "score_cam", "random"}
    expected |= {"contrastive_excitation_backprop", "self_explanation"}
    assert set(METHODS) == paper | expected
    assert all(issubclass(method, Attribution) for method in METHODS.values())


class Counting(nn.Module):
    """A network that counts the pictures it is asked about; one that is asked for its slope counts thrice."""

    def __init__(self, net):
        super().__init__()
        self.net, self.passes = net, 0

    def forward(self, images):
        self.passes += len(images) * (3 if images.requires_grad else 1)
        return self.net(images)


@pytest.mark.parametrize("name", POST_HOC)
def test_a_method_says_on_its_class_whether_it_asks_many_times(name):
    net = Counting(nn.Sequential(nn.Conv2d(1, 64, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.Linear(2304, 4)))
    images, classes = torch.rand(1, 1, 28, 28), torch.zeros(1, dtype=torch.int64)
    method = METHODS[name](net, **METHODS[name].budget)
    method(images, classes)  # the first call also chooses layers and layouts
    net.passes = 0
    method(images, classes)
    assert METHODS[name].is_slow() == (net.passes > 10)
    if METHODS[name].is_slow():
        assert net.passes == pytest.approx(METHODS[name].passes, rel=0.35)


def test_a_slow_method_gets_as_many_pictures_as_its_passes_allow():
    rise = METHODS["rise"]
    assert rise.n_pictures(1000, 10 * rise.passes) == 10
    assert rise.n_pictures(5, 10 * rise.passes) == 5
    assert rise.n_pictures(1000, 1) == 1
    assert METHODS["gradient"].n_pictures(1000, 1) == 1000


@pytest.mark.parametrize("name", LAYERED)
def test_a_layer_by_module_by_name_or_the_last_spatial_one(name):
    net, (images, classes) = small_vgg(0), batch(0)
    by_name, by_module, chosen = (
        METHODS[name](net, layer="4"),
        METHODS[name](net, layer=net[4]),
        METHODS[name](net),
    )
    assert by_name.layer_for(images) == by_module.layer_for(images) == "4"
    maps = [method(images, classes) for method in (by_name, by_module, chosen)]
    assert chosen.layer_for(images) == "4"
    assert torch.equal(maps[0], maps[1])
    assert torch.equal(maps[0], maps[2])


@pytest.mark.parametrize("name", ["gradient", "rise", "occlusion"])
def test_methods_on_pictures_name_no_layer(name):
    net, (images, classes) = small_vgg(0), batch(0)
    method = METHODS[name](net, **({"n_masks": 4} if name == "rise" else {}))
    method(images, classes)
    assert method.layer_for(images) is None


class Odd(nn.Module):
    """A layer twice used, one never used, one that the logits do not depend on, one that answers a pair."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU())
        self.twice = nn.ReLU()
        self.never = nn.Conv2d(2, 2, 3)
        self.aside = nn.Conv2d(3, 3, 3)
        self.pair = Pair()
        self.head = nn.Linear(3, 4)
        self.double().eval()

    def forward(self, images):
        last = self.block(self.twice(self.conv(self.twice(images))))
        self.aside(last)
        return self.head(self.pair(last)[0].amax((2, 3)))


class Pair(nn.Module):
    def forward(self, features):
        return features, features


def test_the_last_spatial_layer_is_the_outermost_that_the_logits_depend_on():
    images, classes = batch(0)
    method = METHODS["grad_cam"](Odd())
    method(images, classes)
    assert method.layer_for(images) == "block"


@pytest.mark.parametrize("name", LAYERED)
def test_a_layer_that_cannot_be_explained(name):
    images, classes = batch(0)
    for layer in ("twice", "never", "head", "pair", "aside"):
        if (name, layer) == ("score_cam", "aside"):
            continue  # it only makes masks of the layer, and the logits need not depend on it
        with pytest.raises(NotApplicableError, match=layer):
            METHODS[name](Odd(), layer=layer)(images, classes)


@pytest.mark.parametrize("name", LAYERED)
def test_strangers_and_models_without_space(name):
    net, (images, classes) = small_vgg(0), batch(0)
    with pytest.raises(NotApplicableError, match="44"):
        METHODS[name](net, layer="44")
    with pytest.raises(NotApplicableError):
        METHODS[name](net, layer=nn.ReLU())
    flat = nn.Sequential(nn.Flatten(), nn.Linear(128, 4)).double()
    with pytest.raises(NotApplicableError, match="spatial"):
        METHODS[name](flat)(images, classes)


BAD_IMAGES = {
    "three axes": torch.rand(2, 8, 8),
    "no rows": torch.rand(2, 2, 0, 8),
    "whole numbers": torch.zeros(2, 2, 8, 8, dtype=torch.uint8),
    "NaN": torch.full((2, 2, 8, 8), torch.nan),
    "infinity": torch.full((2, 2, 8, 8), torch.inf),
    "no tensor": [[1.0]],
}
BAD_CLASSES = [[0, 1, 2], [[0, 1]], [0.0, 1.0], [True, False], [-1, 0], [0, 4]]


@pytest.mark.parametrize("name", ["gradient", "grad_cam", "random", "rise"])
def test_bad_input(name):
    method = METHODS[name](small_vgg(0).float())
    for images in BAD_IMAGES.values():
        with pytest.raises(ShapeError, match="images"):
            method(images, torch.tensor([0, 1]))
    for classes in BAD_CLASSES:
        with pytest.raises(ShapeError, match="classes"):
            method(torch.rand(2, 2, 8, 8), torch.tensor(classes))


def test_bad_targets_and_classes_that_are_no_tensor():
    method, (images, _) = METHODS["gradient"](small_vgg(0)), batch(0)
    with pytest.raises(ShapeError, match="bool"):
        method.attribute(images, target=True)
    with pytest.raises(ShapeError, match="classes"):
        method.attribute(images, target=[0, 1])
    with pytest.raises(ShapeError, match="list"):
        method(images, [0, 1, 2])


def test_models_that_are_no_classifiers():
    images, classes = batch(0)
    with pytest.raises(ConfigError, match="Module"):
        METHODS["gradient"](lambda x: x)
    with pytest.raises(NotApplicableError, match="logits"):
        METHODS["gradient"](nn.Identity())(images, classes)
    with pytest.raises(NotApplicableError, match="tuple"):
        METHODS["rise"](Pair())(images, classes)
    broken = small_vgg(0)
    with torch.no_grad():
        broken[0].weight.fill_(torch.nan)
    with pytest.raises(NotApplicableError, match="NaN"):
        METHODS["gradient"](broken)(images, classes)


@pytest.mark.parametrize("name", POST_HOC)
def test_no_pictures_no_maps(name):
    empty = torch.rand(0, 2, 8, 6, dtype=torch.float64)
    assert METHODS[name](small_vgg(0))(empty, torch.zeros(0, dtype=torch.int64)).shape == (0, 8, 6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gradient", {"internal_batch_size": 0}),
        ("rise", {"chunk": 8}),  # its earlier name
        ("rise", {"n_masks": 0}),
        ("rise", {"keep": 1.0}),
        ("rise", {"score": "entropy"}),
        ("rise", {"seed": 1, "rng": torch.Generator()}),
        ("smooth_grad", {"noise": -1}),
        ("occlusion", {"stride": 0}),
        ("integrated_gradients", {"n_steps": 0}),
        ("extremal_perturbation", {"areas": ()}),
        ("extremal_perturbation", {"areas": (0.1, 1.5)}),
        ("extremal_perturbation", {"penalty": (0.0, 1.0)}),
        ("extremal_perturbation", {"n_levels": 1}),
        ("random", {"grid": 0}),
    ],
)
def test_options_out_of_range(name, options):
    with pytest.raises(ConfigError):
        METHODS[name](small_vgg(0), **options)


class Explained(nn.Module):
    """A model that explains itself, as far as the contract asks."""

    def forward(self, images):
        return images.mean((2, 3))

    def explain(self, images):
        return Reasons(images)


class Reasons:
    def __init__(self, images):
        self.images = images

    def heatmaps(self, *, size, classes):
        assert size == self.images.shape[-2:]
        return self.images[torch.arange(len(self.images)), classes]


def test_a_model_that_explains_itself():
    images, classes = torch.rand(5, 3, 6, 7), torch.tensor([0, 1, 2, 0, 1])
    maps = METHODS["self_explanation"](Explained(), internal_batch_size=2)(images, classes)
    assert torch.equal(maps, images[torch.arange(5), classes])
    with pytest.raises(ShapeError, match="below 3"):
        METHODS["self_explanation"](Explained())(images, torch.full((5,), 3))
    with pytest.raises(NotApplicableError, match="explain"):
        METHODS["self_explanation"](small_resnet(0))


class Overwriting(nn.Module):
    """Normalises its input in place, and flattens with view."""

    def __init__(self):
        super().__init__()
        self.net = small_vgg(0)

    def forward(self, images):
        images.sub_(0.1)
        features = self.net[4](self.net[:4](images))
        return self.net[6:](features.view(len(images), -1))


@pytest.mark.parametrize("name", POST_HOC)
def test_a_model_may_overwrite_its_input_and_view_its_features(name):
    images, classes = batch(0)
    given = images.clone()
    maps = METHODS[name](Overwriting(), **({"n_masks": 8} if name == "rise" else {}))(images, classes)
    assert maps.abs().max() > 0
    assert torch.equal(images, given)


@pytest.mark.parametrize("name", ["gradient", *LAYERED])
def test_explaining_changes_nothing_on_the_method(name):
    net, (images, classes) = small_vgg(0), batch(0)
    method = METHODS[name](net)
    before = dict(vars(method))
    method(images, classes)
    assert vars(method) == before


class Growing(nn.Module):
    """Its last convolution is spatial only for pictures of more than 8 pixels."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 3, 3, stride=2, padding=1), nn.Conv2d(3, 4, 4, stride=4)
        self.double().eval()

    def forward(self, images):
        return self.last(self.first(images)).amax((2, 3))


def test_the_layer_left_out_does_not_depend_on_the_pictures_before():
    small, large = (torch.rand(1, 2, n, n, dtype=torch.float64) for n in (8, 16))
    method, fresh = METHODS["grad_cam"](Growing()), METHODS["grad_cam"](Growing())
    for images, expected in ((small, "first"), (large, "last"), (small, "first")):
        method(images, torch.tensor([1]))
        assert method.layer_for(images) == fresh.layer_for(images) == expected
