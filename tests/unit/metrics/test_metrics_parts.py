"""Poses, estimates, groups and rankings: the parts that measures are made of."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, lists, sampled_from

from metric_models import convnet, gradient
from torchsite.errors import ConfigError
from torchsite.metrics import Deletion, Estimate, Poses, box_regions, plain
from torchsite.metrics.estimate import estimate, ratio, resample_weights
from torchsite.metrics.grouping import Grouping, calibrated, one_hot, partner_offset
from torchsite.metrics.pointing_game import centre_map
from torchsite.metrics.poses import join
from torchsite.metrics.ranking import blanked, least_important_first
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily, as_fill

FAMILIES = [TransformFamily(), TransformFamily(distortion=0.2, scale=(0.8, 1.2), reflect=True)]


@settings(max_examples=20, deadline=None)
@given(
    indices=lists(integers(0, 3000), min_size=1, max_size=12),
    family=sampled_from(FAMILIES),
    number=integers(0, 3),
)
def test_the_pose_of_a_picture_depends_on_its_index_alone(indices, family, number):
    points = torch.rand(1, 3, 3, 2, generator=make_rng(0), dtype=torch.float64) - 0.5
    together = Poses(family, n=4, seed=2).of(torch.tensor(indices), number)
    looked = together.lookup(points.expand(len(indices), -1, -1, -1))
    for row, index in enumerate(indices):
        alone = Poses(family, n=1, seed=2).of(torch.tensor([index]), number)
        assert torch.allclose(looked[row], alone.lookup(points)[0], atol=1e-9)


def test_poses_differ_between_pictures_numbers_and_seeds():
    matrices = [
        Poses(seed=seed).of(torch.tensor([index]), number).affine_part()
        for seed in (0, 1)
        for index in (0, 1, 511, 512)
        for number in (0, 1)
    ]
    assert len({tuple(matrix.flatten().tolist()) for matrix in matrices}) == len(matrices)


def test_poses_refuse_what_makes_no_sense():
    with pytest.raises(ConfigError, match="n"):
        Poses(n=0)
    with pytest.raises(ConfigError, match="family"):
        join([AffineTransform.identity(), FAMILIES[1].sample(1, rng=make_rng(0))])


def test_resample_weights_are_poisson_and_belong_to_the_index():
    weights = resample_weights(torch.arange(400), 500, seed=3)
    assert weights.shape == (501, 400)
    assert bool((weights[0] == 1).all())
    drawn = weights[1:]
    assert float(drawn.mean()) == pytest.approx(1, abs=0.01)
    assert float(drawn.var()) == pytest.approx(1, abs=0.02)
    assert float(torch.corrcoef(drawn.T[:50]).fill_diagonal_(0).abs().mean()) < 0.05
    assert torch.equal(resample_weights(torch.tensor([7]), 500, seed=3)[:, 0], weights[:, 7])


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """95 % intervals of the mean of 60 normal values, 300 times: 95 % ± 4 standard errors hold 0."""
    rng = make_rng(1)
    covered = 0
    for trial in range(300):
        values = torch.randn(60, generator=rng, dtype=torch.float64)
        weights = resample_weights(torch.arange(60) + 60 * trial, 200, seed=0)
        found = estimate(weights @ values / weights.sum(1))
        covered += found.low <= 0 <= found.high
    assert 0.89 <= covered / 300 <= 0.99


def test_estimates_of_nothing_are_nan_and_plain_data_is_json():
    rows = ratio(torch.zeros(3), torch.zeros(3))
    found = plain({"score": estimate(rows), "n": 3, "name": "x", "list": [1.5, math.inf]})
    assert found == {
        "score": {"value": None, "low": None, "high": None},
        "n": 3,
        "name": "x",
        "list": [1.5, None],
    }
    json.dumps(found, allow_nan=False)
    assert str(Estimate(0.5, 0.25, 0.75)) == "0.5000 [0.2500, 0.7500]"


@given(n=integers(2, 200), n_transforms=integers(1, 20))
def test_no_picture_is_its_own_partner(n, n_transforms):
    offsets = [partner_offset(number, n_transforms, n) for number in range(n_transforms)]
    assert all(0 < offset < n for offset in offsets)
    assert len(set(offsets)) == min(n_transforms, n - 1)


def test_a_picture_alone_has_no_partner():
    assert partner_offset(0, 4, 1) == 0


def test_calibrated():
    raw, floor = torch.tensor([1.0, 0.9, 0.5, 0.2]), torch.tensor([1.0, 0.8, 0.5, 0.6])
    assert calibrated(raw, floor).tolist() == pytest.approx([0, 0.5, 0, -1])


def test_groups_split_as_they_were_joined():
    family = TransformFamily(scale=(0.5, 2.0))
    grouping = Grouping.of_family(family, n_classes=3, n_bins=4)
    assert len(grouping) == 1 + 3 + 3 * 4
    assert set(grouping.edges) == {"angle", "shift", "scale"}
    classes = torch.tensor([0, 2, 2])
    groups = grouping.membership(classes, family.sample(3, rng=make_rng(0)))
    assert groups.sum(1).tolist() == [5, 5, 5]
    total, per_class, curves = grouping.split(groups.sum(0).tolist())
    assert (total, per_class) == (3, [1, 0, 2])
    assert all(sum(curve.scores) == 3 and len(curve.edges) == 5 for curve in curves.values())


def test_a_family_that_does_not_move_has_no_curves():
    assert not Grouping.of_family(TransformFamily.none(), 0).edges


def test_classes_out_of_range_are_refused():
    with pytest.raises(ValueError, match="classes"):
        one_hot(torch.tensor([0, 3]), 3)


def test_ties_are_ranked_at_random_and_the_rest_in_order():
    maps = torch.zeros(2, 4, 4)
    maps[:, 1, 2] = 1
    maps[:, 3, 3] = -1
    order = least_important_first(maps, torch.tensor([0, 1]), seed=0)
    assert order[:, 0].tolist() == [15, 15]
    assert order[:, -1].tolist() == [6, 6]
    assert not torch.equal(order[0], order[1])
    assert torch.equal(order.sort().values[0], torch.arange(16))


def test_blanked_pixels_show_the_background():
    images = torch.rand(2, 3, 4, 4, generator=make_rng(0))
    order = torch.arange(16).repeat(2, 1)
    found = blanked(images, order, 5, as_fill((0.1, 0.2, 0.3)).background(images))
    assert torch.equal(found.flatten(2)[..., 5:], images.flatten(2)[..., 5:])
    assert found.flatten(2)[0, :, 4].tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert torch.equal(as_fill(torch.zeros_like).background(images), torch.zeros_like(images))
    with pytest.raises(ConfigError, match="fill"):
        as_fill((0.0, 1.0)).background(images)


@pytest.mark.parametrize("fractions", [(0.5,), (0.5, 0.2), (0, 1.1), (-0.1, 1)])
def test_fractions_must_rise_from_0_to_1(fractions):
    with pytest.raises(ConfigError, match="fractions"):
        Deletion(gradient, convnet(), fractions=fractions)


def test_boxes_and_centres():
    regions = box_regions(torch.tensor([[1.0, 0.0, 3.0, 2.0], [0.0, 0.0, 0.4, 9.0]]), (4, 5))
    assert regions[0].nonzero().tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert not bool(regions[1].any())
    assert centre_map((3, 4))[0].nonzero().tolist() == [[1, 1], [1, 2]]
