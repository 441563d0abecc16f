"""Each method against a slow float64 re-derivation from its formula, one picture at a time."""

import numpy as np
import pytest
import torch
from attribution_networks import (
    CONTRASTIVE,
    DECONVNET,
    EXCITATION,
    GRADIENT,
    GUIDED,
    batch,
    small_resnet,
    small_vgg,
    trace_resnet,
    trace_vgg,
)
from torch.nn import functional as F

from torchsite.attribution import METHODS
from torchsite.attribution.extremal_perturbation import TEMPERATURE
from torchsite.attribution.rise import balanced_coins, independent_coins
from torchsite.randomness import make_rng

NETWORKS = {"vgg": (small_vgg, trace_vgg, "3"), "resnet": (small_resnet, trace_resnet, "last")}


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def enlarged(maps, side=8):
    return F.interpolate(maps[None, None], size=(side, side), mode="bilinear", align_corners=False)[0, 0]


@pytest.fixture(params=[(name, seed) for name in NETWORKS for seed in (0, 1)], ids=str)
def case(request):
    name, seed = request.param
    build, trace, layer = NETWORKS[name]
    net = build(seed)
    images, classes = batch(seed)
    tapes = [trace(net, image) for image in images]
    return net, images, classes, tapes, layer


def test_the_interpreter_computes_the_logits(case):
    net, images, _, tapes, _ = case
    close(torch.stack([tape.steps[-1].values for tape, _ in tapes]), net(images).detach())


@pytest.mark.parametrize(
    ("method", "rules"), [("gradient", GRADIENT), ("guided_backprop", GUIDED), ("deconvnet", DECONVNET)]
)
def test_signal_at_the_picture(case, method, rules):
    net, images, classes, tapes, _ = case
    expected = [
        tape.signal(int(label), rules, 0).abs().amax(0)
        for (tape, _), label in zip(tapes, classes, strict=True)
    ]
    close(METHODS[method](net)(images, classes), torch.stack(expected))


@pytest.mark.parametrize(
    ("method", "rules", "read"),
    [
        ("linear_approximation", GRADIENT, lambda x, g: (x * g).sum(0)),
        ("grad_cam", GRADIENT, lambda x, g: (x * g.mean((1, 2), keepdim=True)).sum(0).clamp(min=0)),
        ("excitation_backprop", EXCITATION, lambda x, p: p.sum(0)),
        ("contrastive_excitation_backprop", CONTRASTIVE, lambda x, p: p.sum(0)),
    ],
)
def test_signal_at_a_layer(case, method, rules, read):
    net, images, classes, tapes, layer = case
    expected = []
    for (tape, layers), label in zip(tapes, classes, strict=True):
        step = tape.steps[layers[layer]]
        maps = read(step.values.view(step.shape), tape.signal(int(label), rules, layers[layer]))
        expected.append(enlarged(maps))
    close(METHODS[method](net, layer=layer)(images, classes), torch.stack(expected))


@pytest.mark.parametrize("layer", ["1", "2"])
def test_excitation_at_deeper_layers(layer):
    """Down to the first activations, through convolution, stride, pool; and at a layer of mixed sign."""
    net, (images, classes) = small_vgg(3), batch(3)
    expected = []
    for image, label in zip(images, classes, strict=True):
        tape, layers = trace_vgg(net, image)
        expected.append(enlarged(tape.signal(int(label), EXCITATION, layers[layer]).sum(0)))
    close(METHODS["excitation_backprop"](net, layer=layer)(images, classes), torch.stack(expected))


def test_integrated_gradients(case):
    net, images, classes, _, _ = case
    trace = trace_vgg if isinstance(net, torch.nn.Sequential) else trace_resnet
    nodes, weights = np.polynomial.legendre.leggauss(12)
    expected = []
    for image, label in zip(images, classes, strict=True):
        difference = image - 0.25
        slopes = sum(
            w / 2 * trace(net, 0.25 + (t + 1) / 2 * difference)[0].signal(int(label), GRADIENT, 0)
            for t, w in zip(nodes, weights, strict=True)
        )
        expected.append((difference * slopes).sum(0))
    found = METHODS["integrated_gradients"](net, baseline=0.25, n_steps=12)(images, classes)
    torch.testing.assert_close(
        found, torch.stack(expected), rtol=1e-5, atol=1e-7
    )  # float32 quadrature weights


