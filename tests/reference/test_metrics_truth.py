"""The measures of truth against slow float64 re-derivations, one picture, patch and pixel at a time."""

import math

import numpy as np
import pytest
import scipy.stats
import torch

from metric_models import Tones, convnet, gradient, noise, tone_pictures
from torchsite.metrics import (
    Deletion,
    EnergyPointing,
    FrameControl,
    GridPointing,
    MaskK,
    OneMapShare,
    PatchDeletion,
    Poses,
    SelfConsistency,
    box_regions,
)
from torchsite.metrics.grid_pointing import assembled, draw_mosaics
from torchsite.metrics.one_map_share import shrunk
from torchsite.randomness import make_rng
from torchsite.transforms import FILLS, TransformFamily
from torchsite.transforms.patches import hide_patches, patch_numbers, patch_sums

FAST = {"n_resamples": 10}
POSES = Poses(TransformFamily(max_rotation=50, max_shift=0.2), n=2, seed=3)


def rows_of(n, parts, part):
    """The rows of one part, by the definition floor(row · parts / n) = part."""
    return [row for row in range(n) if math.floor(row * parts / n) == part]


@pytest.mark.parametrize("grid", [(4, 4), (3, 5)])
def test_patch_deletion(grid):
    images, classes = noise(5, channels=3, side=13)
    images, model = images.double(), convnet(channels=3).eval().double()
    metric = PatchDeletion(gradient, model, grid=grid, fills=("mean", 0.0), **FAST)
    metric.update(images, classes)
    found = metric.result()

    def relative(picture, label):
        with torch.no_grad():
            logits = model(picture[None])[0].double()
        return float(logits[label] - logits.mean())

    expected = {"mean": [], "black": []}
    maps = gradient(model, images, classes).double()
    for i in range(5):
        for name, scores in expected.items():
            said, done = [], []
            for p in range(grid[0]):
                for q in range(grid[1]):
                    without, total = images[i].clone(), 0.0
                    for row in rows_of(13, grid[0], p):
                        for col in rows_of(13, grid[1], q):
                            total += float(maps[i, row, col])
                            for c in range(3):
                                mean = float(images[i, c].double().mean())
                                without[c, row, col] = mean if name == "mean" else 0.0
                    said.append(total)
                    done.append(relative(images[i], int(classes[i])) - relative(without, int(classes[i])))
            scores.append(scipy.stats.spearmanr(said, done).statistic)
    for name, scores in expected.items():
        assert found.fills[name].correlation.value == pytest.approx(np.mean(scores), abs=1e-9)
    overall = np.mean([np.mean(scores) for scores in expected.values()])
    assert found.correlation.value == pytest.approx(overall, abs=1e-9)


def test_patches_tile_the_picture():
    numbers = patch_numbers((7, 9), (2, 3))
    assert numbers.tolist()[0] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    maps = torch.rand(2, 7, 9, generator=make_rng(0))
    sums = patch_sums(maps, (2, 3))
    assert sums.sum(1).tolist() == pytest.approx(maps.double().sum((1, 2)).tolist())
    assert float(sums[0, 4]) == pytest.approx(float(maps[0, 4:, 3:6].double().sum()))
    with pytest.raises(ValueError, match="grid"):
        patch_numbers((3, 3), (4, 4))


def test_hidden_patches_show_the_filling():
    images, _ = noise(2, side=8)
    hidden = torch.zeros(2, 2, 2, dtype=torch.bool)
    hidden[0, 0, 1] = hidden[1, 1] = True
    found = hide_patches(images, hidden, FILLS["black"], rng=make_rng(0))
    assert torch.equal(found[0, :, :4, 4:], torch.zeros(1, 4, 4))
    assert torch.equal(found[0, :, :, :4], images[0, :, :, :4])
    assert torch.equal(found[1, :, 4:], torch.zeros(1, 4, 8))
    assert torch.equal(found[1, :, :4], images[1, :, :4])


