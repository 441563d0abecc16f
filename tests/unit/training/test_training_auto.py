"""Settings follow the data, epochs follow the clock, and every decision has its reason."""

import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.objective.classification import balanced_weights, classification_loss
from torchsite.training.auto import (
    MARGIN,
    MOST_FROM_SCRATCH,
    REPORT_SHARE,
    choose_epochs,
    choose_margin,
    choose_settings,
    training_seconds,
)
from torchsite.training.extractor_choice import DEEPER, PRETRAINED, SIZES, TRAINING_SHARE
from torchsite.training.pace import Deadline, Pace, measure_pace
from torchsite.training.recipes import ModelSettings
from torchsite.training.survey import Survey

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


@given(surveys, st.floats(0.5, 600), st.floats(0.01, 20), st.floats(0, 60))
@example(Survey(4, 2, 2, 8), 0.5, 0.03125, 4.0)  # as many epochs as help would fit, but for the validations
def test_the_estimate_keeps_within_its_share_of_the_time(survey, minutes, step, validation):
    plan = choose_settings("photos", survey, minutes=minutes, pretrained=False)
    timed = choose_epochs(plan, Pace(step, validation), survey, minutes)
    training = timed.recipe.training
    assert 1 <= training.validate_every <= training.epochs <= MOST_FROM_SCRATCH
    if training.epochs > 1:
        assert timed.seconds <= 60 * minutes * TRAINING_SHARE + 2 * validation


def test_more_time_buys_more_epochs():
    survey = Survey(2000, 500, 10, 128)
    plan = choose_settings("photos", survey, minutes=30, pretrained=True)
    short, long = (choose_epochs(plan, Pace(0.5, 5), survey, m).recipe.training.epochs for m in (10, 30))
    assert 1 < short < long


def test_a_budget_that_is_too_small_is_told():
    survey = Survey(20_000, 500, 10, 128)
    plan = choose_epochs(
        choose_settings("photos", survey, minutes=1, pretrained=True), Pace(1.0, 5), survey, 1
    )
    assert "will be stopped" in plan.decisions[-1].why


def test_pictures_decide():
    small = choose_settings("icons", Survey(500, 100, 5, 28), minutes=30, pretrained=True)
    assert (chosen(small)["extractor"], chosen(small)["size"]) == ("pyramid", "32")
    photos = choose_settings("photos", Survey(500, 100, 5, 600), minutes=30, pretrained=True)
    assert (chosen(photos)["extractor"], chosen(photos)["size"]) == (PRETRAINED, "160")
    few = choose_settings("photos", Survey(2000, 100, 5, 600), minutes=30, pretrained=True)
    assert chosen(few)["size"] == "128"
    bare = choose_settings("photos", Survey(500, 100, 5, 600), minutes=30, pretrained=False)
    assert "torchsite[pretrained]" in next(d.why for d in bare.decisions if d.setting == "extractor")
    hurried = choose_settings("photos", Survey(9000, 100, 5, 600), minutes=20, pretrained=True)
    assert int(chosen(hurried)["size"]) < 128
    many = choose_settings("photos", Survey(9000, 100, 101, 600), minutes=30, pretrained=True)
    assert chosen(many)["targets"] == "mean"


def test_time_to_spare_buys_a_deeper_network_and_finer_answers():
    survey = Survey(200, 50, 5, 128)
    for minutes, expected in ((5, PRETRAINED), (35, "efficientnet_lite1"), (50, "efficientnet_lite2")):
        plan = choose_settings("photos", survey, minutes=minutes, pretrained=True, deeper=DEEPER)
        assert chosen(plan)["extractor"] == expected
    assert plan.recipe.model.extractor_options == {"stride": 8}
    small = Survey(200, 50, 5, 100)
    plan = choose_settings("photos", small, minutes=120, pretrained=True, deeper=DEEPER)
    assert plan.recipe.model.extractor_options == {"stride": 4}
    without = choose_settings("photos", survey, minutes=120, pretrained=True)
    assert chosen(without)["extractor"] == PRETRAINED


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
    with pytest.raises(ConfigError, match="at least 4 pictures"):
        Survey(3, 2, 2, 100)


def test_the_pace_is_that_of_the_very_model_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pixels = torch.randint(0, 256, (40, 3, 16, 16), dtype=torch.uint8)
    data = Dataset(pixels, torch.arange(40) % 2, ("a", "b"))
    plan = choose_settings("photos", Survey(40, 40, 2, 16), minutes=1, pretrained=False)
    model = ModelSettings(extractor_options={"widths": (4, 4, 4, 4), "common": 4}, zero_sum=True)
    begun = time.monotonic()
    pace = measure_pace(replace(plan.recipe, model=model), data, data)
    assert 0 < pace.step < time.monotonic() - begun
    assert pace.validation > 0
    assert list(tmp_path.iterdir()) == []


def test_a_deadline_stops_once_time_is_up():
    run = SimpleNamespace(ending=False)
    patient, hasty = Deadline(1000), Deadline(-1)
    patient.step_done(run, {})
    assert not run.ending
    hasty.step_done(run, {})
    assert run.ending
    assert (patient.reached, hasty.reached) == (False, True)


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


def test_epochs_are_fewer_where_looking_took_long():
    survey = Survey(320, 50, 2, 64)
    plan = choose_settings("photos", survey, minutes=4, pretrained=True)
    early, late = (choose_epochs(plan, Pace(0.5, 1.0), survey, 4, spent) for spent in (0.0, 120.0))
    assert 1 <= late.recipe.training.epochs < early.recipe.training.epochs
    assert late.seconds <= training_seconds(4, 120.0)