def test_smooth_grad(case):
    net, images, classes, _, _ = case
    trace = trace_vgg if isinstance(net, torch.nn.Sequential) else trace_resnet
    noise = torch.randn(3, 2, 8, 8, generator=make_rng(5, "attribution", "smooth_grad")).double()
    expected = []
    for image, label in zip(images, classes, strict=True):
        spread = 0.2 * (image.max() - image.min())
        slopes = [trace(net, image + spread * e)[0].signal(int(label), GRADIENT, 0) for e in noise]
        expected.append(torch.stack(slopes).mean(0).abs().amax(0))
    found = METHODS["smooth_grad"](net, n_samples=3, noise=0.2, seed=5, internal_batch_size=2)(
        images, classes
    )
    close(found, torch.stack(expected))


def logit(net, image, label):
    with torch.no_grad():
        return net(image[None])[0, label]


def test_occlusion(case):
    net, images, classes, _, _ = case
    expected = torch.zeros(3, 8, 8, dtype=torch.float64)
    for n, (image, label) in enumerate(zip(images, classes, strict=True)):
        counts = torch.zeros(8, 8, dtype=torch.float64)
        for top in (0, 2, 4):
            for left in (0, 2, 4):
                window = (slice(top, top + 4), slice(left, left + 4))
                covered = image.clone()
                covered[:, *window] = 0.1
                expected[n][window] += logit(net, image, label) - logit(net, covered, label)
                counts[window] += 1
        expected[n] /= counts
    found = METHODS["occlusion"](net, window=4, stride=2, baseline=0.1)(images, classes)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)  # Captum counts in float32


def test_score_cam(case):
    net, images, classes, tapes, layer = case
    expected = []
    for image, label, (tape, layers) in zip(images, classes, tapes, strict=True):
        step = tape.steps[layers[layer]]
        channels = step.values.view(step.shape)
        scores = []
        for channel in channels:
            mask = enlarged(channel)
            spread = mask.max() - mask.min()
            mask = (mask - mask.min()) / spread if spread > 0 else torch.zeros_like(mask)
            scores.append(logit(net, image * mask, label))
        weights = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
        expected.append(enlarged((weights[:, None, None] * channels).sum(0).clamp(min=0)))
    close(
        METHODS["score_cam"](net, layer=layer, internal_batch_size=4)(images, classes), torch.stack(expected)
    )


def slow_mask(coins, offset, side, cells):
    """Bilinear enlargement by its definition (half-pixel centres, clamped at the border), then the crop."""
    cell = -(-side // cells)
    top, left = (int(o * cell) for o in offset)
    mask = torch.zeros(side, side, dtype=torch.float64)
    for u in range(side):
        for v in range(side):
            y = min(max((u + top + 0.5) / cell - 0.5, 0), cells)
            x = min(max((v + left + 0.5) / cell - 0.5, 0), cells)
            i, j = int(y), int(x)
            k, m = min(i + 1, cells), min(j + 1, cells)
            upper = (1 - (x - j)) * coins[i, j] + (x - j) * coins[i, m]
            lower = (1 - (x - j)) * coins[k, j] + (x - j) * coins[k, m]
            mask[u, v] = (1 - (y - i)) * upper + (y - i) * lower
    return mask


@pytest.mark.parametrize("score", ["probability", "logit"])
@pytest.mark.parametrize(("balanced", "keep"), [(True, 0.5), (False, 0.5), (True, 0.3)])
def test_rise(score, balanced, keep):
    net, (images, classes) = small_vgg(0), batch(0)
    rng = make_rng(7, "attribution", "rise")
    even = balanced and keep == 0.5
    coins, offsets = balanced_coins(9, 4, rng) if even else independent_coins(9, 4, keep, rng)
    expected = torch.zeros(3, 8, 8, dtype=torch.float64)
    for coin, offset in zip(coins.double(), offsets, strict=True):
        mask = slow_mask(coin, offset, 8, 3)
        for n, (image, label) in enumerate(zip(images, classes, strict=True)):
            with torch.no_grad():
                answers = net((image * mask)[None])[0]
            worth = answers.softmax(0)[label] if score == "probability" else answers[label]
            expected[n] += worth * mask / (9 * keep)
    options = {"n_masks": 9, "cells": 3, "keep": keep, "score": score, "balanced": balanced, "seed": 7}
    found = METHODS["rise"](net, internal_batch_size=4, **options)(images, classes)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)


