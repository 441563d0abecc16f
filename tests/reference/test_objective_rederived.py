"""The transformation loss against loops over pixels in plain Python floats, values and gradients."""

import math

import numpy as np
import pytest
import torch

from torchsite.objective.equivariance import equivariance_losses
from torchsite.objective.targets import class_feature_sums
from torchsite.objective.transformation import transformation_loss
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

N, CLASSES, DEPTH, SIDE = 2, 2, 2, 5
FAMILY = TransformFamily(scale=(0.8, 1.3))


def sampled(cells, matrix):
    """(T x)(p) = x(T⁻¹ p) on a square picture, bilinear, zero outside, one pixel at a time."""
    inverse = np.linalg.inv(matrix)
    moved = np.zeros((SIDE, SIDE))
    for i in range(SIDE):
        for j in range(SIDE):
            point = np.array([(2 * j + 1) / SIDE - 1, (2 * i + 1) / SIDE - 1, 1])
            x, y, _ = inverse @ point
            column, row = ((x + 1) * SIDE - 1) / 2, ((y + 1) * SIDE - 1) / 2
            for r in (math.floor(row), math.floor(row) + 1):
                for c in (math.floor(column), math.floor(column) + 1):
                    if 0 <= r < SIDE and 0 <= c < SIDE:
                        moved[i, j] += (1 - abs(row - r)) * (1 - abs(column - c)) * cells[r, c]
    return moved


def covered(matrix):
    return sampled(np.ones((SIDE, SIDE)), matrix) > 1 - 1e-3


def bce(p, t):
    return -t * math.log(p) - (1 - t) * math.log(1 - p)


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def slow_loss(raw, targets, matrices, slope, warp):
    total, n_cells = 0.0, 0
    for n in range(N):
        matrix = matrices[n] if warp == "target" else np.linalg.inv(matrices[n])
        mask = covered(matrix)
        for k in range(CLASSES):
            for d in range(DEPTH):
                drawn, asked = sigmoid(slope * raw[n, k, d]), targets[k, d]
                drawn, asked = (
                    (drawn, sampled(asked, matrix)) if warp == "target" else (sampled(drawn, matrix), asked)
                )
                for i, j in np.argwhere(mask):
                    total += bce(drawn[i, j], asked[i, j])
                    n_cells += 1
    return total / n_cells


def arguments(seed):
    rng = make_rng(seed, "objective")
    raw = torch.randn(N, CLASSES, DEPTH, SIDE, SIDE, generator=rng, dtype=torch.float64)
    targets = torch.rand(CLASSES, DEPTH, SIDE, SIDE, generator=rng, dtype=torch.float64)
    return raw, targets, FAMILY.sample(N, rng=rng)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("slope", [1.0, 2.0])
@pytest.mark.parametrize("warp", ["target", "prototype"])
def test_the_value_and_the_gradient_are_those_of_the_slow_one(warp, slope, seed):
    raw, targets, pose = arguments(seed)
    given = raw.clone().requires_grad_()
    loss = transformation_loss(given, targets, pose, slope=slope, warp=warp)
    loss.backward()
    slow = slow_loss(raw.numpy(), targets.numpy(), pose.matrix.numpy(), slope, warp)
    assert loss.item() == pytest.approx(slow, rel=1e-12)
    step = 1e-6
    for index in [(0, 0, 0, 2, 2), (1, 1, 1, 1, 3), (0, 1, 0, 4, 0), (1, 0, 1, 2, 1)]:
        ends = []
        for sign in (-1, 1):
            moved = raw.clone()
            moved[index] += sign * step
            ends.append(slow_loss(moved.numpy(), targets.numpy(), pose.matrix.numpy(), slope, warp))
        assert given.grad[index].item() == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_class_sums_are_those_of_the_slow_one(seed):
    raw, _, pose = arguments(seed)
    features = raw[:, 0]
    sums, weights = class_feature_sums(features, torch.tensor([1, 1]), pose, CLASSES)
    slow_sums, slow_weights = np.zeros((DEPTH, SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for n in range(N):
        back = np.linalg.inv(pose.matrix[n].numpy())
        mask = covered(back)
        slow_weights += mask
        for d in range(DEPTH):
            slow_sums[d] += mask * sampled(features[n, d].numpy(), back)
    np.testing.assert_allclose(sums[1].numpy(), slow_sums, atol=1e-12)
    np.testing.assert_array_equal(weights[1, 0].numpy(), slow_weights)
    assert not sums[0].any()


@pytest.mark.parametrize("seed", range(3))
def test_equivariance_is_that_of_the_slow_one(seed):
    raw, _, pose = arguments(seed)
    first, second = raw[:, :, 0], raw[:, :, 1]
    cosines = []
    for n in range(N):
        mask = covered(pose.matrix[n].numpy())
        for k in range(CLASSES):
            a = mask * sampled(first[n, k].numpy(), pose.matrix[n].numpy())
            b = mask * second[n, k].numpy()
            cosines.append((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    found = equivariance_losses(first, second, pose).flatten().numpy()
    np.testing.assert_allclose(found, 1 - np.array(cosines), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_centred_equivariance_is_pearsons_correlation_within_the_mask(seed):
    raw, _, pose = arguments(seed)
    first, second = raw[:, :, 0] + 2, raw[:, :, 1] - 1
    correlations = []
    for n in range(N):
        mask = covered(pose.matrix[n].numpy()).astype(bool)
        for k in range(CLASSES):
            a = sampled(first[n, k].numpy(), pose.matrix[n].numpy())[mask]
            correlations.append(np.corrcoef(a, second[n, k].numpy()[mask])[0, 1])
    found = equivariance_losses(first, second, pose, centred=True).flatten().numpy()
    np.testing.assert_allclose(found, 1 - np.array(correlations), rtol=1e-9)