def test_one_map_share():
    images, classes = noise(9)
    explain = lambda x, c: x[:, 0] - 0.3  # noqa: E731
    metric = OneMapShare(explain, **FAST)
    for part in torch.arange(9).split(4):
        metric.update(images[part], classes[part], indices=part)
    maps = explain(images, classes).double().flatten(1).numpy()
    mean = maps.mean(0)
    expected = sum(float(mean @ mean) for _ in range(9)) / sum(float(row @ row) for row in maps)
    residual = sum(float((row - mean) @ (row - mean)) for row in maps)
    assert metric.result().share.value == pytest.approx(expected, abs=1e-9)
    assert 1 - residual / (maps**2).sum() == pytest.approx(expected, abs=1e-9)
    assert metric.result().unrelated == pytest.approx(1 / 9)
    coarse = torch.nn.functional.adaptive_avg_pool2d(explain(images, classes).double()[:, None], 8).flatten(1)
    unit = [(row - row.mean()) / (row - row.mean()).norm() for row in coarse]
    largest = torch.linalg.svdvals(torch.stack(unit))[0] ** 2
    assert metric.result().pattern.value == pytest.approx(float(largest) / 9, abs=1e-9)


def test_large_maps_are_averaged_and_small_ones_kept():
    large, small = torch.rand(2, 64, 96, generator=make_rng(0)), torch.rand(2, 5, 7, generator=make_rng(1))
    assert torch.equal(shrunk(small)[:, :5, :7], small.double())
    assert float(shrunk(small)[:, 5:].abs().max()) == 0
    assert float(shrunk(large)[1, 2, 3]) == pytest.approx(float(large[1, 4:6, 9:12].double().mean()))


def test_energy_pointing():
    images, labels = noise(4)
    boxes = torch.tensor([[1.0, 2.0, 6.0, 7.0]]).repeat(4, 1)
    regions = box_regions(boxes, (12, 12))
    signed = lambda x, c: x[:, 0] - 0.5  # noqa: E731
    metric = EnergyPointing(signed, poses=POSES, **FAST)
    metric.update(images, labels, regions=regions)
    found = metric.result()
    shares, areas = [], []
    for i in range(4):
        heat = signed(images[i : i + 1], None)[0].double()
        inside = sum(max(float(heat[r, c]), 0) for r in range(2, 7) for c in range(1, 6))
        whole = sum(max(float(value), 0) for value in heat.flatten())
        shares.append(inside / whole)
        areas.append(25 / 144)
    assert found.untransformed.share.value == pytest.approx(np.mean(shares))
    assert found.untransformed.area.value == pytest.approx(np.mean(areas))
    assert found.untransformed.ratio.value == pytest.approx(np.mean(shares) / np.mean(areas))
    moved = []
    for number in range(POSES.n):
        for i in range(4):
            pose = POSES.of(torch.tensor([i]), number)
            heat = signed(pose(images[i : i + 1]), None)[0].double().clamp_min(0)
            region = pose(regions[i : i + 1])[0] > 0.5
            moved.append(float(heat[region].sum() / heat.sum()))
    assert found.transformed.share.value == pytest.approx(np.mean(moved), abs=1e-6)


def test_black_corners_are_the_self_consistency():
    images, classes = noise(6)
    model = convnet().eval()
    control = FrameControl(gradient, model, poses=POSES, **FAST)
    plain = SelfConsistency(gradient, model, poses=POSES, **FAST)
    for metric in (control, plain):
        metric.update(images, classes)
    expected = plain.result()
    for found, wanted in zip(control.result().black, expected[:4], strict=True):
        assert found == pytest.approx(wanted, abs=1e-12)


