"""Figure 4: every method on both models, in every pose."""

import pytest
import torch
from made_up import line, section, shown

from experiments import method_sheet
from experiments.cache import load_arrays
from torchsite.randomness import make_rng
from torchsite.results import Result

METHODS = ["self_explanation", "grad_cam", "random"]


def test_the_sheet_holds_a_map_for_every_pose(folder):
    place = folder / "cifar10_sheet-quick"
    result = method_sheet.STUDY.run("cifar10", place, methods=[*METHODS, "excitation_backprop"], quick=True)
    arrays = load_arrays(place / "cifar10_sheet.npz")
    for row in result.values["lines"]:
        name = f"{row['model']}.{row['method']}"
        assert (name in arrays) == ("reason" not in row)
        if "reason" not in row:
            assert arrays[name].shape == (1, 3, 28, 28)
    assert any("reason" in row for row in result.values["lines"]), "a product of tanh's has no excitation"


def test_both_models_are_named_above_their_columns():
    lines = [line("site", "self_explanation"), line("black_box", "grad_cam")]
    maps = torch.randn(1, 3, 8, 8, generator=make_rng(1))
    arrays = {**shown(1), "site.self_explanation": maps, "black_box.grad_cam": maps}
    result = Result("mnist_sheet", {"pictures": [{}], "lines": lines}, {"recipe": "mnist"}, 0, 1.0)
    (figure,) = method_sheet.STUDY.figures(result, arrays).values()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles.count("I(x)\non SITE") == titles.count("I(x)\non the black box") == 1


@pytest.mark.parametrize("recipe", ["mnist", "cifar10"])
def test_methods_that_apply_have_their_row_and_the_sheet_its_link(recipe):
    lines = [line("site", "rise", **{"self-consistency": [0.125]}), line("site", "x", reason="no")]
    sheet = Result(
        f"{recipe}_sheet", {"pictures": [{"class": "a"}], "lines": lines}, {"recipe": recipe}, 0, 1.0
    )
    assert "| RISE | on SITE | 0.125 |" in section(sheet)
    assert "| x |" not in section(sheet)
    assert ("](pictures/" in section(sheet)) == (recipe == "mnist")
