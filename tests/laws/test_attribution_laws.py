"""What must hold for every model, picture and seed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, sampled_from
from torch import nn
from torch.nn import functional as F

from torchsite.attribution import METHODS
from torchsite.attribution.rise import balanced_coins, cropped
from torchsite.randomness import make_rng

QUICK = {
    "rise": {"n_masks": 20},
    "extremal_perturbation": {"n_steps": 3, "cells": 5, "areas": (0.1, 0.2)},
    "smooth_grad": {"n_samples": 3},
    "integrated_gradients": {"n_steps": 4},
}
POST_HOC = sorted(METHODS.keys() - {"self_explanation"})
laws = settings(max_examples=8, deadline=None)
seeds = integers(0, 2**32)


def draw(seed, *shape):
    return torch.rand(shape, generator=make_rng(seed), dtype=torch.float64)


def signed(seed, *shape):
    return torch.randn(shape, generator=make_rng(seed), dtype=torch.float64)


def network(seed, channels=3, n_classes=4):
    """Convolutions, a skip sum, batch norm, a functional ReLU, upsampling, average pool."""

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(channels, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.act = nn.ReLU(inplace=True)
            self.second = nn.Conv2d(4, 4, 3, padding=1, stride=2)
            self.head = nn.Linear(4, n_classes)

        def forward(self, images):
            wide = self.act(self.norm(self.first(images)))
            narrow = F.interpolate(self.second(wide), scale_factor=2, mode="bilinear")
            return self.head(F.relu(narrow + wide).mean((2, 3)))

    net = Network().double()
    with torch.no_grad():
        for n, tensor in enumerate(net.parameters()):
            tensor.copy_(0.5 * signed(seed + n, *tensor.shape))
    return net


class LinearModel(nn.Module):
    """logit_k = Σ w_k ⊙ x + b_k."""

    def __init__(self, weights, bias=0.0):
        super().__init__()
        self.weights = nn.Parameter(weights)
        self.bias = bias

    def forward(self, images):
        return torch.einsum("kchw,nchw->nk", self.weights, images) + self.bias


@pytest.mark.parametrize("name", POST_HOC)
@given(seed=seeds, n=integers(1, 4), chunk=integers(1, 7))
@laws
def test_no_picture_affects_another_and_no_chunk_the_result(name, seed, n, chunk):
    net, images = network(seed), draw(seed, n, 3, 8, 8)
    classes = torch.arange(n) % 4
    options = QUICK.get(name, {})
    together = METHODS[name](net, **options)(images, classes)
    alone = METHODS[name](net, internal_batch_size=chunk, **options)
    parts = [alone(images[i : i + 1], classes[i : i + 1]) for i in range(n)]
    torch.testing.assert_close(torch.cat(parts), together, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(alone(images, classes), together, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", POST_HOC)
def test_maps_have_the_size_of_any_picture_and_captums_spelling(name):
    for channels, rows, cols in ((1, 6, 10), (5, 12, 8)):
        net, images = network(0, channels).float(), draw(1, 2, channels, rows, cols).float()
        method = METHODS[name](net, **QUICK.get(name, {}))
        maps = method(images, torch.tensor([1, 1]))
        assert maps.shape == (2, rows, cols)
        assert maps.dtype == torch.float32
        assert not maps.requires_grad
        for target in (1, [1, 1], torch.tensor(1), torch.tensor([1, 1])):
            assert torch.equal(method.attribute(images, target=target), maps[:, None])
        assert (method.attribute(images, target=1) * images).shape == images.shape


@pytest.mark.parametrize("name", POST_HOC)
def test_the_same_seed_gives_the_same_map_and_the_global_state_is_left_alone(name):
    net, images, classes = network(0), draw(1, 2, 3, 8, 8), torch.tensor([0, 3])
    method = METHODS[name](net, **QUICK.get(name, {}))
    before = torch.get_rng_state()
    first = method(images, classes)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(method(images, classes), first)


@pytest.mark.parametrize("name", ["rise", "smooth_grad", "random"])
def test_an_rng_runs_on_and_a_seed_decides(name):
    net, images, classes = network(0), draw(1, 2, 3, 8, 8), torch.tensor([0, 3])
    running = METHODS[name](net, rng=make_rng(1), **QUICK.get(name, {}))
    assert not torch.equal(running(images, classes), running(images, classes))
    one, other = (METHODS[name](net, seed=s, **QUICK.get(name, {}))(images, classes) for s in (1, 2))
    assert not torch.equal(one, other)


@given(seed=seeds)
@laws
def test_on_a_linear_model_the_gradient_is_the_weights(seed):
    weights, images = signed(seed, 3, 2, 5, 6), signed(seed + 1, 4, 2, 5, 6)
    classes = torch.tensor([0, 1, 2, 0])
    model = LinearModel(weights, bias=0.7)
    expected = weights[classes].abs().amax(1)
    for name in ("gradient", "guided_backprop", "deconvnet", "smooth_grad"):
        torch.testing.assert_close(METHODS[name](model)(images, classes), expected)
    contributions = (weights[classes] * (images - 0.3)).sum(1)
    found = METHODS["integrated_gradients"](model, baseline=0.3)(images, classes)
    torch.testing.assert_close(found, contributions, rtol=1e-5, atol=1e-6)
    falls = METHODS["occlusion"](model, window=1, baseline=0.3)(images, classes)
    torch.testing.assert_close(falls, contributions, rtol=1e-4, atol=1e-5)


@given(seed=seeds, baseline=floats(0, 1))
@laws
def test_integrated_gradients_are_complete(seed, baseline):
    net, images, classes = network(seed).eval(), draw(seed, 3, 3, 8, 8), torch.tensor([0, 1, 2])
    maps = METHODS["integrated_gradients"](net, baseline=baseline, n_steps=400)(images, classes)
    with torch.no_grad():
        rise = (net(images) - net(torch.full_like(images, baseline))).gather(1, classes[:, None])[:, 0]
    torch.testing.assert_close(maps.sum((1, 2)), rise, rtol=2e-2, atol=2e-2)


@given(seed=seeds, layer=sampled_from(["act", "norm", "first"]))
@laws
def test_excitation_backprop_conserves_its_sum(seed, layer):
    """Probability 1 starts at the class and 1 arrives, when every unit has a contributor."""
    net, images = network(seed), draw(seed, 3, 3, 8, 8)
    with torch.no_grad():
        net.first.bias += 3  # every unit fires, so nothing ends half-way
        net.first.weight.abs_()
        net.norm.weight.abs_()
        net.norm.bias.abs_()
        net.second.weight.abs_()
        net.head.weight.abs_()
    classes = torch.tensor([0, 1, 2])
    maps = METHODS["excitation_backprop"](net, layer=layer)(images, classes)
    torch.testing.assert_close(maps.sum((1, 2)), torch.ones(3, dtype=torch.float64))
    assert maps.min() >= 0


@given(seed=seeds)
@laws
def test_contrastive_excitation_sums_to_zero(seed):
    net, images = network(seed), draw(seed, 2, 3, 8, 8)
    with torch.no_grad():
        net.first.weight.abs_()
        net.first.bias += 3
        net.norm.weight.abs_()
        net.norm.bias.abs_()
        net.second.weight.abs_()
        net.head.weight.copy_(torch.tensor([1.0, -1, 1, -1]) * signed(seed, 4, 4).abs())
    maps = METHODS["contrastive_excitation_backprop"](net, layer="act")(images, torch.tensor([0, 1]))
    torch.testing.assert_close(maps.sum((1, 2)), torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-9)


class Product(nn.Module):
    """A self-explaining model in small: features, prototypes made from them, the sum of their product."""

    def __init__(self, seed, last=nn.Sigmoid, spelling="einsum"):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).double()[:, None, None])
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1, stride=2), nn.ReLU(), nn.Conv2d(4, 2, 1), last()
        )
        self.encoder = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64, 16)
        )
        self.decoder = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(4, 12, 2, 2), nn.PixelShuffle(1), last())
        self.spelling = spelling
        self.double()
        with torch.no_grad():
            for n, tensor in enumerate(self.parameters()):
                tensor.copy_(0.5 * signed(seed + n, *tensor.shape))

    def forward(self, images):
        features = self.features((images - self.mean) / 0.25)
        prototypes = self.decoder(self.encoder(features).view(-1, 4, 2, 2)).unflatten(1, (6, 2))
        if self.spelling == "einsum":
            return torch.einsum("nkdhw,ndhw->nk", prototypes, features) / 5.0
        return (prototypes * features[:, None] * 0.2).sum((2, 3, 4))


@given(seed=seeds)
@laws
def test_a_product_of_two_factors_is_split_evenly_however_it_is_spelled(seed):
    images, classes = draw(seed, 2, 3, 8, 8), torch.tensor([0, 5])
    for layer in ("features", "decoder"):
        maps = [
            METHODS["excitation_backprop"](Product(seed, spelling=s), layer=layer)(images, classes)
            for s in ("einsum", "product")
        ]
        torch.testing.assert_close(*maps)
    half = torch.full((2,), 0.5 * 4, dtype=torch.float64)  # 4: the map is enlarged from 4×4 to 8×8
    torch.testing.assert_close(maps[0].sum((1, 2)), half)


def test_the_layer_left_out_is_the_last_that_everything_passes_through():
    """Prototypes run later than features, but the features by-pass them on their way to the product."""
    for model, expected in ((Product(0), "features"), (network(0), "act")):
        method = METHODS["grad_cam"](model)
        method(draw(0, 2, 3, 8, 8), torch.tensor([0, 1]))
        assert method.layer_for(draw(0, 2, 3, 8, 8)) == expected


@pytest.mark.parametrize("name", POST_HOC)
def test_every_method_answers_or_refuses_on_a_product_of_prototypes(name):
    from torchsite.errors import NotApplicableError

    images, classes = draw(0, 2, 3, 8, 8), torch.tensor([0, 5])
    for last in (nn.Sigmoid, nn.Tanh):
        method = METHODS[name](Product(0, last), **QUICK.get(name, {}))
        refuses = (name == "excitation_backprop" and last is nn.Tanh) or name.startswith("contrastive")
        if refuses:
            with pytest.raises(NotApplicableError):
                method(images, classes)
        else:
            assert method(images, classes).abs().max() > 0


def test_rise_on_a_linear_model_finds_the_weights_up_to_affine():
    """E[Σ w·M · M(u)]/p is affine in the weights smoothed by the mask's covariance."""
    weights = torch.zeros(2, 1, 14, 14, dtype=torch.float64)
    weights[0, 0, 2:6, 8:12] = 1.0
    weights[1, 0, 9:13, 1:5] = -1.0
    model, images = LinearModel(weights), torch.ones(2, 1, 14, 14, dtype=torch.float64)
    maps = METHODS["rise"](model, n_masks=1024, score="logit")(images, torch.tensor([0, 1]))
    coins, offsets = balanced_coins(4096, 8, make_rng(9))
    masks = cropped(coins.double(), offsets, (14, 14)).flatten(1)
    covariance = (masks - 0.5).T @ (masks - 0.5) / len(masks)
    for found, weight in zip(maps, weights[:, 0], strict=True):
        expected = weight.flatten() @ covariance / 0.5 + 0.5 * weight.sum()
        torch.testing.assert_close(found.flatten(), expected, rtol=0, atol=0.15)
        assert torch.corrcoef(torch.stack([found.flatten(), expected]))[0, 1] > 0.99


