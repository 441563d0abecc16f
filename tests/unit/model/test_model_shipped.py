"""The models that come with the package do what the results page says of them, on the embedded digits."""

import pytest
import torch

from torchsite.data import load_dataset, to_float
from torchsite.metrics import completeness_error, self_consistency
from torchsite.model import SITE, load, shipped_models
from torchsite.model.pretrained import WEIGHTS_FILE, read_config
from torchsite.randomness import make_rng


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("mnist_sample", "test")[:500]
    return to_float(data.images), data.labels


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_are_small_and_name_all_their_options(name):
    folder = shipped_models()[name]
    assert (folder / WEIGHTS_FILE).stat().st_size <= 6e6
    assert {"widths", "code"} <= set(read_config(folder).generator_options)


@pytest.mark.parametrize("name", ["mnist", "mnist_black_box"])
def test_they_recognise_digits_upright_and_in_other_poses(name, digits):
    images, labels = digits
    model = load(name)
    poses = model.config.family.sample(len(images), rng=make_rng(0))
    with torch.no_grad():
        upright, posed = ((model(x).argmax(1) == labels).float().mean() for x in (images, poses(images)))
    assert upright >= 0.985
    assert posed >= 0.97


def test_the_explanation_is_the_prediction_and_follows_the_picture(digits):
    images, _ = digits
    model = SITE.from_pretrained("mnist")
    explanation = model.explain(images)
    error = completeness_error(
        explanation.heatmaps(classes=explanation.predicted), explanation.logits.amax(1)
    )
    assert float(error.max()) <= 1e-4
    found = self_consistency(
        model, images[:200], explanation.predicted[:200], n_transforms=1, rng=make_rng(0)
    )
    assert found.raw.value >= 0.985
    assert found.floor.value <= 0.5
