"""Fine-tuning on hidden patches: the model is left alone, the copy knows pictures without a patch better."""

import copy

import pytest
import torch
import torch.nn.functional as F

from metric_models import convnet, spot_pictures
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.evaluation.deletion_tuning import one_in_half, tuned_on_deletions
from torchsite.randomness import make_rng
from torchsite.transforms import FILLS
from torchsite.transforms.patches import hide_patches


def spots():
    images, labels = spot_pictures(64)
    return Dataset((255 * images).byte(), labels, ("none", "spot"), "spots", "train")


def test_a_tuned_copy_answers_pictures_with_hidden_patches_better():
    model, data = convnet(n_classes=2), spots()
    before = copy.deepcopy(model.state_dict())
    tuned = tuned_on_deletions(model, data, n_steps=40, learning_rate=1e-2, rng=make_rng(0))
    images = hide_patches(
        data.images.float() / 255, one_in_half(64, (4, 4), make_rng(9)), FILLS["mean"], rng=make_rng(1)
    )
    with torch.no_grad():
        losses = [float(F.cross_entropy(m.eval()(images), data.labels)) for m in (model, tuned)]
    assert losses[1] < 0.8 * losses[0]
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert not tuned.training
    again = tuned_on_deletions(model, data, n_steps=40, learning_rate=1e-2, rng=make_rng(0))
    assert all(torch.equal(a, b) for a, b in zip(tuned.parameters(), again.parameters(), strict=True))


def test_half_of_the_pictures_lose_one_patch():
    hidden = one_in_half(4000, (4, 4), make_rng(0))
    counts = hidden.flatten(1).sum(1)
    assert set(counts.tolist()) == {0, 1}
    assert float(counts.float().mean()) == pytest.approx(0.5, abs=0.04)
    assert hidden.float().mean(0).flatten().tolist() == pytest.approx([1 / 32] * 16, abs=0.012)


def test_steps_and_batches_must_make_sense():
    with pytest.raises(ConfigError, match="batches of two"):
        tuned_on_deletions(convnet(), spots(), batch_size=1, rng=make_rng(0))
