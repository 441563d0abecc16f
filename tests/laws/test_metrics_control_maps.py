"""Six map-makers without knowledge of the model: every measure puts them where its null says."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers
from torch import nn

from metric_models import Tones, tone_pictures
from torchsite.metrics import (
    CONTROL_MAPS,
    EnergyPointing,
    FrameControl,
    GridPointing,
    OneMapShare,
    PatchDeletion,
    Poses,
    box_regions,
)
from torchsite.randomness import make_rng
from torchsite.transforms import AffineTransform, TransformFamily

SIDE, FAST = 16, {"n_resamples": 20}
each_maker = pytest.mark.parametrize("name", CONTROL_MAPS)
seeds = integers(0, 2**31)


def pictures(n, seed=0, side=SIDE):
    rng = make_rng(seed, "ignorant laws")
    return 0.2 + 0.6 * torch.rand(n, 3, side, side, generator=rng), torch.arange(n) % 4


class Weighted(nn.Module):
    """Logits that are sums of local terms: Σ_u w_c(u) · x(u)."""

    def __init__(self, seed=0):
        super().__init__()
        rng = make_rng(seed, "weighted")
        self.weight = nn.Parameter(torch.randn(4, 3, SIDE, SIDE, generator=rng, dtype=torch.float64))

    def forward(self, images):
        return torch.einsum("kchw,nchw->nk", self.weight, images.double())

    def evidence(self, images, classes, background):
        relative = (self.weight - self.weight.mean(0))[classes].detach()
        return (relative * (images - background).double()).sum(1)


@each_maker
def test_no_maker_asks_anything_but_the_picture(name):
    images, classes = pictures(3)
    maps = CONTROL_MAPS[name](images, classes)
    assert maps.shape == (3, SIDE, SIDE)
    assert torch.equal(maps, CONTROL_MAPS[name](images, (classes + 1) % 4))
    assert torch.equal(maps[1:2], CONTROL_MAPS[name](images[1:2], classes[1:2]))


def run(metric, images, labels, **options):
    for part in torch.arange(len(images)).split(25):
        extra = {key: value[part] for key, value in options.items()}
        metric.update(images[part], labels[part], indices=part, **extra)
    return metric.result()


@each_maker
def test_hiding_patches_does_not_do_what_they_say(name):
    """0, or exactly what the map of another picture gets."""
    images, labels = pictures(200)
    found = run(PatchDeletion(CONTROL_MAPS[name], Weighted(), **FAST), images, labels)
    if name in ("centre_blob", "frame_template", "constant"):
        assert found.correlation.value == pytest.approx(found.floor.value, abs=1e-9)
    else:
        assert abs(found.correlation.value) < 4 / math.sqrt(15 * 200)
    assert name != "constant" or found.correlation.value == 0


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
@pytest.mark.parametrize("fill", ["black", "mean", "blur", "noise", "other"])
def test_a_model_that_is_a_sum_of_local_terms_has_a_map_of_score_1(fill, seed):
    images, labels = pictures(6, seed)
    metric = PatchDeletion(lambda x, c: x[:, 0], Weighted(seed), fills=(fill,), **FAST)
    background = metric.fills[0].background(images, rng=make_rng(0, "batch", 0, fill))
    truth = Weighted(seed).evidence(images, labels, background)
    planted = PatchDeletion(lambda x, c: truth, Weighted(seed), fills=(fill,), **FAST)
    planted.update(images, labels)
    assert planted.result().correlation.value == pytest.approx(1, abs=1e-9)


@each_maker
def test_maps_that_know_no_class_get_exactly_chance_in_mosaics(name):
    images, labels = tone_pictures(100, side=8, n_tones=9)
    metric = GridPointing(CONTROL_MAPS[name], Tones(9), confidence=0, **FAST)
    found = run(metric, images, labels)
    assert set(found.mosaics) == {"2x2", "3x3"}
    for tiles in found.mosaics.values():
        assert tiles.n > 30
        assert tiles.share.value == pytest.approx(tiles.chance, abs=1e-6)


def test_a_map_that_knows_the_class_finds_its_tile():
    images, labels = tone_pictures(100, side=8, n_tones=9)
    model = Tones(9)

    def right(x, classes):
        tone = (
            nn.functional.avg_pool2d(x.mean(1, keepdim=True), 8)
            .repeat_interleave(8, 2)
            .repeat_interleave(8, 3)
        )
        return ((tone[:, 0] - model.tones[classes][:, None, None]).abs() < 0.02).float()

    found = run(GridPointing(right, model, confidence=0, **FAST), images, labels)
    assert all(tiles.share.value == pytest.approx(1) for tiles in found.mosaics.values())


@each_maker
def test_evidence_lies_on_the_object_as_often_as_its_area_says(name):
    images, labels = pictures(200)
    corner = 12 * torch.rand(200, 2, generator=make_rng(5))
    boxes = torch.cat([corner, corner + 5], dim=1)
    metric = EnergyPointing(CONTROL_MAPS[name], poses=Poses(TransformFamily.none(), n=1), **FAST)
    found = run(metric, images, labels, regions=box_regions(boxes, (SIDE, SIDE))).untransformed
    if name == "constant":
        assert found.share.value == pytest.approx(found.area.value, abs=1e-9)
    elif name in ("centre_blob", "frame_template"):
        assert found.share.value == pytest.approx(found.centre.value, abs=1e-6)
        assert found.ratio.value > 1.1
    else:
        assert found.ratio.value == pytest.approx(1, abs=0.1)


def test_one_map_for_all_explains_all_and_unrelated_maps_share_little():
    images, labels = pictures(150)
    shares = {name: run(OneMapShare(maker, **FAST), images, labels) for name, maker in CONTROL_MAPS.items()}
    for name in ("constant", "centre_blob", "frame_template"):
        assert shares[name].share == pytest.approx((1, 1, 1), abs=1e-6)
    assert shares["random"].share.value == pytest.approx(shares["random"].unrelated, abs=0.005)
    assert shares["random"].unrelated == pytest.approx(1 / 150)
    assert shares["picture"].share.value > 0.5
    for name in ("centre_blob", "frame_template"):
        assert shares[name].pattern == pytest.approx((1, 1, 1), abs=1e-6)
    assert shares["random"].pattern.value < 0.1
    assert math.isnan(shares["constant"].pattern.value), "a constant map has no pattern"


def test_a_template_for_some_classes_and_against_others_is_one_pattern():
    images, labels = pictures(60)
    blob = CONTROL_MAPS["centre_blob"](images, labels)
    signs = torch.where(torch.arange(60) % 2 == 0, 1.0, -2.0)[:, None, None]
    found = run(OneMapShare(lambda x, c: (signs * blob)[: len(x)], **FAST), images, labels)
    assert found.share.value < 0.2
    assert found.pattern.value == pytest.approx(1, abs=1e-6)


def controlled(name, images, labels, **options):
    poses = Poses(TransformFamily(max_rotation=60, max_shift=0.2), n=2)
    return run(FrameControl(CONTROL_MAPS[name], poses=poses, **FAST), images, labels, **options)


def test_the_frame_template_is_consistent_with_black_corners_and_is_found_out():
    images, labels = pictures(50, side=32)
    found = controlled("frame_template", images, labels)
    assert found.black.raw.value > 0.98
    assert found.content_free.raw.value > 0.98
    assert found.evidence.ratio.value > 0.95
    assert found.filled.centred.value < found.black.centred.value - 0.2
    assert abs(found.black.calibrated.value) < 0.05
    for name in ("mean", "other", "reflection"):
        assert abs(found.fills[name].calibrated.value) < 0.05


@pytest.mark.parametrize("name", ["constant", "centre_blob", "frame_template"])
def test_a_template_says_as_much_about_nothing_whichever_class_the_model_sees(name):
    images, labels = pictures(20)
    found = run(FrameControl(CONTROL_MAPS[name], Weighted(), **FAST), images, labels)
    assert found.evidence.ratio == pytest.approx((1, 1, 1), abs=1e-6)


class Favourite(nn.Module):
    """Names pictures without content by the last class, all others by the first."""

    def forward(self, images):
        empty = images.flatten(2).std(2).amax(1) < 1e-4
        return torch.where(empty[:, None], torch.eye(4)[3], torch.eye(4)[0])


def test_pictures_without_content_are_explained_for_the_class_that_the_model_sees_in_them():
    images, labels = pictures(20)
    louder = lambda x, c: 1.0 + c[:, None, None].expand(-1, SIDE, SIDE)  # noqa: E731
    asked = run(FrameControl(louder, Favourite(), **FAST), images, labels * 0)
    assert asked.evidence.ratio.value == pytest.approx(4)
    alone = run(FrameControl(louder, **FAST), images, labels * 0)
    assert alone.evidence.ratio.value == pytest.approx(1)


def test_a_map_of_what_is_seen_stays_and_says_nothing_of_nothing():
    smooth = nn.functional.interpolate(pictures(50, side=8)[0], (32, 32), mode="bilinear")
    found = controlled("edges", smooth, torch.zeros(50, dtype=torch.int64))
    assert found.filled.raw.value > found.black.raw.value  # black corners make edges of their own
    assert found.filled.calibrated.value > 0.7
    assert found.evidence.ratio.value < 1e-3


@pytest.mark.parametrize("name", ["constant", "random", "centre_blob"])
def test_maps_without_a_picture_are_not_consistent_under_any_filling(name):
    images, labels = pictures(50, side=32)
    found = controlled(name, images, labels)
    for four in found.fills.values():
        assert abs(four.calibrated.value) < 0.05
    assert found.evidence.ratio.value == pytest.approx(1, abs=0.05)


def test_a_crop_of_a_larger_picture_is_another_filling():
    larger, labels = pictures(20, side=32)
    images = larger[..., 8:24, 8:24]
    found = controlled("picture", images, labels, padded=larger)
    assert list(found.fills) == ["black", "mean", "other", "reflection", "larger"]
    assert found.fills["larger"].raw.value == pytest.approx(1, abs=1e-4)
    assert "larger" not in controlled("picture", images, labels).fills


@pytest.mark.parametrize("degrees", [0.0, 30.0, -40.0, 75.0])
def test_the_template_finds_the_frame(degrees):
    images, labels = pictures(1, side=32)
    pose = AffineTransform.pose(degrees, 0.2, -0.1)
    found, expected = (
        CONTROL_MAPS["frame_template"](pose(images), labels),
        pose(CONTROL_MAPS["centre_blob"](images, labels)),
    )
    where = [divmod(int(maps[0].argmax()), 32) for maps in (found, expected)]
    assert math.dist(*where) <= 2
