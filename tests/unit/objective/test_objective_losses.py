"""The losses of the terms one by one: small cases whose values are known."""

import math

import pytest
import torch
import torch.nn.functional as F

from torchsite.errors import ConfigError
from torchsite.objective import classification_loss
from torchsite.objective.equivariance import calibrated, equivariance_losses, mismatched_similarity
from torchsite.objective.targets import class_feature_sums, to_unit
from torchsite.objective.transformation import masked_mean, transformation_loss
from torchsite.transforms import AffineTransform

LN2 = math.log(2)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("warp", ["target", "prototype"])
def test_prototypes_that_say_nothing_cost_ln_2_whatever_the_targets(warp):
    targets = noise(3, 2, 6, 6).sigmoid()
    pose = AffineTransform.rotation(torch.tensor([20.0, -70.0]))
    loss = transformation_loss(torch.zeros(2, 3, 2, 6, 6, dtype=torch.float64), targets, pose, warp=warp)
    assert loss.item() == pytest.approx(LN2, rel=1e-12 if warp == "target" else 0.2)


@pytest.mark.parametrize("warp", ["target", "prototype"])
@pytest.mark.parametrize("slope", [1.0, 2.0])
def test_without_a_transform_it_is_the_plain_cross_entropy(warp, slope):
    raw, targets = noise(2, 3, 2, 5, 7), noise(2, 3, 2, 5, 7, seed=1).sigmoid()
    still = transformation_loss(raw, targets, AffineTransform.identity(2), slope=slope, warp=warp)
    torch.testing.assert_close(still, F.binary_cross_entropy_with_logits(slope * raw, targets))


def test_the_best_prototypes_are_the_transformed_targets():
    targets = noise(2, 3, 2, 6, 6).sigmoid()
    pose = AffineTransform.rotation(torch.tensor([30.0, 75.0]))
    best = torch.logit(pose(targets).clamp(1e-6, 1 - 1e-6)).requires_grad_()
    loss = transformation_loss(best, targets, pose)
    loss.backward()
    assert best.grad.abs().max() < 1e-12
    worse = transformation_loss(best.detach() + 0.1, targets, pose)
    assert worse > loss


def test_targets_get_no_gradient():
    raw, targets = noise(2, 3, 1, 4, 4), noise(2, 3, 1, 4, 4).sigmoid().requires_grad_()
    for warp in ("target", "prototype"):
        assert not transformation_loss(raw, targets, AffineTransform.identity(2), warp=warp).requires_grad


def test_an_unknown_side_is_refused():
    with pytest.raises(ConfigError, match=r"warp: .*'both'"):
        transformation_loss(noise(1, 2, 1, 4, 4), noise(2, 1, 4, 4), AffineTransform.identity(1), warp="both")


def test_label_smoothing_is_that_of_cross_entropy():
    logits, labels = noise(4, 3), torch.tensor([0, 1, 2, 0])
    log_p = logits.log_softmax(1)
    plain = -log_p[torch.arange(4), labels].mean()
    torch.testing.assert_close(classification_loss(logits, labels), plain)
    torch.testing.assert_close(classification_loss(logits, labels, 0.1), 0.9 * plain - 0.1 * log_p.mean())


def test_to_unit_is_the_sigmoid_of_slope_times_raw():
    raw = noise(2, 3, 4, 4)
    torch.testing.assert_close(to_unit(raw.tanh(), 2.0), torch.sigmoid(2 * raw))
    torch.testing.assert_close(to_unit(raw.sigmoid(), 1.0), torch.sigmoid(raw))


def test_a_mean_over_nothing_is_zero():
    assert masked_mean(noise(2, 3, 1, 4, 4), torch.zeros(2, 4, 4, dtype=torch.bool)) == 0


def test_equivariance_is_a_cosine():
    maps = noise(2, 3, 6, 6)
    still = AffineTransform.identity(2)
    assert equivariance_losses(maps, maps, still).max().item() == pytest.approx(0, abs=1e-12)
    assert equivariance_losses(maps, 3 * maps, still).max().item() == pytest.approx(0, abs=1e-12)
    assert equivariance_losses(maps, -maps, still).min().item() == pytest.approx(2, abs=1e-12)


def test_centred_equivariance_ignores_what_is_the_same_everywhere():
    maps, still = noise(2, 3, 6, 6), AffineTransform.identity(2)
    assert equivariance_losses(maps, maps + 5, still, centred=True).max().item() == pytest.approx(
        0, abs=1e-12
    )
    flat = equivariance_losses(noise(2, 3, 6, 6) + 100, noise(2, 3, 6, 6).flip(-1) + 100, still)
    assert flat.max().item() < 1e-3  # the plain cosine takes two flat maps for the same
    unlike = equivariance_losses(maps + 100, maps.flip(-1) + 100, still, centred=True)
    assert unlike.min().item() > 0.5


def test_the_floor_is_the_mean_cosine_between_different_maps():
    maps = noise(5, 4, 4)
    cosines = [
        torch.cosine_similarity(maps[i].flatten(), maps[j].flatten(), dim=0)
        for i in range(5)
        for j in range(5)
        if i != j
    ]
    torch.testing.assert_close(mismatched_similarity(maps), torch.stack(cosines).mean())
    assert mismatched_similarity(maps[:1].expand(3, -1, -1)).item() == pytest.approx(1)


def test_calibrated_agreement_counts_only_above_the_floor():
    raw, floor = torch.tensor(0.95), torch.tensor(0.6)
    expected = 1 - (0.95 - 0.6) / (1 - 0.6)
    assert calibrated(1 - raw, floor).item() == pytest.approx(expected, rel=1e-5)
    assert calibrated(1 - floor, floor).item() == pytest.approx(1)


def test_without_a_transform_class_sums_are_plain_sums():
    features, labels = noise(5, 2, 4, 4), torch.tensor([2, 0, 2, 2, 0])
    sums, weights = class_feature_sums(features, labels, AffineTransform.identity(5), 3)
    for label in range(3):
        torch.testing.assert_close(sums[label], features[labels == label].sum(0))
        assert torch.equal(weights[label, 0], torch.full((4, 4), float((labels == label).sum())).double())
