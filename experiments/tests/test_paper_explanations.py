"""Figure 3 and the appendix: pictures that are classified correctly, explained in two poses."""

import pytest
import torch
from made_up import notes, section
from made_up import shown as made_up_arrays

from experiments.cache import load_arrays
from experiments.models import pair_beside
from experiments.registry import EXPERIMENTS
from torchsite.data import load_dataset
from torchsite.results import Result


@pytest.mark.parametrize("kind", ["explanations", "examples"])
def test_shown_pictures_are_classified_correctly(folder, kind):
    name = f"cifar10_{kind}"
    result = EXPERIMENTS[name].run(folder / f"{name}-quick", quick=True)
    arrays = load_arrays(folder / f"{name}-quick" / f"{name}.npz")
    notes, test = result.values["pictures"], load_dataset("mnist_sample", "test")
    assert len(notes) == len(arrays["images"]) > 0
    for note, image in zip(notes, arrays["images"], strict=True):
        assert note["class"] == note["predicted"] == test.classes[int(test.labels[note["row"]])]
        assert torch.equal(image, test.images[note["row"]] / 255)
    site = pair_beside("cifar10", folder / "any", quick=True).site
    explained = site.explain(arrays["images"])
    torch.testing.assert_close(arrays["maps"].sum((1, 2)), explained.logits.amax(1), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("recipe", "n_sheets"), [("mnist", 2), ("cifar10", 0)])
def test_every_class_of_the_appendix_has_its_line_and_its_sheet_where_it_may_be_shown(recipe, n_sheets):
    pictures = notes("3", "3", "5")
    pictures[1]["predicted when moved"] = "8"
    text = section(Result(f"{recipe}_examples", {"pictures": pictures}, {"recipe": recipe}, 0, 1.0))
    assert "| 3 | 1 of 2 | 0.900, 0.900 |" in text
    assert "| 5 | 1 of 1 | 0.900 |" in text
    assert text.count(f"](pictures/results-{recipe}_examples-") == n_sheets


@pytest.mark.parametrize("recipe", ["mnist", "cifar10"])
def test_the_sheet_is_linked_where_it_may_be_shown(recipe):
    made = Result(f"{recipe}_explanations", {"pictures": notes("a")}, {"recipe": recipe}, 0, 1.0)
    assert "| a | a | a | 0.900 |" in section(made)
    assert ("](pictures/" in section(made)) == (recipe == "mnist")


@pytest.mark.parametrize(
    ("name", "sheets"),
    [
        ("mnist_explanations", ["mnist_explanations"]),
        ("mnist_examples", ["mnist_examples-3", "mnist_examples-5"]),
    ],
)
def test_there_is_one_sheet_of_explanations_and_one_for_each_class_of_examples(name, sheets):
    made = Result(name, {"pictures": notes("3", "5")}, {"recipe": "mnist"}, 0, 1.0)
    assert list(EXPERIMENTS[name].figures(made, made_up_arrays())) == sheets
    assert EXPERIMENTS[name].figures(made, {}) == {}
