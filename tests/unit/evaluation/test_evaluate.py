"""Measures of one model share the passes of a batch, and find what they would have found alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from torchsite.data import load_dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.cached import Cached, cached
from torchsite.evaluation.evaluate import evaluate
from torchsite.metrics import METRICS, Measure, Poses, plain
from torchsite.model import SITE, BlackBox
from torchsite.report.format import headline

TINY = {"widths": [4, 4], "code": 8}


@pytest.fixture
def digits():
    return load_dataset("mnist_sample", "test")[:40]


@pytest.fixture
def models():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        site = SITE(
            "identity", "lateral", image_shape=(1, 28, 28), generator_options={**TINY, "trunk": [4, 4]}
        )
        return site.eval(), BlackBox("identity", image_shape=(1, 28, 28), encoder_options=TINY).eval()


def count_passes(model, monkeypatch, name):
    passes, whole = [], getattr(model, name)
    monkeypatch.setattr(model, name, lambda images: passes.append(len(images)) or whole(images))
    return passes


def test_a_batch_costs_one_pass_as_it_is_and_one_for_each_pose(models, digits, monkeypatch):
    site, judge = models
    passes = count_passes(site, monkeypatch, "run")
    result = evaluate(site, digits, judge=judge, poses=Poses(n=2), batch_size=20, n_probed=0)
    assert len(passes) == 2 * 3
    assert {"self_consistency", "pointing_game", "prototype_recognition", "completeness"} <= set(
        result.values
    )


def test_probes_see_the_first_pictures_alone(models, digits, monkeypatch):
    """Sixteen patches in two fillings; two poses in three more fillings and of grey pictures; grey as is."""
    site, _ = models
    passes = count_passes(site, monkeypatch, "run")
    some, all_of_them = (evaluate(site, digits, batch_size=20, n_probed=n) for n in (8, 8000))
    assert len(passes) >= 2 * 3 + 2 * 16 + 2 * 4 + 1
    assert some.config["n_probed"] == 8
    assert all_of_them.config["n_probed"] == len(digits)
    first = evaluate(site, digits[:8], batch_size=20)
    for name in ("patch_deletion", "frame_control"):
        assert str(some.values[name]) == str(first.values[name])
        assert str(some.values[name]) != str(all_of_them.values[name])
    assert some.values["accuracy"] != first.values["accuracy"]


def test_the_black_box_is_asked_once_too(models, digits, monkeypatch):
    passes = count_passes(models[1], monkeypatch, "forward")
    evaluate(models[1], digits, poses=Poses(n=2), batch_size=20)
    assert len(passes) == 2 * 3


def test_shared_passes_change_no_figure(models, digits):
    poses = Poses(n=2)
    shared = evaluate(models[0], digits, poses=poses, batch_size=40).values
    images = digits.images.float() / 255
    classes = models[0](images).argmax(1)
    for name in ("accuracy", "prediction_equivariance", "self_consistency"):
        alone = METRICS[name](models[0], models[0], poses=poses, n_classes=10)
        alone.update(images, digits.labels, classes)
        assert shared[name] == plain(alone.result()), name


def test_bright_pixels_of_grey_pictures_are_taken_for_the_object_only_where_they_are(models, digits):
    """X-rays are grey too, and there the background is bright; a folder may bear any name."""
    site, _ = models
    assert "pointing_game" in evaluate(site, digits, n_probed=0).values
    x_rays = replace(digits, name="x_rays", images=255 - digits.images)
    assert "pointing_game" not in evaluate(site, x_rays, n_probed=0).values
    folder = replace(digits, name="mnist", paths=(Path("1.png"),) * len(digits))
    assert "pointing_game" not in evaluate(site, folder, n_probed=0).values


def test_regions_that_are_given_are_pointed_at(models, digits):
    site, _ = models
    x_rays = replace(digits, name="x_rays")
    everywhere = torch.ones(len(digits), 28, 28)
    found = evaluate(site, x_rays, regions=everywhere, n_probed=0, batch_size=16)
    assert found.values["pointing_game"]["untransformed"]["tau_0"]["score"]["value"] == 1
    assert "regions" in found.config
    dark = evaluate(site, x_rays, regions=lambda images: 1 - images.mean(1), n_probed=0, batch_size=16)
    bright = evaluate(site, digits, n_probed=0, batch_size=16)
    assert dark.values["pointing_game"] != bright.values["pointing_game"]
    with pytest.raises(ConfigError, match="regions"):
        evaluate(site, x_rays, regions=everywhere[:-1])


def test_other_pictures_are_another_pass_and_forgotten_ones_too(models, digits, monkeypatch):
    passes = count_passes(models[0], monkeypatch, "run")
    shared, images = cached(models[0]), digits.images[:4].float() / 255
    first = shared.explain(images)
    assert shared.explain(images.clone()) is first
    assert not torch.equal(shared(images.flip(0)), first.logits)
    shared(images.reshape(2, 2, 1, 28, 28).flatten(0, 1))
    assert len(passes) == 2
    shared.forget()
    shared(images)
    assert len(passes) == 3


def test_maps_are_kept_for_pictures_and_classes_until_they_are_forgotten():
    calls = []
    kept = Cached(lambda images, classes: calls.append(1) or images[:, 0])
    images, classes = torch.rand(2, 1, 4, 4).requires_grad_(), torch.tensor([0, 1])
    for _ in range(2):
        assert torch.equal(kept(images, classes), images[:, 0])
        assert not kept(images, classes).requires_grad
    assert len(calls) == 1
    kept(images, classes.flip(0))
    kept.forget()
    kept(images, classes)
    assert len(calls) == 3


class Brightness(Measure):
    """The mean of the pictures: a measure that nobody listed but METRICS."""

    of_model = shares_passes = True
    headline = ("value",)

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._add_sums(2)

    def _update(self, batch):
        mean = batch.images.double().flatten(1).mean(1)
        return torch.stack([mean, torch.ones_like(mean)], dim=1)

    def _compute(self, sums):
        return {"value": float(sums[0, 0] / sums[0, 1])}


def test_a_new_measure_is_evaluated_and_shown_by_what_stands_on_its_class(models, digits, monkeypatch):
    monkeypatch.setitem(METRICS, "brightness", Brightness)
    result = evaluate(models[1], digits, poses=Poses(n=1), batch_size=40)
    mean = float(digits.images.double().mean() / 255)
    assert result.values["brightness"]["value"] == pytest.approx(mean)
    assert headline(result)["brightness, value"] == f"{mean:.2g}"
