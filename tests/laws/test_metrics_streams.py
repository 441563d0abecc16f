"""Laws of every measure: order, batching and replicas do not matter; nothing global is touched."""

import copy
import math

import pytest
import torch
from torch import nn

from experiments.bam import BAM, METRICS_OF_PAIRS, ObjectMotion
from metric_models import First, Tones, tone_pictures
from torchsite.metrics import (
    METRICS,
    GridPointing,
    Poses,
    as_explainer,
    plain,
    strokes,
)
from torchsite.randomness import make_rng
from torchsite.report.format import look_up, score_paths
from torchsite.transforms import TransformFamily

N, SIDE, CLASSES = 24, 10, 3
POSES = Poses(TransformFamily(max_rotation=45, max_shift=0.1, scale=(0.9, 1.1)), n=2, seed=5)


class Templates(nn.Module):
    """A self-explaining model with F1 = identity: fixed prototypes, heatmap w ⊙ x, logit their sum."""

    def __init__(self, seed=0):
        super().__init__()
        rng = make_rng(seed, "templates")
        self.templates = nn.Parameter(torch.randn(CLASSES, 1, SIDE, SIDE, generator=rng))
        self.bias = nn.Parameter(torch.zeros(CLASSES, 1, SIDE, SIDE))

    def explain(self, images):
        return Reasons((self.templates + self.bias).expand(len(images), -1, -1, -1, -1), images)

    def forward(self, images):
        return self.explain(images).logits


class Reasons:
    def __init__(self, prototypes, images):
        self.prototypes, self.features = prototypes, images
        self.maps = (prototypes * images[:, None]).sum(2)
        self.logits = self.maps.sum((-2, -1))

    def heatmaps(self, size=None, classes=None):
        return self.maps if classes is None else self.maps[torch.arange(len(self.maps)), classes]


def pictures():
    rng = make_rng(1, "pictures")
    images = torch.rand(N, 1, SIDE, SIDE, generator=rng)
    return images, torch.randint(CLASSES, (N,), generator=rng)


def build(name, model):
    options = {"judge": Templates(9)} if name == "prototype_recognition" else {}
    options |= {"poses": POSES, "n_resamples": 40}
    if name == "bam":
        return BAM(model, Templates(7), **options)
    if name == "object_motion":
        explainers = [
            as_explainer(explain, First()) for explain in (lambda x, _: x[:, 0], lambda x, _: -x[:, 0])
        ]
        return ObjectMotion(*explainers, **options)
    if name == "grid_pointing":
        return GridPointing(lambda images, _: images[:, 0], Tones(), sides=(2,), confidence=0, **options)
    return METRICS[name](model, n_classes=CLASSES, **options)


def feed(metric, images, labels, part):
    x, y = images[part], labels[part]
    if isinstance(metric, BAM):
        metric.update(x, y, y, strokes(x) > 0.5, x.flip(-1), x.sqrt(), indices=part)
    elif isinstance(metric, ObjectMotion):
        metric.update(x, 0 * y, 0 * y, strokes(x) > 0.5, x.flip(-1), indices=part)
    elif isinstance(metric, GridPointing):
        tones, classes = tone_pictures(N, side=SIDE)
        metric.update(tones[part], classes[part], indices=part)
    else:
        metric.update(x, y, indices=part, regions=strokes(x))


def figures(result):
    """All numbers of a result, in order."""
    if isinstance(result, dict):
        return [number for value in result.values() for number in figures(value)]
    if isinstance(result, list):
        return [number for value in result for number in figures(value)]
    return [math.nan if result is None else result] if not isinstance(result, str) else []


each_metric = pytest.mark.parametrize("name", [*METRICS, *METRICS_OF_PAIRS])
PARTS = [torch.arange(N)[start : start + 6] for start in range(0, N, 6)]


@each_metric
def test_replicas_merge_to_the_single_run(name):
    images, labels = pictures()
    single, left, right = (build(name, Templates()) for _ in range(3))
    for number, part in enumerate(PARTS):
        for metric in (single, (left, right)[number % 2]):
            feed(metric, images, labels, part)
    left.merge_state(right)
    found, expected = figures(plain(left.result())), figures(plain(single.result()))
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert any(math.isfinite(number) for number in found)


@each_metric
def test_the_order_of_batches_does_not_matter(name):
    images, labels = pictures()
    forwards, backwards = build(name, Templates()), build(name, Templates())
    for part, other in zip(PARTS, reversed(PARTS), strict=True):
        feed(forwards, images, labels, part)
        feed(backwards, images, labels, other)
    assert torch.allclose(forwards.sums, backwards.sums, rtol=1e-10, atol=1e-10)


@each_metric
def test_measuring_leaves_the_model_and_the_global_random_state_alone(name):
    images, labels = pictures()
    model = Templates().train()
    before, random_state = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    metric = build(name, model)
    feed(metric, images, labels, PARTS[0])
    metric.result()
    assert model.training
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert torch.equal(random_state, torch.get_rng_state())
    assert not list(metric.parameters()), "the model must not become part of the metric"


@each_metric
def test_reset_forgets_everything(name):
    images, labels = pictures()
    used, fresh = build(name, Templates()), build(name, Templates())
    feed(used, images, labels, PARTS[0])
    used.reset()
    for metric in (used, fresh):
        feed(metric, images, labels, PARTS[1])
    assert torch.equal(used.sums, fresh.sums)


@each_metric
def test_the_state_is_bounded(name):
    images, labels = pictures()
    metric = build(name, Templates())
    feed(metric, images, labels, PARTS[0])
    size = sum(state.numel() for state in metric.metric_state.values())
    for part in PARTS[1:]:
        feed(metric, images, labels, part)
    assert sum(state.numel() for state in metric.metric_state.values()) == size


@each_metric
def test_the_value_lies_in_its_interval_and_headlines_exist(name):
    images, labels = pictures()
    metric = build(name, Templates())
    for part in PARTS:
        feed(metric, images, labels, part)
    result = plain(metric.result())
    paths = [path for pattern in metric.headline for path in score_paths(result, pattern)]
    assert len(paths) >= len(metric.headline)
    for path in paths:
        found = look_up(result, *path)
        assert found is not None, path
        if isinstance(found, dict):
            assert found["low"] - 1e-9 <= found["value"] <= found["high"] + 1e-9


def test_forward_adds_the_batch_and_tells_its_own_result():
    images, labels = pictures()
    called, updated = (METRICS["accuracy"](Templates(), n_resamples=40) for _ in range(2))
    for part in PARTS:
        of_batch = called(images[part], labels[part])
        updated.update(images[part], labels[part])
    assert torch.allclose(called.sums, updated.sums)
    alone = METRICS["accuracy"](Templates(), n_resamples=40)
    alone.update(images[PARTS[-1]], labels[PARTS[-1]], indices=PARTS[-1])
    assert of_batch == alone.compute()


def test_a_batch_that_makes_no_mosaic_asks_nobody():
    """Two pictures of one class fill no mosaic of four classes: nothing is explained, nothing is counted."""

    def never(images, classes):
        raise AssertionError("asked for a map of nothing")

    metric = GridPointing(never, Tones(), sides=(2,), confidence=0, n_resamples=0)
    tones, classes = tone_pictures(N, side=SIDE)
    same = (classes == classes[0]).nonzero().flatten()[:2]
    metric.update(tones[same], classes[same])
    assert metric.result().mosaics["2x2"].n == 0