@given(seed=seeds, side=integers(2, 8))
@laws
def test_balanced_masks_are_balanced(seed, side):
    """In a block every cell shows 1 half of the time, and any two cells are uncorrelated."""
    block = 2 * 2 ** ((side**2 - 1).bit_length())
    coins, offsets = balanced_coins(2 * block, side, make_rng(seed))
    for part in coins.split(block):
        centred = part.flatten(1).double() - 0.5
        assert torch.equal(centred.sum(0), torch.zeros(side**2, dtype=torch.float64))
        assert torch.equal(centred.T @ centred, block / 4 * torch.eye(side**2, dtype=torch.float64))
    assert offsets.min() >= 0
    assert offsets.max() < 1


def test_balanced_masks_reach_the_same_map_with_less_noise():
    net, images, classes = network(3).float(), draw(1, 2, 3, 16, 16).float(), torch.tensor([0, 1])
    truth = METHODS["rise"](net, n_masks=8192, seed=5)(images, classes)
    errors = [
        (METHODS["rise"](net, n_masks=n, balanced=b)(images, classes) - truth).square().mean().sqrt()
        for n, b in ((1280, False), (256, True))
    ]
    assert errors[1] < errors[0]


def planted_case(seed, n, side=16):
    """Pictures of noise with a bright square each; the model's logit is the brightest smooth spot."""
    images = 0.3 * draw(seed, n, 1, side, side).float()
    corners = torch.randint(1, side - 6, (n, 2), generator=make_rng(seed, "corner"))
    for image, (top, left) in zip(images, corners.tolist(), strict=True):
        image[:, top : top + 5, left : left + 5] += 0.7

    class Brightest(nn.Module):
        def forward(self, images):
            bright = F.relu(F.avg_pool2d(images, 3, 1) - 0.4).flatten(1).sum(1)
            return torch.stack([bright, -bright], 1)

    return Brightest(), images, corners


