"""Every experiment can be found by name; the list of them needs no heavy library."""

import json
import shutil
from importlib import import_module

import pytest

from experiments.registry import EXPERIMENTS, find_experiment
from experiments.study import Study
from torchsite.errors import ConfigError


def test_every_experiment_of_a_pair_stands_in_the_registry(folder, tmp_path):
    for recipe in ("cifar10", "mnist"):
        for name in ("consistency", "explanations", "sheet", "mask_k", "examples", "failures"):
            assert f"{recipe}_{name}" in EXPERIMENTS
    shutil.copytree(folder / "cifar10-quick", tmp_path / "cifar10-quick")
    result = EXPERIMENTS["cifar10_explanations"].run(tmp_path / "cifar10_explanations-quick", quick=True)
    assert result.name == "cifar10_explanations"


def test_results_are_plain_json(folder):
    files = list(folder.glob("*-quick/*.json"))
    assert len(files) >= 1
    for path in files:
        json.loads(path.read_text(), parse_constant=pytest.fail)


def test_all_of_the_appendix_can_be_reproduced_by_name():
    assert {"bam", "bam_photograph", "food10"} <= set(EXPERIMENTS)


def test_every_experiment_is_a_study_whose_module_says_how_to_run_it():
    for name, experiment in EXPERIMENTS.items():
        study, module = experiment.code(), import_module(f"experiments.{experiment.module}")
        assert isinstance(study, Study), name
        assert study.name.format(experiment.recipe) == experiment.result_name, name
        assert "torchsite reproduce" in module.__doc__, name
        assert name in module.__doc__


def test_results_have_names_of_their_own():
    names = [experiment.result_name for experiment in EXPERIMENTS.values()]
    assert len(set(names)) == len(names)


def test_a_wrong_name_suggests_the_nearest():
    assert find_experiment("mnist").result_name == "accuracy_mnist"
    with pytest.raises(ConfigError, match="'mnist'"):
        find_experiment("mnst")
