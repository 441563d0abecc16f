"""Laws of self-consistency: what perfect, constant and ignorant explainers must score."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import floats, integers, sampled_from

from torchsite.metrics import Poses, SelfConsistency, self_consistency
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

FAMILIES = (
    TransformFamily(),
    TransformFamily(max_shift=0.5),
    TransformFamily(scale=(0.7, 1.4), max_shear=15, reflect=True),
    TransformFamily(distortion=0.3),
)
seeds = integers(0, 2**31)


def pictures(n, *, seed, channels=1, side=16):
    rng = make_rng(seed, "pictures")
    images = torch.rand(n, channels, side, side, generator=rng)
    return images, torch.randint(5, (n,), generator=rng)


def measure(explain, images, classes, seed=0, **options):
    return self_consistency(explain, images, classes, rng=make_rng(seed), n_resamples=50, **options)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, family=sampled_from(FAMILIES), channels=integers(1, 3))
def test_a_pointwise_explainer_is_perfect(seed, family, channels):
    images, classes = pictures(6, seed=seed, channels=channels)
    result = measure(lambda x, _: x.sum(1), images, classes, seed, family=family, n_transforms=2)
    assert result.raw.value == pytest.approx(1, abs=1e-6)
    assert result.centred.value == pytest.approx(1, abs=1e-6)
    assert result.calibrated.value == pytest.approx(1, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, family=sampled_from(FAMILIES), value=floats(1e-3, 1e3))
def test_a_constant_map_is_raw_1_and_calibrated_0(seed, family, value):
    images, classes = pictures(6, seed=seed)
    constant = lambda x, _: torch.full_like(x[:, 0], value)  # noqa: E731
    result = measure(constant, images, classes, seed, family=family, n_transforms=2)
    assert result.raw.value == pytest.approx(1, abs=1e-5)
    assert result.calibrated == (0, 0, 0)
    assert result.centred.value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("draw", "low"), [(torch.randn, -0.1), (torch.rand, 0.8)])
def test_maps_that_ignore_their_picture_score_calibrated_0(draw, low):
    rng = make_rng(3)
    images, classes = pictures(200, seed=1)
    result = measure(lambda x, _: draw(len(x), 16, 16, generator=rng), images, classes)
    assert result.raw.value > low
    assert abs(result.calibrated.value) < 0.03
    assert abs(result.centred.value) < 0.03
    assert result.calibrated.low < result.calibrated.value < result.calibrated.high


@settings(max_examples=15, deadline=None)
@given(seed=seeds, factor=sampled_from([1e-12, 1e-3, 7.0, 1e9]))
def test_positive_scaling_changes_nothing(seed, factor):
    images, classes = pictures(5, seed=seed)
    blur = torch.nn.AvgPool2d(3, 1, 1)
    plain = measure(lambda x, _: blur(x)[:, 0] - 0.3, images, classes, seed)
    scaled = measure(lambda x, _: factor * (blur(x)[:, 0] - 0.3), images, classes, seed)
    for name in ("raw", "floor", "calibrated", "centred"):
        assert getattr(plain, name) == pytest.approx(getattr(scaled, name), abs=1e-5)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, chunk=integers(3, 12), n=integers(2, 25))
def test_raw_and_centred_do_not_depend_on_the_batching(seed, chunk, n):
    images, classes = pictures(n, seed=seed, side=8)
    explain = lambda x, _: x.flip(-1).sum(1)  # noqa: E731
    whole, parts = (measure(explain, images, classes, seed, batch_size=size) for size in (n, chunk))
    assert whole.raw == pytest.approx(parts.raw, abs=1e-6)
    assert whole.centred == pytest.approx(parts.centred, abs=1e-6)


def test_two_replicas_merge_to_the_single_run():
    images, classes = pictures(24, seed=2)
    explain = lambda x, _: x.flip(-1).sum(1)  # noqa: E731
    single, left, right = (SelfConsistency(explain, poses=Poses(seed=4), n_classes=5) for _ in range(3))
    for start in range(0, 24, 6):
        part = torch.arange(start, start + 6)
        replica = left if start % 12 else right
        for metric in (single, replica):
            metric.update(images[part], classes[part], indices=part)
    left.merge_state(right)
    assert torch.allclose(left.sums, single.sums, rtol=1e-12)
    assert left.result().calibrated == pytest.approx(single.result().calibrated, abs=1e-12)
    assert not torch.equal(right.sums, single.sums)
