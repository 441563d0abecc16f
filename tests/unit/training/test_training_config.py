"""Configurations of a training, and recipes."""

import json
import math

import pytest

import torchsite.training
from torchsite.configs import from_mapping, to_mapping
from torchsite.errors import ConfigError
from torchsite.objective import EquivarianceTerm, TransformationTerm
from torchsite.training import TrainingConfig
from torchsite.training.recipes import Recipe, override
from torchsite.transforms import TransformFamily
from training_makers import make_config


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 0}, "epochs: "),
        ({"batch_size": 1}, "batch_size: "),
        ({"epochs": 5, "cycles": 2}, "cycles: "),
        ({"cycles": 0}, "cycles: "),
        ({"warm_up": 1.0}, "warm_up: "),
        ({"views": ()}, "views: "),
        ({"learning_rate": 0.0}, "learning_rate: "),
        ({"muon_learning_rate": -1.0}, "muon_learning_rate: "),
        ({"learning_rate": math.nan}, "learning_rate"),
    ],
)
def test_values_out_of_range_are_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        TrainingConfig(**changes)


def test_configs_come_back_from_plain_data_and_refuse_what_they_do_not_know():
    terms = (TransformationTerm(weight=2.0, targets="mean"), EquivarianceTerm(end=0.5))
    config = TrainingConfig(epochs=3, family=TransformFamily(max_rotation=10), terms=terms)
    plain = json.loads(json.dumps(to_mapping(config)))
    assert plain["terms"][0]["name"] == "transformation"
    assert from_mapping(TrainingConfig, plain) == config
    with pytest.raises(ConfigError, match=r"'epoch': .*'epochs'"):
        from_mapping(TrainingConfig, {"epoch": 3})
    with pytest.raises(ConfigError, match="targets: "):
        make_config(terms=[{"name": "transformation", "targets": "median"}])
    with pytest.raises(ConfigError, match=r"TransformationTerm .*'wieght': .*'weight'"):
        make_config(terms=[{"name": "transformation", "wieght": 1.0}])
    with pytest.raises(ConfigError, match=r"Term: .*'transform'"):
        make_config(terms=[{"name": "transform"}])
    for term in ({}, {"name": ["equivariance"]}, "equivariance", None):
        with pytest.raises(ConfigError, match="Term: expected"):
            make_config(terms=[term])


# Overrides


def test_a_field_of_a_term_can_be_overridden_by_its_name_or_number():
    later = {"name": "equivariance", "maps": "relative", "start": 0.94}
    terms = [{"name": "transformation"}, {"name": "equivariance", "end": 0.94}, later]
    recipe = override(Recipe(), {"terms": terms})
    terms = override(
        recipe,
        {"terms.transformation.weight": 1, "terms.equivariance.weight": 2, "training.terms.2.start": 0.5},
    ).training.terms
    assert [term.weight for term in terms] == [1.0, 2.0, 2.0]
    assert [(term.start, term.end) for term in terms] == [(0, 1), (0, 0.94), (0.5, 1)]
    assert override(recipe, {"terms": []}).training.terms == ()
    assert override(recipe, {"max-shift": 0.5, "seed": 3}).training.family.max_shift == 0.5
    with pytest.raises(ConfigError, match=r"0 \(transformation\), 1 \(equivariance\)"):
        override(recipe, {"terms.transformaton.weight": 1})
    with pytest.raises(ConfigError, match="'weight'"):
        override(recipe, {"terms.transformation.weight.more": 1})
    with pytest.raises(ConfigError, match=r"EquivarianceTerm .*'targets'"):
        override(recipe, {"terms.equivariance.targets": "mean"})


@pytest.mark.parametrize(("old", "new"), [("Watch", "Callback"), ("SheetWatch", "ExplanationSheets")])
def test_an_old_name_says_the_new_one(old, new):
    with pytest.raises(ImportError, match=new):
        getattr(torchsite.training, old)
    assert not hasattr(torchsite.training, "nothing")