def test_frame_control():
    images, classes = noise(4, channels=3)
    model = convnet(channels=3).eval()
    metric = FrameControl(gradient, model, poses=POSES, fills=("mean", "reflection"), **FAST)
    metric.update(images, classes)
    found = metric.result()
    grey = images.double().mean((2, 3), keepdim=True).float().expand_as(images)
    with torch.no_grad():
        seen = torch.tensor([int(model(grey[i : i + 1])[0].argmax()) for i in range(4)])
    assert not torch.equal(seen, classes)
    raw = {"mean": [], "grey": []}
    for number in range(POSES.n):
        for i in range(4):
            one, pose = slice(i, i + 1), POSES.of(torch.tensor([i]), number)
            mask, ones = pose.mask((12, 12))[0], torch.ones(1, 1, 12, 12)
            posed = pose(images[one]) + (1 - pose(ones)) * grey[one]
            pairs = {
                "mean": (images[one], posed, classes[one]),
                "grey": (grey[one], pose(grey[one]), seen[one]),
            }
            for name, (before, after, label) in pairs.items():
                carried = pose(gradient(model, before, label))[0].double()[mask]
                renewed = gradient(model, after, label)[0].double()[mask]
                raw[name].append(float(carried @ renewed / (carried.norm() * renewed.norm())))
    assert found.fills["mean"].raw.value == pytest.approx(np.mean(raw["mean"]), abs=1e-4)
    assert found.content_free.raw.value == pytest.approx(np.mean(raw["grey"]), abs=1e-4)
    pairs = ((images, classes), (grey, seen))
    sizes = [float(gradient(model, x, c).double().abs().sum((1, 2)).mean()) for x, c in pairs]
    assert found.evidence.real.value == pytest.approx(sizes[0], rel=1e-5)
    assert found.evidence.ratio.value == pytest.approx(sizes[1] / sizes[0], rel=1e-4)
    both = [found.fills[name].raw.value for name in ("mean", "reflection")]
    assert found.filled.raw.value == pytest.approx(np.mean(both))


def test_grid_pointing():
    images, labels = tone_pictures(10, side=6)
    explain = lambda x, c: x[:, 0] * (1 + c[:, None, None]) - 0.4  # noqa: E731
    metric = GridPointing(explain, Tones(), sides=(2,), confidence=0, **FAST)
    metric.update(images, labels)
    eligible = torch.ones(10, dtype=torch.bool)
    mosaics = draw_mosaics(labels, eligible, 4, make_rng(0, "batch", 0, "mosaics", 2))
    shares = []
    for mosaic in mosaics.tolist():
        assert len({int(labels[i]) for i in mosaic}) == 4
        canvas = torch.zeros(1, 1, 12, 12)
        for place, i in enumerate(mosaic):
            canvas[0, :, 6 * (place // 2) :, 6 * (place % 2) :][:, :6, :6] = images[i]
        for place, i in enumerate(mosaic):
            heat = explain(canvas, labels[i : i + 1])[0].double().clamp_min(0)
            top, left = 6 * (place // 2), 6 * (place % 2)
            shares.append(float(heat[top : top + 6, left : left + 6].sum() / heat.sum()))
    found = metric.result()
    assert found.share.value == pytest.approx(np.mean(shares), abs=1e-6)
    assert (found.chance, found.mosaics["2x2"].n) == (0.25, len(shares))


def test_mosaics_are_put_together_row_by_row():
    images = torch.arange(9.0).reshape(9, 1, 1, 1).expand(9, 1, 2, 3)
    found = assembled(images, torch.arange(9)[None], 3)
    assert found.shape == (1, 1, 6, 9)
    assert found[0, 0, ::2, ::3].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_mosaics_use_what_is_eligible_once_and_in_the_order_of_the_seed():
    classes = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3, 3, 3])
    eligible = torch.tensor([1, 1, 1, 1, 1, 1, 1, 1, 1, 0], dtype=torch.bool)
    found = draw_mosaics(classes, eligible, 4, make_rng(1))
    assert found.shape == (2, 4)
    assert len(set(found.flatten().tolist())) == 8
    assert 9 not in found
    assert torch.equal(found, draw_mosaics(classes, eligible, 4, make_rng(1)))
    assert draw_mosaics(classes, eligible, 5, make_rng(1)).shape == (0, 5)


@pytest.mark.parametrize("kind", [Deletion, MaskK])
def test_each_filling_is_a_measure_of_its_own(kind):
    images, classes = noise(5)
    model = convnet().eval()
    both = kind(gradient, model, fills=("black", "blur"), **FAST)
    apart = [kind(gradient, model, fills=(name,), **FAST) for name in ("black", "blur")]
    for metric in (both, *apart):
        metric.update(images, classes)
    found, (black, blur) = both.result(), (metric.result() for metric in apart)
    area = lambda curves: getattr(curves, "log_odds", curves).area.value  # noqa: E731
    assert area(found) == area(found.fills["black"]) == pytest.approx(area(black), abs=1e-12)
    assert area(found.fills["blur"]) == pytest.approx(area(blur), abs=1e-12)
    assert abs(area(black) - area(blur)) > 1e-3
