"""Many classes: what ninety-one more cost."""

import pytest
import torch
from made_up import page

from experiments import many_classes
from torchsite.data import Dataset
from torchsite.model.blocks import n_parameters
from torchsite.training.recipes import build_model, load_recipe


@pytest.mark.slow
def test_more_classes_cost_more_parameters_in_the_generator_alone(tmp_path):
    result = many_classes.run(tmp_path, quick=True)
    few, more = (result.values[str(n)] for n in many_classes.QUICK_CLASSES)
    assert few["extractor"] == more["extractor"] > 0
    assert few["generator"] < more["generator"]
    assert all(found["seconds a picture"] > 0 and found["peak bytes"] > 1e8 for found in (few, more))
    text = page("results", tmp_path)
    assert "# Scale in classes" in text
    assert "3 classes, mixed prototypes" in text
    assert "A step of 3 classes takes, beside one of 2: " in text


def test_a_hundred_and_one_classes_stay_within_the_papers_budget():
    model = load_recipe(many_classes.RECIPE).model
    names = [str(i) for i in range(101)]
    data = Dataset(torch.zeros(2, 3, 128, 128, dtype=torch.uint8), torch.tensor([0, 1]), names, "painted")
    site = build_model(model, data, load_recipe(many_classes.RECIPE).training)
    assert n_parameters(site.feature_extractor) < 1.02 * many_classes.PAPER["extractor"]
    assert n_parameters(site.generator) < many_classes.PAPER["generator"]
