"""What a training costs: counted multiplications, all views."""

import json

import pytest
import torch

from torchsite.model import SITE
from torchsite.training.budget import forward_macs, training_budget
from training_makers import make_config, run, transformation


def one_convolution():
    """3×3 kernels from one to four channels at 8×8, then a generator that multiplies nothing."""

    class Nothing(torch.nn.Module):
        def forward(self, features):
            return features.unsqueeze(1).expand(-1, 2, -1, -1, -1)

    return SITE(torch.nn.Conv2d(1, 4, 3, padding=1), Nothing(), 2, image_shape=(1, 8, 8))


def test_multiplications_of_a_pass_are_counted():
    assert forward_macs(one_convolution()) == 8 * 8 * 9 * 4


def test_a_budget_is_steps_times_views_times_three_passes():
    model = one_convolution()
    masked = {"name": "additive_evidence", "portion": 0.5}
    config = make_config(epochs=3, batch_size=8, terms=[transformation(), masked], views=["upright", "posed"])
    found = training_budget(model, config, n_pictures=20)
    assert found.views_per_picture == 2.5
    assert found.pmac == pytest.approx(3 * (8 * 8 * 9 * 4) * 2.5 * 8 * (3 * 2) / 1e15)
    taught = make_config(
        epochs=1, batch_size=8, terms=[{"name": "hiding", "portion": 0.25}], views=["upright"]
    )
    assert training_budget(model, taught, 8).pmac == pytest.approx((8 * 8 * 9 * 4) * (3 * 8 + 2 * 17) / 1e15)


def test_the_result_of_a_run_says_what_it_took(tmp_path):
    config = make_config(epochs=1)
    model = run(tmp_path, config=config).model
    budget = json.loads((tmp_path / "result.json").read_text())["config"]["budget"]
    assert budget["pmac"] == pytest.approx(training_budget(model, config, 100).pmac)
    assert budget["pmac"] > 0
