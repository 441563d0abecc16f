"""Figure 5: curves, areas and the pictures that were masked."""

import re

import torch
from made_up import estimate, line, section

from experiments import mask_k
from experiments.cache import load_arrays
from torchsite.report.format import score
from torchsite.results import Result


def figure_5(recipe="mnist"):
    def curve(height):
        points = [estimate(height - k / 20) for k in range(11)]
        return {
            "curve": points,
            "random_curve": points,
            "area": estimate(height),
            "random_area": estimate(0.1),
            "gain": estimate(height - 0.1),
        }

    def both(height):
        return {"accuracy": curve(height), "log_odds": curve(height)}

    fractions = [k / 10 for k in range(11)]
    table = [
        line(kind, method, fractions=fractions, fills=dict.fromkeys(mask_k.FILLS, both(height)))
        for kind in ("site", "black_box")
        for method, height in (("gradient", 0.71), ("random", 0.6), ("relative_explanation", 0.5))
    ]
    return Result(f"{recipe}_mask_k", {"table": table}, {"recipe": recipe}, 0, 1.0)


def test_mask_k_keeps_its_curves_and_its_pictures(folder):
    place = folder / "cifar10_mask_k-quick"
    result = mask_k.STUDY.run("cifar10", place, methods=["self_explanation", "grad_cam"], quick=True)
    for row in result.values["table"]:
        assert len(row["accuracy"]["curve"]) == len(row["fractions"]) == 11
        assert row["log_odds"]["area"]["low"] <= row["log_odds"]["area"]["high"]
    shown = load_arrays(place / "cifar10_mask_k.npz")
    blank = (shown["masked"] == 0).all(1).flatten(1).double().mean(1)
    assert (blank.diff() > 0).all()
    assert blank[-1] >= mask_k.BLANKED[-1] - 0.01


def test_the_largest_areas_are_named():
    text = section(figure_5())
    assert re.search(r"\| gradient \| on SITE \| 0\.7100 .* \| 0\.6100 ", text)
    assert text.index("| SITE, relative maps | on SITE") < text.index("| gradient | on SITE")
    assert "The largest areas: accuracy: gradient on SITE, log-odds: gradient on SITE." in text


def test_both_fillings_stand_in_the_section_and_in_the_figure(folder):
    place = folder / "cifar10_mask_k-quick"
    result = mask_k.STUDY.run("cifar10", place, methods=["self_explanation", "grad_cam"], quick=True)
    text = section(result)
    for fill in ("black", "blur"):
        assert f"Blanked pixels: {fill}. The largest areas: accuracy: " in text
    (row,) = [r for r in result.values["table"] if (r["model"], r["method"]) == ("black_box", "grad_cam")]
    assert (
        f"| {score(row['fills']['blur'], 'accuracy', 'area')} |" in text.partition("Blanked pixels: blur")[2]
    )
    (figure,) = mask_k.STUDY.figures(result, {}).values()
    titles = [axes.get_title() for axes in figure.axes]
    assert (
        titles.count("on SITE, blanked pixels: blur") == titles.count("on SITE, blanked pixels: black") == 2
    )


def test_without_arrays_there_are_curves_but_no_pictures():
    (bare,), arrays = mask_k.STUDY.figures(figure_5("cifar10"), {}).values(), torch.rand(3, 1, 8, 8)
    assert bare.axes
    assert not any(axes.get_images() for axes in bare.axes)
    (whole,) = mask_k.STUDY.figures(figure_5(), {"masked": arrays, "moved": arrays}).values()
    assert sum(bool(axes.get_images()) for axes in whole.axes) == 1
