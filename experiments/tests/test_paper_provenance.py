"""No number of other weights stands beside those of the weights that ship: one check, asked by all."""

import pytest
from made_up import ROOT, estimate

from experiments.accuracy import what_was_equal
from experiments.cache import save_result
from experiments.provenance import note, of_shipped, shipped_weights, stated
from experiments.publish import fill, read_results, tables
from experiments.registry import EXPERIMENTS
from torchsite.errors import ConfigError
from torchsite.results import Result

NEW, OLD, OTHER = "a" * 16, "b" * 16, "c" * 16
SHIPPED = {"mnist": NEW, "mnist_black_box": OTHER}


def result(name="mnist_pointing", values=None, **config):
    return Result(name, values or {}, config, 0, 1.0)


def test_a_result_states_all_fingerprints_wherever_its_configuration_has_them():
    nested = result(recipes={"mnist": {"weights": {"site": NEW}}}, fingerprints={"0": OLD}, data=OTHER)
    assert stated(nested) == {NEW, OLD}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"weights": {"site": NEW, "black_box": OTHER}}, True),
        ({"weights": {"site": OLD, "black_box": OTHER}}, False),
        ({"weights": {"site": NEW}}, False),
        ({"weights": {}}, False),
        ({}, False),
    ],
)
def test_only_the_fingerprints_of_all_its_models_make_a_result_one_of_the_weights_that_ship(config, expected):
    found = result(**config)
    assert of_shipped(found, ["mnist", "mnist_black_box"], SHIPPED) is expected
    assert (note(found, ["mnist", "mnist_black_box"], SHIPPED) == "") is expected


def test_what_is_about_models_of_its_own_says_so():
    assert "do not ship" in note(result("bam", weights={"site": OLD}), [], SHIPPED)
    assert OLD in note(result("bam", weights={"site": OLD}), [], SHIPPED)
    assert "older than the rule" in note(result("bam"), [], SHIPPED)
    assert note(result("baselines", weights={}), [], SHIPPED) == ""


def test_a_result_that_does_not_say_what_it_measured_is_not_written(tmp_path):
    with pytest.raises(ConfigError, match="weights"):
        save_result(result(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    save_result(result(weights={}), tmp_path)


def pointing(**config):
    row = {"n_images": 9, "options": {}, "ms_per_image": 1.0}
    scores = {name: estimate(0.7654) for name in ("raw", "floor", "calibrated", "centred")}
    pose = {f"tau_{tau}": estimate(0.8765) for tau in range(4)}
    nowhere = {"untransformed": 0.1, "transformed": 0.1}
    table = [
        row
        | {
            "model": kind,
            "method": method,
            "self_consistency": scores,
            "transformed": pose,
            "untransformed": pose,
        }
        | {"anywhere": nowhere, "centre": nowhere}
        for kind, method in (("site", "self_explanation"), ("site", "grad_cam"), ("black_box", "grad_cam"))
    ]
    verdict = {"transformed": None, "untransformed": None}
    values = {"table": table, "accuracy": {}, "verdict": verdict, "paper": {}}
    return result("mnist_pointing", values, recipe="mnist", **config)


@pytest.mark.parametrize("template", ["results.md.j2", "tables"])
def test_pages_draw_a_number_of_these_weights_and_leave_one_of_others_out(template, tmp_path):
    shipped = shipped_weights(ROOT)
    accuracy = read_results(ROOT / "results")["accuracy_mnist"]
    accuracy.save(tmp_path / "accuracy_mnist.json")
    pages = {}
    for name, site in (("theirs", shipped["mnist"]), ("others", OLD)):
        black_box = shipped["mnist_black_box"] if name == "theirs" else OLD
        weights = {"site": site, "black_box": black_box}
        pointing(weights=weights).save(tmp_path / "mnist_pointing.json")
        pages[name] = drawn(template, tmp_path)
    pointing().save(tmp_path / "mnist_pointing.json")
    pages["nothing stated"] = drawn(template, tmp_path)
    digits = "0.8765" if template == "results.md.j2" else "0.7654"
    assert [name for name, text in pages.items() if digits in text] == ["theirs"]
    assert "ot measured on the weights that ship" in pages["others"]
    assert "ot measured on the weights that ship" in pages["nothing stated"]


def drawn(template, folder):
    return "".join(tables(ROOT, folder).values()) if template == "tables" else fill(ROOT, template, folder)


def test_every_experiment_on_models_that_ship_names_them():
    shipped = shipped_weights(ROOT)
    asked = [one for one in EXPERIMENTS.values() if one.recipe]
    assert len(asked) > 10
    for one in asked:
        assert one.recipe not in shipped or one.recipe in one.models, one.name


def test_no_file_has_what_no_code_writes():
    for path in (ROOT / "results").glob("*.json"):
        assert "black_box_recipe" not in path.read_text(), path.name


def test_what_was_equal_is_what_was_counted():
    learnt = {
        "site": {"steps": 3000, "views": 2.5, "pmac": 0.3},
        "black_box": {"steps": 2000, "views": 2, "pmac": 0.2},
    }
    found = result("accuracy_mnist", {"learnt": learnt, "pmac": {"site": 0.3, "black_box": 0.2}})
    assert "3,000 steps of 2.5 views a picture, the black box 2,000 steps of 2." in what_was_equal(found)
    assert "1.50 times" in what_was_equal(found)
    assert "not counted" in what_was_equal(result("accuracy_mnist", {}))
    for text in ((ROOT / "README.md"), (ROOT / "docs" / "results.md")):
        assert "SITE and the black box of the same budget" not in text.read_text()
