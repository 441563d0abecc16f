"""The paper's tables and figures, drawn from made-up results: every number must be one of theirs."""

import re

import pytest
import torch

from torchsite.paper.arrays import save_arrays
from torchsite.paper.drawing import paper_figures, save_paper_figures, save_public_figures
from torchsite.paper.pages import results_page
from torchsite.paper.tables import paper_accuracy, paper_section, paper_sections
from torchsite.randomness import make_rng
from torchsite.results import Result


def estimate(value):
    return {"value": value, "low": value - 0.01, "high": value + 0.01}


def line(model, method, **more):
    return {"model": model, "method": method, "n_images": 500, "options": {}, "ms_per_image": 1.5, **more}


def consistency(recipe="cifar10"):
    def scores(shift):
        names = ("raw", "floor", "calibrated", "centred")
        return {"self_consistency": {name: estimate(0.9 - shift - k / 10) for k, name in enumerate(names)}}

    table = [
        line("site", "self_explanation", **scores(0)),
        line("site", "rise", **scores(0.1) | {"options": {"n_masks": 256}}),
        line("black_box", "grad_cam", **scores(0.2)),
        line("site", "excitation_backprop", reason="a product of tanh's"),
    ]
    values = {
        "table": table,
        "first": {"raw": "self_explanation on site"},
        "paper": {"grad_cam": [0.8817, 0.8416]},
    }
    return Result(f"{recipe}_consistency", values, {"recipe": recipe}, 0, 1.0)


def mask_k(recipe="mnist"):
    def curve(height):
        points = [estimate(height - k / 20) for k in range(11)]
        return {
            "curve": points,
            "random_curve": points,
            "area": estimate(height),
            "random_area": estimate(0.1),
            "gain": estimate(height - 0.1),
        }

    fractions = [k / 10 for k in range(11)]
    table = [
        line(kind, method, fractions=fractions, accuracy=curve(height), log_odds=curve(height))
        for kind in ("site", "black_box")
        for method, height in (("gradient", 0.71), ("random", 0.6), ("relative_explanation", 0.5))
    ]
    return Result(f"{recipe}_mask_k", {"table": table}, {"recipe": recipe}, 0, 1.0)


def baselines():
    lines = [
        {
            "data": data,
            "baseline": "nam",
            "trained_on": trained_on,
            "accuracy": {"untransformed": estimate(0.3141), "transformed": estimate(0.2718)},
            "cpu_seconds": 90.0,
        }
        for data in ("mnist", "cifar10")
        for trained_on in ("untransformed", "transformed")
    ]
    beside = {"mnist": {"site": {"untransformed": estimate(0.99), "transformed": estimate(0.98)}}}
    paper = {"mnist": {"nam": 0.935, "site": 0.988}, "cifar10": {"nam": 0.370}}
    values = {"table": lines, "beside": beside, "paper": paper}
    return Result("baselines", values, {}, 0, 1.0)


def failures(recipe="mnist"):
    note = {"row": 7, "class": "3", "predicted": "8", "probability": 0.9}
    note |= {"logit of the class": 1.0, "logit of the predicted": 3.5}
    values = {
        "pictures": [note],
        "n_wrong": 12,
        "n_images": 1000,
        "confusions": [{"class": "3", "predicted": "8", "n": 5}],
    }
    return Result(f"{recipe}_failures", values, {"recipe": recipe}, 0, 1.0)


def shown(n=2, side=8):
    rng = make_rng(0)
    return {name: torch.rand(n, 3, side, side, generator=rng) for name in ("images", "moved")} | {
        name: torch.randn(n, side, side, generator=rng) for name in ("maps", "moved_maps", "carried_maps")
    }


def notes(*labels):
    return [
        {"class": label, "predicted": label, "predicted when moved": label, "self-consistency": 0.9}
        for label in labels
    ]


def test_table_1_has_ours_with_intervals_and_the_paper_beside():
    text = paper_section(consistency())
    assert "0.9000  [0.8900, 0.9100]" in text
    assert re.search(r"Grad-CAM \| on the black box \| 0\.7000 .* \| 0\.8416 \| 500 ", text)
    assert "First in raw: SITE itself on SITE." in text
    assert "excitation BP on SITE is not defined: a product of tanh's" in text
    assert "RISE on SITE: n_masks = 256" in text


def test_table_2_has_a_row_for_each_model_and_a_table_for_each_data_set():
    text = paper_section(baselines())
    assert re.search(r"\| nam \| 0\.3141 .* 0\.2718 .* \| 0\.935 \| 3\.0 \|", text)
    assert re.search(r"\| SITE \| – \| – \| 0\.9900 .* \| 0\.9800 .* \| 0\.988 \| – \|", text)
    assert text.count("| nam |") == 2
    assert "CIFAR-10" in text


def test_mask_k_and_failures_are_written_out():
    text = paper_section(mask_k())
    assert re.search(r"\| gradient \| on SITE \| 0\.7100 .* \| 0\.6100 ", text)
    assert text.index("| SITE, relative maps | on SITE") < text.index("| gradient | on SITE")
    assert "The largest areas: accuracy: gradient on SITE, log-odds: gradient on SITE." in text
    text = paper_section(failures())
    assert "12 of 1,000" in text
    assert "| 7 | 3 | 8 | 0.900 | -2.50 |" in text


@pytest.mark.parametrize(("recipe", "n_sheets"), [("mnist", 2), ("cifar10", 0)])
def test_every_class_of_the_appendix_has_its_line_and_its_sheet_where_it_may_be_shown(recipe, n_sheets):
    pictures = notes("3", "3", "5")
    pictures[1]["predicted when moved"] = "8"
    text = paper_section(Result(f"{recipe}_examples", {"pictures": pictures}, {"recipe": recipe}, 0, 1.0))
    assert "| 3 | 1 of 2 | 0.900, 0.900 |" in text
    assert "| 5 | 1 of 1 | 0.900 |" in text
    assert text.count(f"](pictures/results-{recipe}_examples-") == n_sheets


