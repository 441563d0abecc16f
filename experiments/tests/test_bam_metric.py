"""BAM's measure where the right answer is known."""

import math

import pytest
import torch

from experiments.bam.metric import BAM, insignificant_patch
from metric_models import Templates, convnet, noise
from torchsite.errors import NotApplicableError
from torchsite.metrics import as_explainer, strokes
from torchsite.randomness import make_rng

FAST = {"n_resamples": 20}


def templates(seed=0):
    return Templates(torch.rand(4, 1, 12, 12, generator=make_rng(seed)))


def test_a_constant_map_fools_iir_but_not_its_floor():
    images, labels = noise(8)
    model = convnet().eval()
    right = model(images).argmax(1)
    constant = lambda m, x, c: torch.ones_like(x[:, 0])  # noqa: E731
    explainer = as_explainer(constant, model)
    metric = BAM(explainer, explainer, **FAST)
    metric.update(images, right, right, strokes(images) > 0.5, images, images)
    found = metric.result()
    assert (found.mcs.value, found.idr.value) == (0, 0)
    assert found.iir.value == found.iir_floor.value == 1
    assert labels.dtype == right.dtype


def test_bam_without_patches_has_no_iir_and_refuses_what_has_no_pairs():
    images, _ = noise(4)
    model = templates()
    metric = BAM(model, model, **FAST)
    right = model(images).argmax(1)
    metric.update(images, right, right, strokes(images) > 0.5, images)
    assert math.isnan(metric.result().iir.value)
    with pytest.raises(NotApplicableError, match="pairs"):
        metric(images, right)


def test_an_insignificant_patch_is_visible_and_changes_little():
    images, _ = noise(6)
    model = convnet().eval()
    regions = torch.zeros(6, 12, 12, dtype=torch.bool)
    regions[:, 3:8, 3:8] = True
    patched = insignificant_patch(model, images, regions, rng=make_rng(0))
    noisy = (images + 0.3 * torch.randn(images.shape, generator=make_rng(1)) * regions[:, None]).clamp(0, 1)
    with torch.no_grad():
        change, chance = (float((model(x) - model(images)).norm()) for x in (patched, noisy))
    assert change < 0.5 * chance
    assert torch.equal(patched[~regions[:, None]], images[~regions[:, None]])
    assert float((patched - images)[regions[:, None]].abs().mean()) > 0.05