def slow_extremal_perturbation(
    net, image, label, area, n_steps, cells, rate, momentum, penalty, width, levels
):
    """The whole objective by its definition, sorted penalty included, differentiated as it stands."""
    side = image.shape[-1]
    pixels = torch.arange(side, dtype=torch.float64) + 0.5
    centres = (torch.arange(cells, dtype=torch.float64) + 0.5) * side / cells
    kernel = torch.exp(-((pixels[:, None] - centres) ** 2) / (2 * width**2))
    blurs = [image]
    for level in range(1, levels):
        sigma = width * level / (levels - 1)
        radius = max(1, round(3 * sigma))
        offsets = torch.arange(-radius, radius + 1, dtype=torch.float64)
        profile = torch.exp(-(offsets**2) / (2 * sigma**2))
        profile = profile / profile.sum()
        padded = F.pad(image[None], (radius,) * 4, mode="replicate")[0]
        window = profile[:, None] * profile[None]
        blurs.append(F.conv2d(padded[:, None], window[None, None])[:, 0])
    template = torch.zeros(side * side, dtype=torch.float64)
    template[-max(1, round(area * side * side)) :] = 1

    def smooth_max(f, dim):
        e = (f / TEMPERATURE).exp()
        return (f * e).sum(dim) / e.sum(dim)

    def mask_of(grid):
        wide = smooth_max(grid[:, None, :] * kernel[None], 2)
        return smooth_max(wide.T[None] * kernel[:, None, :], 2)

    grid = torch.full((cells, cells), 0.5, dtype=torch.float64)
    velocity = torch.zeros_like(grid)
    for weight in np.geomspace(*penalty, n_steps):
        grid = grid.detach().requires_grad_()
        mask = mask_of(grid)
        position = (1 - mask) * (levels - 1)
        shown = sum((1 - (position - k).abs()).clamp(min=0) * blur for k, blur in enumerate(blurs))
        score = net(shown[None])[0, label]
        (wish,) = torch.autograd.grad(score, mask, retain_graph=True)
        keys = mask.detach() + 1e-5 * wish / wish.abs().max()
        order = keys.flatten().argsort()
        penalised = score - weight * ((mask.flatten()[order] - template) ** 2).mean()
        (slope,) = torch.autograd.grad(penalised, grid)
        velocity = momentum * velocity + slope
        grid = (grid + rate * velocity).clamp(0, 1)
    return mask_of(grid.detach())


def test_extremal_perturbation():
    net, (images, classes) = small_vgg(0), batch(0)
    areas, penalty = (0.1, 0.3), (1.0, 50.0)
    options = {"n_steps": 12, "cells": 4, "momentum": 0.9}
    found = METHODS["extremal_perturbation"](
        net, areas=areas, smoothness=0.2, blur=0.2, n_levels=4, penalty=penalty, learning_rate=0.05, **options
    )(images, classes)
    for n, (image, label) in enumerate(zip(images, classes, strict=True)):
        masks = [
            slow_extremal_perturbation(
                net, image, label, area, rate=0.05, penalty=penalty, width=1.6, levels=4, **options
            )
            for area in areas
        ]
        torch.testing.assert_close(found[n], torch.stack(masks).mean(0), rtol=1e-4, atol=1e-5)
