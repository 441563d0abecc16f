"""Table 1: a row for every method, measured once, and its chart."""

import re

import pytest
import torch
from made_up import estimate, line, section

from experiments import consistency
from experiments.measuring import rows_for
from experiments.tables import CONSISTENCY
from torchsite.metrics.self_consistency import SelfConsistency
from torchsite.model import SITE
from torchsite.results import Result

METHODS = ["self_explanation", "grad_cam", "random"]


def table_1(recipe="cifar10"):
    def scores(shift):
        names = ("raw", "floor", "calibrated", "centred")
        return {"self_consistency": {name: estimate(0.9 - shift - k / 10) for k, name in enumerate(names)}}

    table = [
        line("site", "self_explanation", **scores(0)),
        line("site", "rise", **scores(0.1) | {"options": {"n_masks": 256}}),
        line("black_box", "grad_cam", **scores(0.2)),
        line("site", "excitation_backprop", reason="a product of tanh's"),
    ]
    return Result(f"{recipe}_consistency", {"table": table}, {"recipe": recipe}, 0, 1.0)


def test_table_1_has_a_line_for_every_method_and_goes_on_where_it_stopped(folder, monkeypatch):
    place = folder / "cifar10_consistency-quick"
    result = consistency.STUDY.run("cifar10", place, methods=METHODS, quick=True)
    lines = [(line["model"], line["method"]) for line in result.values["table"]]
    own = [METHODS[0], "relative_explanation"]
    asked = [("site", m) for m in [*own, *METHODS[1:]]] + [("black_box", m) for m in METHODS[1:]]
    assert sorted(lines) == sorted(asked)
    plain, relative = (
        line["self_consistency"]["raw"]["value"] for line in result.values["table"] if line["method"] in own
    )
    assert plain != relative
    assert all(set(line["self_consistency"]) == set(CONSISTENCY) for line in result.values["table"])
    assert set(consistency.first(result.values["table"])) == {"raw", "calibrated", "centred"}
    monkeypatch.setattr(SelfConsistency, "_update", lambda *_: pytest.fail("measured twice"))
    again = consistency.STUDY.run("cifar10", place, methods=METHODS, quick=True)
    assert again.values["table"] == result.values["table"]


@pytest.mark.parametrize(("zero_sum", "name"), [(False, "relative"), (True, "plain")])
def test_the_other_maps_are_of_the_same_weights_and_probabilities(zero_sum, name):
    torch.manual_seed(0)
    model = SITE("identity", "lateral", 3, image_shape=(1, 8, 8), zero_sum=zero_sum).eval()
    (_, _, usual), (called, method, options) = rows_for(model, ["self_explanation"])
    images = torch.rand(2, 1, 8, 8)
    mine, theirs = model.explain(images, **usual), model.explain(images, **options)
    relative = mine if zero_sum else theirs
    assert (called, method) == (f"{name}_explanation", "self_explanation")
    assert model.config.zero_sum is zero_sum, "the model itself stays as it is"
    torch.testing.assert_close(mine.probabilities, theirs.probabilities)
    torch.testing.assert_close(relative.evidence.sum(1), torch.zeros(2, 8, 8))
    assert not torch.allclose(mine.evidence, theirs.evidence)


def test_the_first_is_the_largest_of_all_lines():
    def line(model, method, **figures):
        scores = {name: {"value": value} for name, value in figures.items()}
        return {"model": model, "method": method, "self_consistency": scores}

    table = [
        line("site", "a", raw=0.5, calibrated=0.9, centred=None),
        line("black_box", "b", raw=0.6, calibrated=0.1, centred=0.2),
        {"model": "site", "method": "c", "reason": "not defined"},
    ]
    assert consistency.first(table) == {
        "raw": "b on the black box",
        "calibrated": "a on SITE",
        "centred": "b on the black box",
    }


def test_table_1_has_ours_with_intervals_and_the_paper_beside():
    text = section(table_1())
    assert "0.9000  [0.8900, 0.9100]" in text
    assert re.search(r"Grad-CAM \| on the black box \| 0\.7000 .* \| 0\.8416 \| 500 ", text)
    assert "first in raw: SITE itself on SITE, " in text
    assert "excitation BP on SITE is not defined: a product of tanh's" in text
    assert "RISE on SITE: n_masks = 256" in text


def test_the_chart_has_a_panel_for_each_score_and_needs_no_arrays():
    (figure,) = consistency.STUDY.figures(table_1(), {}).values()
    assert [axes.get_title() for axes in figure.axes] == ["raw", "floor", "calibrated", "centred"]
