"""Cards of the models that ship: the hub can read them, and they tell of no other weights."""

import re
from dataclasses import replace

import pytest
import yaml
from made_up import ROOT

from experiments.cards import ORIGINS, card_context
from experiments.publish import model_folders, read_results
from torchsite.errors import ConfigError
from torchsite.model import shipped_models

CARDS = {folder.name: (folder / "README.md").read_text() for folder in model_folders(ROOT)}


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


def test_every_shipped_model_has_a_card():
    assert set(CARDS) == set(shipped_models())


@pytest.mark.parametrize(("name", "text"), CARDS.items(), ids=CARDS)
def test_the_hub_can_read_its_head(name, text):
    head = yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])
    assert head["license"] == "mit"
    assert head["library_name"] == "torchsite"
    assert head["pipeline_tag"] == "image-classification"
    (entry,) = head["model-index"]
    assert entry["name"] == name
    assert all(0.5 < metric["value"] <= 1 for metric in entry["results"][0]["metrics"])


@pytest.mark.parametrize("text", CARDS.values(), ids=CARDS)
def test_a_card_says_what_one_must_know(text):
    for told in ("licence of that data", "## Measured", "patch deletion", "## What it must not", "## Recipe"):
        assert told in text, told
    assert re.search(r"\| accuracy, untransformed \| 0\.\d{4}  \[0\.\d{4}, 0\.\d{4}\] \| 0\.\d+ \|", text)


def test_results_about_other_weights_are_left_out(results):
    folder = shipped_models()["cifar10"]
    names = ("cifar10_truth", "accuracy_cifar10")
    whole = card_context(folder, results)
    others = {
        name: replace(results[name], config={**results[name].config, "weights": {"site": "other"}})
        for name in names
    }
    without = card_context(folder, {**results, **others})
    if set(names) & set(whole["sources"]):
        assert "not measured on these weights" not in whole["table"]
    assert not set(names) & set(without["sources"])
    assert "not measured on these weights" in without["table"]


def test_a_result_that_names_no_weights_does_not_count(results):
    config = {key: value for key, value in results["accuracy_mnist"].config.items() if key != "weights"}
    bare = replace(results["accuracy_mnist"], config=config)
    assert card_context(shipped_models()["mnist"], {**results, "accuracy_mnist": bare})["accuracy"] is None


def test_a_model_of_unknown_origin_gets_no_card(tmp_path):
    folder = tmp_path / "strange"
    folder.mkdir()
    for path in shipped_models()["mnist"].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    with pytest.raises(ConfigError, match=r"'strange' .*ORIGINS"):
        card_context(folder, {})
    assert "strange" not in ORIGINS
