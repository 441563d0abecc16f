"""Every measure against a slow float64 re-derivation from its definition, one picture and pixel at a time."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis.strategies import integers, sampled_from
from torch import nn

from experiments.bam import BAM
from experiments.bam.metric import region_importance
from torchsite.metrics import (
    Deletion,
    MaskK,
    PointingGame,
    Poses,
    SelfConsistency,
    as_explainer,
    strokes,
)
from torchsite.metrics.grouping import partner_offset
from torchsite.metrics.pointing_game import dilate, pointing_hits
from torchsite.metrics.ranking import log_odds
from torchsite.metrics.similarity import masked_cosine, masked_pearson, ranks, spearman
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

seeds = integers(0, 2**31)
SIDE, CLASSES = 9, 3
POSES = Poses(TransformFamily(max_rotation=60, max_shift=0.2), n=3, seed=11)
few = settings(max_examples=15, deadline=None)


class Linear(nn.Module):
    """A seeded linear classifier of pictures."""

    def __init__(self, seed=0):
        super().__init__()
        rng = make_rng(seed, "linear")
        self.weight = nn.Parameter(torch.randn(SIDE * SIDE, CLASSES, generator=rng))

    def forward(self, images):
        return images.flatten(1) @ self.weight


def evidence(model, images, classes):
    return (model.weight.T[classes].reshape(-1, SIDE, SIDE) * images[:, 0]).detach()


def draw(n, seed):
    rng = make_rng(seed, "reference")
    images = torch.rand(n, 1, SIDE, SIDE, generator=rng)
    return images, torch.randint(CLASSES, (n,), generator=rng)


def cosine(a, b):
    norm = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


@few
@given(seed=seeds)
def test_similarities(seed):
    rng = make_rng(seed)
    a, b = torch.randn(2, 4, 5, 6, generator=rng)
    masks = torch.rand(4, 5, 6, generator=rng) < 0.7
    found = masked_cosine(a, b, masks), masked_pearson(a, b, masks), spearman(a.round(), b.round())
    for k in range(4):
        x, y = (maps[k][masks[k]].double().tolist() for maps in (a, b))
        assert float(found[0][k]) == pytest.approx(cosine(x, y), abs=1e-12)
        assert float(found[1][k]) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
        tied = scipy.stats.spearmanr(a[k].round().flatten(), b[k].round().flatten()).statistic
        assert float(found[2][k]) == pytest.approx(tied, abs=1e-12)
    expected = scipy.stats.rankdata(a[0].round().flatten()) - 1
    assert ranks(a.round())[0].numpy() == pytest.approx(expected)


def test_self_consistency():
    model, (images, classes) = Linear(), draw(7, 4)
    metric = SelfConsistency(evidence, model, poses=POSES, n_classes=CLASSES, n_resamples=20)
    metric.update(images, classes)
    found = metric.result()
    raw, floor, centred, of_class_1 = [], [], [], []
    for number in range(POSES.n):
        transform = POSES.of(torch.arange(7), number)
        masks = transform.mask((SIDE, SIDE))
        renewed = evidence(model, transform(images), classes).double()
        offset = partner_offset(number, POSES.n, 7)
        for j in range(7):
            inside = masks[j]
            carried = transform[j](evidence(model, images[j : j + 1], classes[j : j + 1]))[0].double()
            i = (j + offset) % 7
            other = transform[j](evidence(model, images[i : i + 1], classes[i : i + 1]))[0].double()
            raw.append(cosine(carried[inside].tolist(), renewed[j][inside].tolist()))
            floor.append(cosine(other[inside].tolist(), renewed[j][inside].tolist()))
            centred.append(np.corrcoef(carried[inside], renewed[j][inside])[0, 1])
            of_class_1 += [raw[-1]] if int(classes[j]) == 1 else []
    assert found.raw.value == pytest.approx(np.mean(raw), abs=1e-7)
    assert found.floor.value == pytest.approx(np.mean(floor), abs=1e-7)
    assert found.centred.value == pytest.approx(np.mean(centred), abs=1e-7)
    expected = (np.mean(raw) - np.mean(floor)) / (1 - np.mean(floor))
    assert found.calibrated.value == pytest.approx(expected, abs=1e-6)
    assert found.per_class[1].raw.value == pytest.approx(np.mean(of_class_1), abs=1e-7)


def near(mask, row, col, tolerance):
    return any(
        mask[r, c] and (r - row) ** 2 + (c - col) ** 2 <= tolerance**2
        for r in range(mask.shape[0])
        for c in range(mask.shape[1])
    )


@few
@given(seed=seeds, tolerance=integers(0, 4))
def test_dilation_and_hits(seed, tolerance):
    rng = make_rng(seed)
    mask = torch.rand(1, 7, 8, generator=rng) < 0.08
    maps = torch.randint(4, (1, 7, 8), generator=rng).float()
    wide = dilate(mask, tolerance)[0]
    expected = [[near(mask[0], row, col, tolerance) for col in range(8)] for row in range(7)]
    assert wide.tolist() == expected
    maxima = [(r, c) for r in range(7) for c in range(8) if maps[0, r, c] == maps.max()]
    hits = sum(expected[r][c] for r, c in maxima) / len(maxima)
    assert float(pointing_hits(maps, wide[None])) == pytest.approx(hits)


def test_pointing_game_is_the_mean_over_classes():
    model, (images, _) = Linear(), draw(9, 2)
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1, 2, 2])
    metric = PointingGame(evidence, model, poses=POSES, n_classes=CLASSES, n_resamples=20)
    metric.update(images, labels, regions=strokes(images))
    found = metric.result()
    for tolerance in (0, 2):
        rates = {"untransformed": [], "transformed": []}
        for c in range(CLASSES):
            hits = {"untransformed": [], "transformed": []}
            for j in (labels == c).nonzero()[:, 0].tolist():
                one = torch.tensor([j])
                turned = [POSES.of(one, number)(images[one]) for number in range(POSES.n)]
                for kind, shown in [("untransformed", images[one])] + [("transformed", t) for t in turned]:
                    heat = evidence(model, shown, labels[one])[0]
                    row, col = divmod(int(heat.argmax()), SIDE)
                    hits[kind].append(near(shown[0, 0] > 0.5, row, col, tolerance))
            for kind, values in hits.items():
                rates[kind].append(np.mean(values))
        for kind, values in rates.items():
            score = getattr(found, kind)[f"tau_{tolerance}"]
            assert score.score.value == pytest.approx(np.mean(values))
            assert [c.value for c in score.per_class] == pytest.approx(values)


def test_mask_k():
    model, (images, labels) = Linear(), draw(6, 8)
    metric = MaskK(evidence, model, poses=POSES, fractions=(0.0, 0.3, 0.8), fills=[0.25], n_resamples=20)
    metric.update(images, labels)
    found = metric.result()
    for k, n in enumerate((0, round(0.3 * SIDE**2), round(0.8 * SIDE**2))):
        right, odds = [], []
        for j in range(6):
            one = torch.tensor([j])
            order = np.argsort(evidence(model, images[one], labels[one])[0].flatten().numpy(), kind="stable")
            masked = images[one].clone()
            for pixel in order[:n]:
                masked[0, 0, pixel // SIDE, pixel % SIDE] = 0.25
            for number in range(POSES.n):
                logits = model(POSES.of(one, number)(masked))[0].double().detach()
                p = float(logits.softmax(0)[labels[j]])
                right.append(int(logits.argmax()) == int(labels[j]))
                odds.append(math.log(p / (1 - p)))
        assert found.accuracy.curve[k].value == pytest.approx(np.mean(right))
        assert found.log_odds.curve[k].value == pytest.approx(np.mean(odds), abs=1e-5)
    a, b, c = (point.value for point in found.log_odds.curve)
    assert found.log_odds.area.value == pytest.approx((0.3 * (a + b) / 2 + 0.5 * (b + c) / 2) / 0.8)


@few
@given(seed=seeds, scale=sampled_from([0.1, 10.0, 300.0]))
def test_log_odds_where_probabilities_do_not_round(seed, scale):
    logits = scale * torch.randn(5, 4, generator=make_rng(seed), dtype=torch.float64)
    found = log_odds(logits, torch.zeros(5, dtype=torch.int64))
    expected = [float(row[0] - torch.logsumexp(row[1:], 0)) for row in logits]
    assert found.tolist() == pytest.approx(expected)
    assert bool(found.isfinite().all())


def importance(heat, mask):
    positive = np.maximum(heat.double().numpy(), 0)
    clipped = np.minimum(positive, np.quantile(positive, 0.99))
    return (clipped / clipped.max())[mask.numpy()].mean()


def test_bam():
    f_object, f_scene = Linear(1), Linear(2)
    shown, _ = draw(40, 5)
    bare, patched = shown.flip(-1), (shown.flip(-1) + 0.02).clamp(0, 1)
    objects, scenes = f_object(shown).argmax(1), f_scene(shown).argmax(1)
    objects[:5] = (objects[:5] + 1) % CLASSES
    regions = torch.zeros(40, SIDE, SIDE, dtype=torch.bool)
    regions[:, 2:6, 3:7] = True
    explain = [lambda x, c, m=m: evidence(m, x, c) for m in (f_object, f_scene)]
    metric = BAM(as_explainer(explain[0], f_object), as_explainer(explain[1], f_scene), n_resamples=20)
    metric.update(shown, objects, scenes, regions, bare, patched)
    found = metric.result()
    contrast, dependent, independent = [], [], []
    for j in range(40):
        one = slice(j, j + 1)

        def a(model, pictures, classes, one=one):
            return importance(evidence(model, pictures[one], classes[one])[0], regions[one][0])

        def right(model, pictures, classes, one=one):
            return int(model(pictures[one]).argmax()) == int(classes[one])

        if right(f_object, shown, objects) and right(f_scene, shown, scenes):
            contrast.append(a(f_object, shown, objects) - a(f_scene, shown, scenes))
        if right(f_scene, shown, scenes) and right(f_scene, bare, scenes):
            dependent.append(a(f_scene, bare, scenes) > a(f_scene, shown, scenes))
        if right(f_scene, bare, scenes) and right(f_scene, patched, scenes):
            before, after = a(f_scene, bare, scenes), a(f_scene, patched, scenes)
            independent.append(abs(before - after) < 0.1 * before)
    assert 0 < len(contrast) <= 35
    assert found.mcs.value == pytest.approx(np.mean(contrast), abs=1e-9)
    assert found.idr.value == pytest.approx(np.mean(dependent))
    assert found.iir.value == pytest.approx(np.mean(independent))


def test_importance_of_a_map_with_fewer_bright_pixels_than_the_percentile_is_not_lost():
    heat = torch.zeros(1, 20, 20)
    heat[0, 3, 3] = 5.0
    regions = torch.zeros(1, 20, 20, dtype=torch.bool)
    regions[0, 3, 2:4] = True
    assert float(region_importance(heat, regions)) == 0.5


@pytest.mark.filterwarnings("ignore")
def test_deletion_is_pixel_flipping_of_quantus():
    quantus = pytest.importorskip("quantus", reason="the cross-check needs `pip install quantus`")
    model, (images, labels) = Linear().eval(), draw(8, 6)
    heatmaps = evidence(model, images, labels)
    flip = quantus.PixelFlipping(
        features_in_step=9, perturb_baseline=0.0, abs=False, normalise=False, disable_warnings=True
    )
    theirs = flip(
        model=model,
        x_batch=images.numpy(),
        y_batch=labels.numpy(),
        a_batch=heatmaps[:, None].numpy(),
        softmax=True,
        device="cpu",
    )
    metric = Deletion(evidence, model, fractions=[step / 9 for step in range(10)], n_resamples=20)
    metric.update(images, labels)
    ours = [point.value for point in metric.result().curve[1:]]
    assert ours == pytest.approx(np.mean(theirs, axis=0).tolist(), abs=1e-5)
