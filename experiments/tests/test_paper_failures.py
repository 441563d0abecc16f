"""Failure cases: confident mistakes, their reasons, and the commonest confusions."""

import pytest
import torch
from made_up import section

from experiments import failures
from experiments.cache import load_arrays
from torchsite.data import load_dataset
from torchsite.results import Result


def mistakes(recipe="mnist"):
    note = {"row": 7, "class": "3", "predicted": "8", "probability": 0.9}
    note |= {"logit of the class": 1.0, "logit of the predicted": 3.5}
    values = {
        "pictures": [note],
        "n_wrong": 12,
        "n_images": 1000,
        "confusions": [{"class": "3", "predicted": "8", "n": 5}],
    }
    return Result(f"{recipe}_failures", values, {"recipe": recipe}, 0, 1.0)


def test_failures_are_confident_mistakes_whose_difference_is_that_of_the_logits(folder):
    place = folder / "cifar10_failures-quick"
    result = failures.STUDY.run("cifar10", place, quick=True)
    why = load_arrays(place / "cifar10_failures.npz")["why"]
    notes = result.values["pictures"]
    assert len({note["class"] for note in notes}) == len(notes) == failures.N_SHOWN
    assert [n["probability"] for n in notes] == sorted((n["probability"] for n in notes), reverse=True)
    for note, difference in zip(notes, why.sum((1, 2)).tolist(), strict=True):
        assert note["class"] != note["predicted"]
        gap = note["logit of the class"] - note["logit of the predicted"]
        assert gap < 0
        assert difference == pytest.approx(gap, abs=1e-4)
    counts = [confusion["n"] for confusion in result.values["confusions"]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) <= result.values["n_wrong"] <= result.values["n_images"]


def test_a_model_without_mistakes_has_no_failures():
    data = load_dataset("mnist_sample", "test")[:30]
    logits = torch.nn.functional.one_hot(data.labels, 10).float()
    assert len(failures.confident_mistakes(logits, data)) == 0
    assert failures.confusions(logits, data) == []


def test_mistakes_are_written_out():
    text = section(mistakes())
    assert "12 of 1,000" in text
    assert "| 7 | 3 | 8 | 0.900 | -2.50 |" in text
    assert "](pictures/results-mnist_failures.png)" in text
    assert "](pictures/" not in section(mistakes("cifar10"))


def test_mistakes_are_drawn_if_there_are_any():
    maps = {f"{name}_maps": torch.randn(1, 8, 8) for name in ("true", "predicted")}
    arrays = {"images": torch.rand(1, 1, 8, 8), "why": torch.randn(1, 8, 8), **maps}
    assert list(failures.STUDY.figures(mistakes(), arrays)) == ["mnist_failures"]
    assert failures.STUDY.figures(mistakes(), {}) == {}
    none = Result("mnist_failures", {**mistakes().values, "pictures": []}, {"recipe": "mnist"}, 0, 1.0)
    assert failures.STUDY.figures(none, arrays) == {}
    assert "](pictures/" not in section(none)
