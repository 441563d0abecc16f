"""Laws of object motion: maps that follow the object pass, templates and constants fail."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from torch import nn

from experiments.bam.object_motion import ObjectMotion, object_motions
from metric_models import First
from torchsite.metrics import CONTROL_MAPS, Poses, as_explainer
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

N, SIDE = 30, 32
POSES = Poses(TransformFamily(max_rotation=60, max_shift=0.2), seed=2)


def parts(n=N, seed=0):
    """Noisy scenes, dark; a bright bar on each."""
    rng = make_rng(seed, "parts")
    coarse = 0.1 + 0.6 * torch.rand(n, 1, 8, 8, generator=rng)
    scenes = nn.functional.interpolate(coarse, (SIDE, SIDE), mode="bilinear").expand(n, 3, SIDE, SIDE)
    regions = torch.zeros(n, SIDE, SIDE, dtype=torch.bool)
    for i, (top, left) in enumerate(torch.randint(1, SIDE - 11, (n, 2), generator=rng).tolist()):
        regions[i, top : top + 10, left : left + 5] = True
    return torch.where(regions[:, None], 1.0, scenes), regions, scenes


def of_object(images, classes):
    return (images.mean(1) - 0.75).clamp_min(0)


def of_scene(images, classes):
    brightness = images.mean(1)
    return brightness * (brightness < 0.75)


def measured(of_objects, of_scenes):
    images, regions, scenes = parts()
    explainers = [as_explainer(explain, First()) for explain in (of_objects, of_scenes)]
    metric = ObjectMotion(*explainers, poses=POSES, n_resamples=20)
    labels = torch.zeros(N, dtype=torch.int64)
    for part in torch.arange(N).split(10):
        metric.update(images[part], labels[part], labels[part], regions[part], scenes[part], indices=part)
    return metric.result()


def test_maps_of_the_parts_follow_their_parts():
    found = measured(of_object, of_scene)
    assert found.object_follows.calibrated.value > 0.9
    assert found.object_holds.calibrated.value > 0.95
    assert found.scene_stays.calibrated.value > 0.7
    assert found.object_follows.raw.value > found.object_stays.raw.value + 0.3
    assert found.object_holds.raw.value > found.frame_follows.raw.value + 0.3
    assert found.scene_stays.raw.value > found.scene_follows.raw.value


def test_the_frame_template_fails():
    template = CONTROL_MAPS["frame_template"]
    found = measured(template, template)
    assert abs(found.object_follows.calibrated.value) < 0.05
    assert found.object_stays.raw.value == pytest.approx(1, abs=1e-6)
    assert found.frame_follows.raw.value > 0.95
    assert found.object_holds.raw.value < found.frame_follows.raw.value


@pytest.mark.parametrize("name", ["constant", "random", "centre_blob"])
def test_maps_that_see_nothing_score_0_in_what_is_right(name):
    found = measured(CONTROL_MAPS[name], CONTROL_MAPS[name])
    for right in (found.object_follows, found.object_holds, found.scene_stays):
        assert abs(right.calibrated.value) < 0.05


@settings(max_examples=20, deadline=None)
@given(seed=integers(0, 2**31))
def test_objects_stay_within_the_frame_and_move(seed):
    _, regions, _ = parts(4, seed)
    moves = object_motions(regions, torch.arange(4), 90.0, seed)
    shown = moves(regions[:, None].float())
    assert shown.sum((1, 2, 3)).tolist() == pytest.approx([50.0] * 4, rel=0.05)
    alone = object_motions(regions[2:3], torch.tensor([2]), 90.0, seed)
    assert torch.allclose(alone.matrix, moves[2].matrix)


def test_pictures_that_are_named_wrongly_do_not_count():
    images, regions, scenes = parts(4)
    explainers = [as_explainer(explain, First()) for explain in (of_object, of_scene)]
    metric = ObjectMotion(*explainers, poses=POSES, n_resamples=5)
    wrong = torch.ones(4, dtype=torch.int64)
    metric.update(images, wrong, torch.zeros(4, dtype=torch.int64), regions, scenes)
    found = metric.result()
    assert math.isnan(found.object_follows.raw.value)
    assert found.scene_stays.raw.value > 0.5
