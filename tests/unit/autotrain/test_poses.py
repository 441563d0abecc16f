"""Poses fit the pictures: full turns where none is the right one, small ones where there is an up."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchsite.autotrain.choices import choose_poses, choose_settings
from torchsite.autotrain.poses import POSES, family_of, guess_poses
from torchsite.autotrain.survey import Survey
from torchsite.data import Dataset, load_dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.illustrate import turning_angles
from torchsite.metrics.grouping import Grouping


def turned(data, seed):
    """Each picture in a quarter turn of its own."""
    turns = torch.randint(4, (len(data),), generator=torch.Generator().manual_seed(seed)).tolist()
    pixels = [image.rot90(turn, (-2, -1)) for image, turn in zip(data.images, turns, strict=True)]
    return Dataset(torch.stack(pixels), data.labels, data.classes)


@pytest.mark.parametrize("n", [60, 400])
def test_letters_have_an_up_until_they_are_turned(n):
    data = load_dataset("mnist_sample")[:n]
    upright, any_turn = guess_poses(data), guess_poses(turned(data, 0))
    assert (upright.poses, any_turn.poses) == ("upright", "any")
    assert upright.accuracy > any_turn.accuracy + 0.2
    assert f"{upright.accuracy:.0%} of {upright.n}" in upright.why


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_pictures_without_content_have_no_up(seed):
    """With 240 pictures the bar stands seven deviations above chance: no seed of the thousand passes it."""
    rng = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (240, 3, 12, 20), generator=rng, dtype=torch.uint8)
    assert guess_poses(Dataset(pixels, torch.zeros(240).long(), ("a",))).poses == "any"


def test_the_plan_says_which_poses_and_why():
    data = load_dataset("mnist_sample")[:200]
    plan = choose_settings("digits", Survey(200, 50, 10, 28), minutes=5, pretrained=False)
    for name, why in (("auto", "they are upright"), ("any", "as you asked"), ("upright", "as you asked")):
        chosen = choose_poses(plan, name, data)
        (decision,) = (d for d in chosen.decisions if d.setting == "poses")
        assert why in decision.why
        assert str(chosen.recipe.training.family) in decision.chosen
    assert "±180°" in str(choose_poses(plan, "any", data).recipe.training.family)
    with pytest.raises(ConfigError, match="'upright'"):
        choose_poses(plan, "uprigt", data)


def test_full_turns_have_bins_up_to_a_half_turn_and_mirrors_are_no_turn():
    family = family_of("any")
    grouping = Grouping.of_family(family, 0)
    assert grouping.edges["angle"][-1] == 180
    transform = family.sample(64, rng=torch.Generator().manual_seed(0))
    members = grouping.membership(torch.zeros(64).long(), transform)[:, 1:7]
    assert members.sum(1).eq(1).all()
    assert members.any(0).all()
    assert {"any", "upright", "paper"} == set(POSES)


def test_of_a_full_turn_each_angle_is_shown_once():
    assert turning_angles(90.0).abs().max() == 90
    circle = turning_angles(180.0)
    assert len({round(float(angle) % 360, 6) for angle in circle}) == len(circle)
    assert 0 in circle
