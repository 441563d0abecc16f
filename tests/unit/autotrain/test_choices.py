"""Settings follow the data, training follows the clock, and every decision has its reason."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchsite.autotrain.choices import (
    DEEPER,
    MARGIN,
    MOST_FROM_SCRATCH,
    MOST_PRETRAINED,
    N_VALIDATIONS,
    PRETRAINED,
    REPORT_SHARE,
    SIZES,
    TRAINING_SHARE,
    USUAL,
    choose_margin,
    choose_settings,
    choose_time,
    training_seconds,
)
from torchsite.autotrain.survey import Survey
from torchsite.errors import ConfigError
from torchsite.objective.classification import balanced_weights, classification_loss

surveys = st.builds(
    Survey,
    n_train=st.integers(4, 200_000),
    n_test=st.integers(2, 10_000),
    n_classes=st.integers(2, 500),
    side=st.integers(8, 4000),
)


def chosen(plan):
    return {decision.setting: decision.chosen for decision in plan.decisions}


@given(surveys, st.floats(0.5, 600), st.booleans())
def test_every_choice_can_be_trained(survey, minutes, pretrained):
    plan = choose_settings("photos", survey, minutes=minutes, pretrained=pretrained)
    training = plan.recipe.training
    assert 2 <= training.batch_size <= survey.n_train
    assert all(decision.why for decision in plan.decisions)
    assert plan.recipe.size in (32, *SIZES)
    assert plan.recipe.size <= max(64, 1.25 * survey.side)
    assert not (
        plan.recipe.model.feature_extractor == PRETRAINED and (not pretrained or plan.recipe.size < 64)
    )


def test_pictures_decide():
    small = choose_settings("icons", Survey(500, 100, 5, 28), minutes=30, pretrained=True)
    assert (chosen(small)["extractor"], chosen(small)["size"]) == ("pyramid", "32")
    photos = choose_settings("photos", Survey(500, 100, 5, 600), minutes=30, pretrained=True)
    assert (chosen(photos)["extractor"], chosen(photos)["size"]) == (PRETRAINED, "192")
    few = choose_settings("photos", Survey(2000, 100, 5, 600), minutes=30, pretrained=True)
    assert chosen(few)["size"] == "128"
    bare = choose_settings("photos", Survey(500, 100, 5, 600), minutes=30, pretrained=False)
    assert "torchsite[pretrained]" in next(d.why for d in bare.decisions if d.setting == "extractor")
    hurried = choose_settings("photos", Survey(9000, 100, 5, 600), minutes=20, pretrained=True)
    assert int(chosen(hurried)["size"]) < 128
    many = choose_settings("photos", Survey(9000, 100, 101, 600), minutes=30, pretrained=False)
    assert chosen(many)["targets"] == "mean"
    many = choose_settings("photos", Survey(9000, 100, 101, 600), minutes=30, pretrained=True)
    assert many.recipe.model.generator == "shared_patterns"
    assert min(term.start for term in many.recipe.training.terms) > 0
    assert photos.recipe.model.generator == "two_scales"


def test_time_to_spare_buys_a_deeper_network():
    survey = Survey(200, 50, 5, 128)
    for minutes, expected in ((5, USUAL), (20, "lite1"), (30, "lite2")):
        plan = choose_settings("photos", survey, minutes=minutes, pretrained=True, deeper=DEEPER)
        assert chosen(plan)["network"] == expected
        assert plan.recipe.model.extractor_options == {"variant": expected}
    without = choose_settings("photos", survey, minutes=120, pretrained=True)
    assert chosen(without)["network"] == USUAL


def test_unbalanced_folders_are_balanced():
    even = choose_settings("photos", Survey(90, 9, 3, 64, (30, 30, 30)), minutes=5, pretrained=False)
    uneven = choose_settings("photos", Survey(90, 9, 3, 64, (60, 20, 10)), minutes=5, pretrained=False)
    assert (chosen(even)["class weights"], chosen(uneven)["class weights"]) == ("equal", "balanced")
    assert uneven.recipe.training.class_weights == "balanced"


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6))
def test_balanced_classes_weigh_the_same_and_a_picture_one_on_average(counts):
    weights = balanced_weights(counts)
    total = weights.double() * torch.tensor(counts)
    assert torch.allclose(total, total[0].expand_as(total), rtol=1e-5)
    assert float(total.sum()) == pytest.approx(sum(counts), rel=1e-5)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    logits = torch.zeros(len(labels), len(counts))
    plain, weighted = classification_loss(logits, labels), classification_loss(logits, labels, 0.0, weights)
    assert float(weighted) == pytest.approx(float(plain), rel=1e-4)


def test_too_few_pictures_are_refused():
    with pytest.raises(ConfigError):
        Survey(3, 2, 2, 100)


@pytest.mark.parametrize(("side", "margin"), [(80, 1.0), (79, 1.0), (120, MARGIN), (4000, MARGIN)])
def test_pictures_are_kept_larger_where_files_are(side, margin):
    survey = Survey(200, 50, 2, side)
    plan = choose_settings("photos", survey, minutes=5, pretrained=True)
    found = choose_margin(plan, survey, 96)
    assert found.recipe.margin == margin
    decision = found.decisions[-1]
    assert decision.setting == "margin"
    assert str(side) in decision.why if margin == 1 else "120" in decision.why


@given(minutes=st.floats(0.1, 600), looked=st.floats(0, 2))
def test_training_leaves_time_for_the_report_unless_looking_took_it(minutes, looked):
    spent = looked * 60 * minutes
    allowed = training_seconds(minutes, spent)
    assert 0.3 * 60 * minutes <= allowed + 1e-9 <= TRAINING_SHARE * 60 * minutes + 1e-6
    if looked <= 1 - REPORT_SHARE - 0.3:
        assert spent + allowed <= (1 - REPORT_SHARE) * 60 * minutes + 1e-6
    assert training_seconds(minutes, 0) == pytest.approx(TRAINING_SHARE * 60 * minutes)


@given(minutes=st.floats(0.5, 600), spent=st.floats(0, 600), pretrained=st.booleans())
def test_training_has_the_time_that_is_left_and_as_many_epochs_as_help(minutes, spent, pretrained):
    plan = choose_settings("photos", Survey(320, 5000, 2, 64), minutes=minutes, pretrained=pretrained)
    training = choose_time(plan, minutes, spent).recipe.training
    assert training.seconds == pytest.approx(training_seconds(minutes, spent), abs=0.05)
    assert training.epochs == (MOST_PRETRAINED if pretrained else MOST_FROM_SCRATCH)
    assert training.epochs / training.validate_every == N_VALIDATIONS
    assert 30 <= training.n_validation <= 500


def test_epochs_may_be_asked_for():
    plan = choose_settings("photos", Survey(320, 50, 2, 64), minutes=4, pretrained=True)
    found = choose_time(plan, 4, epochs=7)
    assert found.recipe.training.epochs == 7
    assert "as you asked" in found.decisions[-1].why
