"""Folds: every picture is tested once, by a model that has not seen it; differences know their interval."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchsite.autotrain.folds import (
    cross_validate,
    difference_in_words,
    fold_numbers,
    joined,
    paired_difference,
)
from torchsite.errors import ConfigError
from torchsite.training.recipes import ModelSettings, Recipe
from training_makers import TINY, digits, make_config


@given(st.lists(st.integers(0, 3), min_size=8, max_size=60), st.integers(2, 4), st.integers(0, 99))
def test_folds_are_even_in_every_class(labels, k, seed):
    numbers = fold_numbers(labels, k, seed)
    for wanted in [None, *set(labels)]:
        sizes = [
            sum(n == fold and wanted in (None, label) for n, label in zip(numbers, labels, strict=True))
            for fold in range(k)
        ]
        assert max(sizes) - min(sizes) <= 1


def test_too_many_folds_are_refused():
    with pytest.raises(ConfigError, match="folds"):
        fold_numbers([0, 1] * 4, 5, 0)


def test_every_picture_is_tested_once_and_both_kinds_can_be(tmp_path):
    data = joined(digits(60), digits(20, "test"))
    model = ModelSettings(feature_extractor="identity", generator="lateral", generator_options=TINY)
    recipe = Recipe(model=model, training=make_config(epochs=1, batch_size=16))
    found = cross_validate(recipe, data, 2, tmp_path)
    assert len(found.right) == 80
    assert found.accuracy.value == pytest.approx(sum(found.per_fold) / 2, abs=0.02)
    assert {path.name for path in tmp_path.iterdir()} == {"site-1", "site-2"}
    assert found.plain()["n"] == 80


def test_a_difference_within_chance_is_called_so():
    ours, theirs = torch.ones(30, dtype=torch.bool), torch.ones(30, dtype=torch.bool)
    theirs[:1] = False
    found = paired_difference(ours, theirs)
    assert found.low < 0 < found.high
    assert "do not conclude" in difference_in_words(found, "SITE", "black box")
    theirs[:15] = False
    clear = paired_difference(ours, theirs)
    assert clear.low > 0
    assert "do not conclude" not in difference_in_words(clear, "SITE", "black box")


@given(st.integers(1, 200), st.integers(0, 2**31))
def test_intervals_hold_their_value_and_turn_with_it(n, seed):
    ours, theirs = torch.rand(2, n, generator=torch.Generator().manual_seed(seed)) < 0.7
    found, other = paired_difference(ours, theirs), paired_difference(theirs, ours)
    assert found.low <= found.value <= found.high
    assert (other.value, other.low, other.high) == pytest.approx((-found.value, -found.high, -found.low))
