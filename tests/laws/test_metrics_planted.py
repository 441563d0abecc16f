"""Laws on planted evidence: where the right ranking is known, it must beat a random one, and an inverted
one must lose."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from torch import nn

from torchsite.metrics import Deletion, Insertion, LeRFMoRF, MaskK, Poses
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

SPOT = (slice(4, 8), slice(4, 8))
STILL = Poses(TransformFamily.none(), n=1)
SHIFTED = Poses(TransformFamily(max_rotation=90, max_shift=0.1), n=2)


class Brightness(nn.Module):
    """Class 1 iff the picture's brightest 4×4 square is bright: it survives any rigid motion."""

    def forward(self, images):
        evidence = 10 * (nn.functional.avg_pool2d(images, 3, 1).amax((1, 2, 3)) - 0.6)
        return torch.stack([-evidence, evidence], dim=1)


def planted(n, seed):
    images = 0.2 * torch.rand(n, 1, 12, 12, generator=make_rng(seed, "planted"))
    images[:, :, *SPOT] = 1.0
    return images, torch.ones(n, dtype=torch.int64)


def perfect(images, _):
    maps = torch.zeros_like(images[:, 0])
    maps[:, *SPOT] = 1.0
    return maps


def run(kind, explain, images, labels, poses=STILL):
    metric = kind(explain, Brightness(), poses=poses, n_resamples=50)
    metric.update(images, labels)
    return metric.result()


@settings(max_examples=8, deadline=None)
@given(seed=integers(0, 2**31))
@pytest.mark.parametrize("poses", [STILL, SHIFTED], ids=["still", "moved"])
def test_mask_k_with_the_perfect_ranking_dominates_the_random_one(poses, seed):
    result = run(MaskK, perfect, *planted(12, seed), poses)
    for score in (result.accuracy, result.log_odds):
        for best, chance in zip(score.curve, score.random_curve, strict=True):
            assert best.value >= chance.value - 1e-9
        assert score.gain.low > 0
        assert score.curve[0] == score.random_curve[0]
        assert score.curve[-1] == score.random_curve[-1]


@settings(max_examples=8, deadline=None)
@given(seed=integers(0, 2**31))
def test_inserting_the_evidence_first_raises_and_deleting_it_first_lowers_the_curve(seed):
    images, labels = planted(12, seed)
    assert run(Insertion, perfect, images, labels).gain.low > 0
    assert run(Deletion, perfect, images, labels).gain.high < 0


def test_the_inverted_map_swaps_insertion_and_deletion():
    """Putting back the least important first is deleting the most important last: p_del(q) = p_ins(1 - q)."""
    images, labels = planted(6, 1)
    spread = lambda x, _: x[:, 0] + torch.arange(144.0).reshape(12, 12)  # noqa: E731  # no ties
    inserted = run(Insertion, spread, images, labels).curve
    deleted = run(Deletion, lambda *batch: -spread(*batch), images, labels).curve
    for one, other in zip(inserted, reversed(deleted), strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_lerf_minus_morf_is_insertion_less_deletion():
    """And it is 0 for a map that knows nothing, and as much below 0 as above it for the opposite map."""
    images, labels = planted(40, 1)
    spread = lambda x, _: x[:, 0] + torch.arange(144.0).reshape(12, 12) / 1000  # noqa: E731  # no ties
    found = run(LeRFMoRF, spread, images, labels)
    for name, both in found.fills.items():
        areas = [run(kind, spread, images, labels).fills[name].area.value for kind in (Insertion, Deletion)]
        assert both.difference.value == pytest.approx(areas[0] - areas[1], abs=1e-12)
        assert both.difference.low > 0
    opposite = run(LeRFMoRF, lambda *batch: -spread(*batch), images, labels)
    assert opposite.difference.value == pytest.approx(-found.difference.value, abs=1e-12)
    nothing = run(LeRFMoRF, lambda x, _: torch.ones_like(x[:, 0]), *planted(200, 3)).difference
    assert nothing.low < 0.02
    assert nothing.high > -0.02


@pytest.mark.parametrize("kind", [MaskK, Insertion, Deletion])
def test_a_constant_map_ranks_like_chance(kind):
    images, labels = planted(200, 3)
    result = run(kind, lambda x, _: torch.ones_like(x[:, 0]), images, labels)
    score = result.accuracy if kind is MaskK else result
    assert score.gain.low < 0.02
    assert score.gain.high > -0.02


def test_the_true_picture_is_ranked_before_the_transform_is_applied():
    """Mask-k asks for one explanation per picture, of the picture as it is."""
    seen = []
    images, labels = planted(5, 0)

    def explain(x, classes):
        seen.append(x)
        return perfect(x, classes)

    run(MaskK, explain, images, labels, SHIFTED)
    assert len(seen) == 1
    assert torch.equal(seen[0], images)
