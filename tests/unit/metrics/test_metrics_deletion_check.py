"""The deletion check: what the measure of the same name finds, picture by picture."""

import pytest
import torch

from torchsite.data import load_dataset, to_float
from torchsite.metrics import METRICS
from torchsite.metrics.patch_deletion import deletion_check
from torchsite.model import SITE


def test_its_mean_is_patch_deletion():
    model, images = SITE.from_pretrained("mnist"), to_float(load_dataset("mnist_sample", "test").images[:6])
    explanation = model.explain(images)
    checks = deletion_check(model, explanation)
    measure = METRICS["patch_deletion"](model, model)
    measure.update(images, explanation.predicted, explanation.predicted, torch.arange(6))
    assert float(checks.mean()) == pytest.approx(measure.result().correlation.value, abs=0.02)
    assert (checks.abs() <= 1 + 1e-6).all()
