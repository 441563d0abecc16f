"""Each measure where the right answer is known."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from metric_models import Spot, Templates, convnet, gradient, noise, spot_pictures
from torchsite.errors import ConfigError, NotApplicableError, ShapeError
from torchsite.metrics import (
    METRICS,
    Accuracy,
    Completeness,
    PointingGame,
    Poses,
    PredictionEquivariance,
    PrototypeLikeness,
    PrototypeRecognition,
    Sanity,
    SelfConsistency,
    self_consistency,
    strokes,
)
from torchsite.metrics.sanity import randomise, weighted_layers
from torchsite.randomness import make_rng
from torchsite.transforms import TransformFamily

STILL = Poses(TransformFamily.none(), n=1)
FAST = {"n_resamples": 20}


class Constant(nn.Module):
    """Always the same answer."""

    def forward(self, images):
        return torch.tensor([0.0, 1.0, 0.0, 0.0]).repeat(len(images), 1)


def templates(seed=0):
    return Templates(torch.rand(4, 1, 12, 12, generator=make_rng(seed)))


def test_accuracy_and_equivariance_without_motion():
    images, labels = spot_pictures(10)
    accuracy = Accuracy(gradient, Spot(), poses=STILL, **FAST)
    accuracy.update(images, labels)
    assert accuracy.result() == ((1, 1, 1), (1, 1, 1))
    survival = PredictionEquivariance(gradient, Spot(), poses=STILL, n_classes=2, **FAST)
    survival.update(images, labels)
    found = survival.result()
    assert found.share.value == 1
    assert found.calibrated.value == 1
    assert not found.curves


def test_a_model_that_always_answers_the_same_survives_but_calibrates_to_0():
    images, labels = noise(10)
    metric = PredictionEquivariance(gradient, Constant(), n_classes=4, **FAST)
    metric.update(images, labels)
    found = metric.result()
    assert (found.share.value, found.floor.value, found.calibrated.value) == (1, 1, 0)
    assert math.isnan(found.per_class[0].share.value)


def test_completeness_of_a_complete_and_of_an_incomplete_explanation():
    images, labels = noise(9)
    model = templates()
    complete = Completeness(model, **FAST)
    complete.update(images, labels)
    assert complete.result().worst < 1e-5
    lame = Completeness(lambda x, c: x[:, 0] * 0, model, **FAST)
    lame.update(images, labels)
    assert lame.result().worst == pytest.approx(1, abs=1e-6)
    assert math.isnan(Completeness(model, **FAST)._compute(torch.zeros(3, 2)).worst)


def pointed(explain, images, labels, **options):
    metric = PointingGame(explain, poses=STILL, n_classes=4, **FAST, **options)
    metric.update(images, labels, regions=strokes(images))
    return metric.result().untransformed


def test_pointing_at_anything_scores_the_area():
    images, labels = noise(20)
    found = pointed(lambda x, c: torch.ones_like(x[:, 0]), images, labels)
    for score in found.values():
        assert score.score == pytest.approx(score.anywhere)
    values = [score.score.value for score in found.values()]
    assert values == sorted(values)


def test_pictures_without_a_region_are_neither_hit_nor_miss():
    images, labels = noise(8)
    labels[:] = torch.arange(8) % 4
    dark = images.clone()
    dark[labels == 3] = 0
    found = pointed(lambda x, c: x[:, 0], dark, labels)["tau_0"]
    assert found.score.value == 1
    assert math.isnan(found.per_class[3].value)


def test_the_pointing_game_needs_regions_and_classes():
    images, labels = noise(2)
    with pytest.raises(NotApplicableError, match="strokes"):
        PointingGame(gradient, convnet(), n_classes=4).update(images, labels)
    with pytest.raises(ConfigError, match="n_classes"):
        PointingGame(gradient, convnet())
    with pytest.raises(ConfigError, match="tolerances"):
        PointingGame(gradient, convnet(), n_classes=4, tolerances=())


def test_maps_of_the_model_lose_their_rank_and_maps_of_the_picture_keep_it():
    images, labels = noise(16)
    model = convnet().eval()
    for explain, expected in ((gradient, None), (lambda m, x, c: x[:, 0], 1.0)):
        metric = Sanity(explain, model, n_stages=2, **FAST)
        metric.update(images, labels)
        found = metric.result()
        assert len(found.stages) == len(found.correlation) == 2
        assert (found.score.value == pytest.approx(1)) if expected else found.score.value < 0.8
        assert abs(found.floor.value) < 0.6


def test_randomising_permutes_weights_from_the_output_down():
    model = convnet()
    names = weighted_layers(model)
    assert names == ["7", "3", "1", "0"]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    randomise(model, names[:1], make_rng(0))
    after = model.state_dict()
    assert torch.equal(before["0.weight"], after["0.weight"])
    assert not torch.equal(before["7.weight"], after["7.weight"])
    assert torch.equal(before["7.weight"].flatten().sort().values, after["7.weight"].flatten().sort().values)


def test_sanity_needs_weights_and_an_explainer_that_can_be_rebuilt():
    with pytest.raises(NotApplicableError, match="weights"):
        Sanity(gradient, Spot())
    with pytest.raises(ConfigError, match="n_stages"):
        Sanity(gradient, convnet(), n_stages=0)
    with pytest.raises(NotApplicableError):
        Sanity(lambda x, c: x[:, 0], convnet()).update(*noise(2))


def test_prototypes_are_recognised_by_a_judge_that_knows_them():
    images, labels = noise(5)
    eye = torch.zeros(4, 1, 12, 12)
    for k in range(4):
        eye[k, 0, 3 * k] = 1
    model = Templates(eye)
    for judge, share in ((model, 1.0), (Templates(eye.roll(1, 0)), 0.0), (Constant(), 0.25)):
        metric = PrototypeRecognition(model, judge=judge, n_classes=4, poses=STILL, **FAST)
        metric.update(images, labels)
        found = metric.result()
        assert found.untransformed.value == found.transformed.value == share
        assert found.floor == 0.25


def test_prototype_recognition_says_where_it_does_not_apply():
    images, labels = noise(2)
    with pytest.raises(NotApplicableError, match="prototypes"):
        PrototypeRecognition(gradient, convnet(), judge=convnet(), n_classes=4)
    with pytest.raises(ConfigError, match="n_classes"):
        PrototypeRecognition(templates(), judge=convnet())
    coarse = Templates(torch.rand(4, 1, 12, 12, generator=make_rng(0)))
    metric = PrototypeRecognition(coarse, judge=convnet(), n_classes=3)
    with pytest.raises(NotApplicableError, match="prototypes"):
        metric.update(images, labels)


def test_the_nearest_prototype_is_that_of_the_largest_cosine_and_not_of_the_largest_product():
    images, labels = noise(40)
    shapes = torch.rand(4, 1, 12, 12, generator=make_rng(3))
    for sizes, same in ((torch.ones(4), True), (torch.tensor([9.0, 1, 1, 1]), False)):
        equal = shapes / shapes.flatten(1).norm(dim=1)[:, None, None, None]
        model = Templates(equal * sizes[:, None, None, None])
        metric = PrototypeLikeness(model, n_classes=4, poses=STILL, **FAST)
        metric.update(images, labels)
        found, reasons = metric.result(), model.explain(images)
        cosines = torch.nn.functional.cosine_similarity(
            reasons.prototypes.flatten(2), images.flatten(1)[:, None], dim=2
        )
        share = (cosines.argmax(1) == reasons.logits.argmax(1)).double().mean().item()
        assert found.nearest.value == found.nearest_transformed.value == share
        assert (share == 1) == same
        commonest = reasons.logits.argmax(1).bincount(minlength=4).max().item() / 40
        assert found.nearest_floor == pytest.approx(commonest)


@dataclass
class Drawn:
    """An explanation whose prototypes are these."""

    prototypes: torch.Tensor
    features: torch.Tensor

    @property
    def logits(self):
        return (self.prototypes * self.features[:, None]).sum((2, 3, 4))


class Copies(nn.Module):
    """Prototypes are the picture itself, times the number of the class: they move with it."""

    def explain(self, images):
        return Drawn(images[:, None] * torch.arange(1.0, 5).view(1, 4, 1, 1, 1), images)

    def forward(self, images):
        return self.explain(images).logits


def test_prototypes_that_are_the_picture_follow_it_and_fixed_ones_do_not():
    images, labels = noise(24)
    poses = Poses(TransformFamily(max_rotation=90, max_shift=0.0), n=2)
    scores = {}
    for model in (Copies(), Templates(images[:4] + 0)):
        metric = PrototypeLikeness(model, n_classes=4, poses=poses, **FAST)
        metric.update(images, labels)
        scores[type(model)] = metric.result().consistency
    copies, fixed = scores[Copies], scores[Templates]
    assert copies.raw.value == pytest.approx(1, abs=1e-5)
    assert copies.floor.value < 0.999
    assert copies.calibrated.value == pytest.approx(1, abs=1e-3)
    assert fixed.raw.value == pytest.approx(fixed.floor.value, abs=1e-6)
    assert fixed.calibrated.value == pytest.approx(0, abs=1e-6)


def test_prototype_likeness_says_where_it_does_not_apply():
    with pytest.raises(NotApplicableError, match="prototypes"):
        PrototypeLikeness(gradient, convnet(), n_classes=4)
    with pytest.raises(ConfigError, match="n_classes"):
        PrototypeLikeness(templates())


def test_a_picture_alone_in_its_batch_adds_nothing_to_the_floor():
    images, labels = noise(5)
    metric = SelfConsistency(lambda x, c: x[:, 0], n_resamples=10)
    metric.update(images[:1], labels[:1])
    alone = metric.result()
    assert alone.raw.value == pytest.approx(1)
    assert math.isnan(alone.floor.value)
    metric.update(images[1:], labels[1:])
    assert 0.5 < metric.result().floor.value < 1
    with pytest.raises(ShapeError):
        self_consistency(lambda x, c: x[:, 0], images[:1], labels[:1], rng=make_rng(0))


def test_an_empty_mask_is_not_counted():
    gone = TransformFamily(max_rotation=0, max_shift=0, scale=(1e-3, 1e-3))
    images, labels = noise(4)
    metric = SelfConsistency(lambda x, c: x[:, 0], poses=Poses(gone, n=1), n_resamples=10)
    metric.update(images, labels)
    assert math.isnan(metric.result().raw.value)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda x, y: (x[:, 0], y), "images"),
        (lambda x, y: ((255 * x).long(), y), "uint8"),
        (lambda x, y: (x, y.float()), "labels: "),
        (lambda x, y: (x, y[:2]), "labels: "),
        (lambda x, y: (x, y, y, torch.arange(2)), "indices"),
        (lambda x, y: (x, y, y, None, x), "regions"),
    ],
)
def test_batches_that_do_not_fit_are_refused(spoil, said):
    metric = Accuracy(gradient, convnet())
    with pytest.raises(ShapeError, match=said):
        metric.update(*spoil(*noise(3)))


def test_counts_must_be_counts():
    with pytest.raises(ConfigError, match="n_resamples=-1"):
        Accuracy(gradient, convnet(), n_resamples=-1)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, kind in METRICS.items()
        if not (kind.needs_regions or kind.needs_options or kind.of_prototypes)
    ],
)
def test_colour_pictures_that_are_not_square(name):
    rng = make_rng(0)
    images = torch.rand(5, 3, 14, 10, generator=rng)
    metric = METRICS[name](gradient, convnet(channels=3), n_classes=4, n_resamples=5)
    metric.update(images, torch.arange(5) % 4)
    metric.result()