@given(seed=seeds)
@settings(max_examples=4, deadline=None)
def test_extremal_perturbation_finds_a_planted_region(seed):
    model, images, corners = planted_case(seed, n=4)
    maps = METHODS["extremal_perturbation"](model, areas=(25 / 256,), n_steps=100)(
        images, torch.zeros(4, dtype=torch.int64)
    )
    for found, (top, left) in zip(maps, corners.tolist(), strict=True):
        inside = found[top : top + 5, left : left + 5].mean()
        assert inside > 0.45
        assert inside > 5 * (found.sum() - 25 * inside) / (found.numel() - 25)
    assert maps.min() >= 0
    assert maps.max() <= 1


@given(seed=seeds)
@laws
def test_a_random_map_forgets_a_picture_that_moved(seed):
    net, images = network(0), draw(seed, 1, 3, 16, 16)
    method = METHODS["random"](net, signed=True)
    classes = torch.tensor([2])
    here, moved = method(images, classes), method(images.roll(1, -1), classes)
    other_class = method(images, torch.tensor([1]))
    assert not torch.allclose(here, moved)
    assert not torch.allclose(here, other_class)
    assert here.abs().max() <= 1


def test_random_maps_are_uniform_and_independent():
    net = network(0)
    method = METHODS["random"](net, grid=4)
    images = draw(0, 400, 3, 4, 4)
    values = method(images, torch.zeros(400, dtype=torch.int64)).flatten(1)
    torch.testing.assert_close(values.mean(), torch.tensor(0.5).double(), rtol=0, atol=0.02)
    torch.testing.assert_close(values.var(), torch.tensor(1 / 12).double(), rtol=0, atol=0.005)
    correlation = torch.corrcoef(values.T) - torch.eye(16)
    assert correlation.abs().max() < 0.25
