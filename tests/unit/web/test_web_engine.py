"""The engine says what the definitions say."""

import pytest
import torch
from web_makers import job, pose

from torchsite.metrics.patch_deletion import PatchDeletion
from torchsite.metrics.self_consistency import consistency_scores
from torchsite.metrics.similarity import masked_cosine
from torchsite.transforms.affine import AffineTransform
from torchsite.web import rendering
from torchsite.web.engine import answer
from torchsite.web.library import OWN
from torchsite.web.rendering import render

GRADIENT = ("gradient", "digits")
OTHER = ("gradient", "digits_black_box")


def test_raw_and_centred_are_those_of_the_measure(library):
    asked = job()
    found = answer(library, asked)
    model = library["digits"].model
    explain = lambda image: model.explain(image).heatmaps(classes=found.label)  # noqa: E731
    still = asked.picture[None]
    scores = consistency_scores(explain(still), explain(asked.transform(still)), asked.transform, 0)
    figures = found.pairs[(OWN, "digits")].scores
    torch.testing.assert_close(torch.tensor([figures.raw, figures.centred]), scores[0, :2].float())


def test_the_floor_is_the_mean_over_other_pictures(library):
    asked = job()
    found = answer(library, asked)
    served = library["digits"]
    pair = found.pairs[(OWN, "digits")]
    images = served.samples.images[:8]
    maps = served.model.explain(images).heatmaps(classes=served.model(images).argmax(1))
    mask = asked.transform.mask((28, 28))
    alike = [masked_cosine(asked.transform(m[None]), pair.renewed[None], mask) for m in maps]
    assert pair.scores.floor == pytest.approx(float(torch.cat(alike).mean()), abs=1e-5)
    room = 1 - pair.scores.floor
    assert pair.scores.calibrated == pytest.approx((pair.scores.raw - pair.scores.floor) / room)


def test_a_sample_is_no_partner_of_itself(library):
    samples = library["digits"].samples.images
    itself, others = samples[0], samples[1:8]
    found = answer(library, job(itself, pose()))
    served = library["digits"]
    maps = served.model.explain(others).heatmaps(classes=served.model(others).argmax(1))
    pair = found.pairs[(OWN, "digits")]
    alike = masked_cosine(maps, pair.renewed.expand(7, -1, -1), torch.ones(7, 28, 28, dtype=torch.bool))
    assert pair.scores.floor == pytest.approx(float(alike.mean()), abs=1e-5)


def test_a_picture_that_does_not_move_is_alike(library):
    found = answer(library, job(transform=pose(), explainers=((OWN, "digits"), GRADIENT, OTHER)))
    for pair in found.pairs.values():
        torch.testing.assert_close(pair.carried, pair.renewed, rtol=1e-4, atol=1e-5)
        assert pair.scores.raw == pytest.approx(1, abs=1e-5)


def test_a_picture_moved_out_of_sight_has_no_figures(library):
    found = answer(library, job(transform=AffineTransform.shift(1.0, 1.0)))
    figures = found.pairs[(OWN, "digits")].scores
    assert (figures.raw, figures.floor, figures.calibrated, figures.centred) == (None,) * 4


def test_the_class_is_the_one_predicted_on_the_unmoved_picture(library):
    asked = job()
    found = answer(library, asked)
    assert found.label == int(library["digits"].model(asked.picture[None]).argmax())
    told = answer(library, job(label=7))
    assert told.label == 7


def test_a_method_without_meaning_says_why_and_spoils_nothing(library):
    contrastive = ("contrastive_excitation_backprop", "digits")
    found = answer(library, job(explainers=(contrastive, (OWN, "digits"))))
    assert "SITE" in found.skipped[contrastive] or "layer" in found.skipped[contrastive]
    assert list(found.pairs) == [(OWN, "digits")]


def test_bars_are_the_sums_of_their_maps(library):
    found = answer(library, job(label=6, against=3))
    shown = render(found)
    assert sorted(item.index for item in shown.evidence) == list(range(10))
    for item in shown.evidence:
        assert item.gained + item.lost == pytest.approx(item.logit, abs=1e-3)
        assert item.logit == pytest.approx(shown.turned.logits[item.index], abs=1e-4)
    assert [detail.index for detail in shown.detail] == [6, 3]
    difference = shown.turned.logits[shown.explained] - shown.turned.logits[3]
    assert shown.why.difference == pytest.approx(difference, abs=1e-3)
    assert shown.why.gained + shown.why.lost == pytest.approx(shown.why.difference, abs=1e-4)


def test_of_many_classes_the_strongest_and_the_asked_ones_are_shown(library, monkeypatch):
    monkeypatch.setattr(rendering, "TOP", 2)
    found = answer(library, job(against=9, label=8))
    shown = [item.index for item in render(found).evidence]
    assert {8, 9} | set(found.logits[1].topk(2).indices.tolist()) == set(shown)


def test_a_black_box_has_logits_and_no_evidence(library):
    found = answer(library, job(model="digits_black_box", explainers=(OTHER,), against=1))
    shown = render(found)
    assert shown.kind == "black_box"
    assert (shown.evidence, shown.detail, shown.why) == ([], [], None)
    assert len(shown.turned.logits) == 10


def test_hiding_is_the_patch_deletion_of_the_moved_picture(library):
    asked = job(explainers=((OWN, "digits"), OTHER), hiding=True)
    found = answer(library, asked)
    label = torch.tensor([found.label])
    for explainer, pair in found.pairs.items():
        served = library[explainer[1]]
        metric = PatchDeletion(served.explainer(explainer[0]), served.model, n_resamples=0)
        metric.update(found.images[1:], label)
        assert pair.scores.hiding == pytest.approx(metric.result().correlation.value, abs=1e-3)
        assert -1 <= pair.scores.hiding <= 1
    assert [row.hiding for row in render(found).rows] == [pair.scores.hiding for pair in found.pairs.values()]


def test_patches_are_hidden_only_where_asked(library):
    plain, asked = answer(library, job()), answer(library, job(hiding=True))
    assert plain.pairs[(OWN, "digits")].scores.hiding is None
    assert asked.pairs[(OWN, "digits")].scores.hiding is not None


def test_corners_are_black_or_in_the_mean_colour_of_their_own_picture(library):
    dark, bright = torch.full((1, 28, 28), 0.25), torch.full((1, 28, 28), 0.75)
    jobs = [job(dark, corners="mean"), job(bright, corners="mean"), job(bright)]
    for asked in jobs:
        found = answer(library, asked)
        seen = asked.transform.mask((28, 28))[0]
        unseen = asked.transform(torch.ones(1, 1, 28, 28))[0, 0] == 0
        assert bool(unseen.any())
        moved, value = found.images[1, 0], float(asked.picture[0, 0, 0])
        torch.testing.assert_close(moved[seen], torch.full_like(moved[seen], value), rtol=0, atol=2e-3)
        assert moved[unseen].unique().tolist() == pytest.approx([value if asked.corners == "mean" else 0.0])