def test_both_models_are_named_above_their_columns():
    lines = [line("site", "self_explanation"), line("black_box", "grad_cam")]
    maps = torch.randn(1, 3, 8, 8, generator=make_rng(1))
    arrays = {**shown(1), "site.self_explanation": maps, "black_box.grad_cam": maps}
    result = Result("mnist_sheet", {"pictures": [{}], "lines": lines}, {"recipe": "mnist"}, 0, 1.0)
    (figure,) = paper_figures(result, arrays).values()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles.count("I(x)\non SITE") == titles.count("I(x)\non the black box") == 1


def test_sections_stand_in_the_order_of_the_paper_and_other_results_have_none(tmp_path):
    results = {r.name: r for r in (mask_k(), consistency(), baselines(), Result("other", {}, {}, 0, 0.0))}
    text = "\n".join(paper_sections(results))
    assert text.index("Table 2") < text.index("Table 1") < text.index("Figure 5")
    assert paper_section(results["other"]) is None
    assert "](pictures/results-mnist_mask_k.png)" in text
    for name in ("cifar10_consistency", "mnist_mask_k"):
        results[name].save(tmp_path / f"{name}.json")
    page = results_page(tmp_path)
    assert "CIFAR-10: self-consistency of all methods" in page
    assert "MNIST: mask-k" in page
    assert "Table 2" not in page


@pytest.mark.parametrize("recipe", ["mnist", "cifar10"])
def test_sheets_are_linked_where_they_may_be_shown(recipe):
    made = Result(f"{recipe}_explanations", {"pictures": notes("a")}, {"recipe": recipe}, 0, 1.0)
    lines = [line("site", "rise", **{"self-consistency": [0.125]}), line("site", "x", reason="no")]
    sheet = Result(
        f"{recipe}_sheet", {"pictures": [{"class": "a"}], "lines": lines}, {"recipe": recipe}, 0, 1.0
    )
    assert "| a | a | a | 0.900 |" in paper_section(made)
    assert "| RISE | on SITE | 0.125 |" in paper_section(sheet)
    for result in (made, sheet, failures(recipe)):
        assert ("](pictures/" in paper_section(result)) == (recipe == "mnist")


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("accuracy, untransformed", "0.892 (0.862)"),
        ("accuracy, transformed", "0.89 (0.89)"),
        ("self-consistency, raw", "0.8860"),
        ("self-consistency, floor", "–"),
    ],
)
def test_the_papers_accuracies_stand_beside_their_measures(measure, expected):
    from torchsite.paper.accuracy import PAPER

    assert paper_accuracy(PAPER["cifar10"], measure) == expected
    assert paper_accuracy({}, measure) == "–"


def test_the_papers_small_network_stands_beside_ours():
    from torchsite.paper.accuracy import PAPER

    assert paper_accuracy(PAPER["cifar10_cnn"], "accuracy, untransformed") == "0.840 (0.828)"


def test_every_result_with_something_to_show_becomes_figures(tmp_path):
    maps = torch.randn(1, 3, 8, 8, generator=make_rng(1))
    three = {f"{name}_maps": torch.randn(1, 8, 8) for name in ("true", "predicted")}
    lines = [line("site", "self_explanation"), line("black_box", "grad_cam"), line("site", "x", reason="no")]
    made = {
        "mnist_explanations": ({"pictures": notes("3", "5")}, shown()),
        "mnist_examples": ({"pictures": notes("3", "5")}, shown()),
        "mnist_sheet": (
            {"pictures": [{}], "lines": lines},
            {**shown(1), "site.self_explanation": maps, "black_box.grad_cam": maps},
        ),
        "mnist_failures": (
            failures().values,
            {"images": torch.rand(1, 1, 8, 8), "why": torch.randn(1, 8, 8), **three},
        ),
        "mnist_mask_k": (mask_k().values, {k: torch.rand(3, 1, 8, 8) for k in ("masked", "moved")}),
        "mnist_consistency": (consistency().values, {}),
    }
    names = set()
    for name, (values, arrays) in made.items():
        if arrays:
            save_arrays(tmp_path / f"{name}.npz", arrays)
        paths = save_paper_figures(Result(name, values, {"recipe": "mnist"}, 0, 1.0), tmp_path)
        assert paths, name
        assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
        names |= {path.stem for path in paths}
    assert {"mnist_examples-3", "mnist_examples-5", "mnist_sheet-1"} <= names
    assert save_paper_figures(baselines(), tmp_path) == []


def test_the_documentation_shows_no_photographs_of_cifar10(tmp_path):
    for recipe in ("mnist", "cifar10"):
        save_arrays(tmp_path / f"{recipe}_explanations.npz", shown())
        arrays = {k: torch.rand(3, 3, 8, 8) for k in ("masked", "moved")}
        save_arrays(tmp_path / f"{recipe}_mask_k.npz", arrays)
    values = {"pictures": notes("a", "b")}
    seen, hidden = (
        save_public_figures(Result(f"{recipe}_explanations", values, {}, 0, 1.0), tmp_path, tmp_path / "docs")
        for recipe in ("mnist", "cifar10")
    )
    assert [path.name for path in seen] == ["results-mnist_explanations.png"]
    assert hidden == []
    drawn = [axes for figure in paper_figures(mask_k("cifar10"), {}).values() for axes in figure.axes]
    assert drawn
    assert not any(axes.get_images() for axes in drawn)
    assert len(save_public_figures(mask_k("cifar10"), tmp_path, tmp_path / "docs")) == 1
