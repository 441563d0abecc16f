"""The models that come with the package do what the results page says of them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from skimage.data import chelsea
from sklearn.datasets import load_sample_image

from torchsite.data import load_dataset, to_float
from torchsite.metrics import OneMapShare, completeness_error, self_consistency
from torchsite.model import SITE, BlackBoxConfig, load, shipped_models
from torchsite.model.pretrained import WEIGHTS_FILE, read_config
from torchsite.randomness import make_rng
from torchsite.web.samples import samples_for


@pytest.fixture(scope="module")
def digits():
    data = load_dataset("mnist_sample", "test")[:500]
    return to_float(data.images), data.labels


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_are_small_and_name_all_their_options(name):
    folder = shipped_models()[name]
    assert (folder / WEIGHTS_FILE).stat().st_size <= (6e6 if "mnist" in name else 8e6)
    config = read_config(folder)
    options = config.encoder_options if isinstance(config, BlackBoxConfig) else config.generator_options
    assert "widths" in options


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
    assert found.raw.value >= 0.96
    assert found.floor.value <= 0.5


def test_a_stranger_reads_the_prototypes_of_digits_upright_and_posed(digits):
    """The black box took no part in training; chance names a tenth."""
    images, _ = digits
    model, stranger = SITE.from_pretrained("mnist"), load("mnist_black_box")
    posed = model.config.family.sample(50, rng=make_rng(0))(images[:50])
    for pictures, share in ((images[:50], 0.9), (posed, 0.75)):
        prototypes = model.explain(pictures).prototypes
        with torch.no_grad():
            named = stranger(prototypes.flatten(0, 1)).argmax(1).view(50, 10)
        assert (named == torch.arange(10)).float().mean() >= share


def test_the_model_of_clothes_knows_most_drawn_ones_and_its_explanation_follows():
    model = SITE.from_pretrained("fashion_mnist")
    clothes = samples_for(model.config)
    explanation = model.explain(clothes.images)
    said = [model.classes[i].lower() for i in explanation.predicted.tolist()]
    names = [name.removeprefix("drawn ").lower() for name in clothes.names]
    assert sum(name in word for name, word in zip(names, said, strict=True)) > len(names) / 2
    found = self_consistency(model, clothes.images, explanation.predicted, n_transforms=4, rng=make_rng(0))
    assert found.raw.value >= 0.95
    assert load("fashion_mnist_black_box")(clothes.images).shape == (len(names), 10)


def test_the_model_of_photographs_explains_what_it_says_in_any_pose():
    photographs = [load_sample_image(name) for name in ("china.jpg", "flower.jpg")]
    crops = [
        photo[y : y + 320, x : x + 320] for photo in photographs for y in (0, 100) for x in (0, 150, 300)
    ]
    images = F.avg_pool2d(to_float(torch.tensor(np.stack(crops)).permute(0, 3, 1, 2)), 10)
    model = SITE.from_pretrained("cifar10")
    explanation = model.explain(images)
    error = completeness_error(
        explanation.heatmaps(classes=explanation.predicted), explanation.logits.amax(1)
    )
    assert float(error.max()) <= 1e-4
    found = self_consistency(model, images, explanation.predicted, n_transforms=4, rng=make_rng(0))
    assert found.raw.value >= 0.75  # twelve crops of a temple and a flower, neither of which it knows
    assert found.floor.value <= 0.6
    blank = model.explain(images.mean((-2, -1), keepdim=True).expand_as(images))
    assert blank.evidence.abs().sum() <= 0.05 * explanation.evidence.abs().sum(), "nothing seen, nothing said"
    assert load("cifar10_black_box")(images).shape == (len(images), 10)


def test_the_model_of_photographs_says_nothing_of_grey_and_points_at_a_cat():
    """A cat of scikit-image's examples on grey: the breed is a cat's, and the evidence lies on the face."""
    model = SITE.from_pretrained("bam_objects")
    cats = {"bombay", "egyptian_mau", "persian", "siamese", "sphynx"}
    grey = torch.full((1, 3, 96, 96), 0.5)
    face = torch.tensor(chelsea()[20:280, 60:320]).movedim(-1, 0)[None].float() / 255
    picture = grey.clone()
    picture[..., 8:56, 40:88] = F.interpolate(face, size=(48, 48), mode="bilinear", antialias=True)
    explanation = model.explain(torch.cat([grey, picture]))
    nothing, something = explanation.logits.amax(1)
    assert nothing < 0.05 * something
    assert model.classes[int(explanation.predicted[1])] in cats
    heatmap = explanation.heatmaps(classes=explanation.predicted)[1].clamp_min(0)
    assert heatmap[8:56, 40:88].sum() > 0.6 * heatmap.sum()


def test_the_model_of_satellite_pictures_points_at_what_it_names_in_any_orientation():
    model = SITE.from_pretrained("eurosat")
    land = samples_for(model.config)
    explanation = model.explain(land.images)
    named = [model.classes[i] for i in explanation.predicted.tolist()]
    expected = {"highway": "Highway", "river": "River", "industry": "Industrial", "houses": "Residential"}
    right = [expected[name] == said for name, said in zip(land.names, named, strict=True) if name in expected]
    assert sum(right) >= 3
    found = self_consistency(model, land.images, explanation.predicted, n_transforms=4, rng=make_rng(0))
    assert found.raw.value >= 0.9
    template = OneMapShare(lambda x, c: explanation.heatmaps(classes=c), n_resamples=2)
    template.update(land.images, explanation.predicted)
    assert template.result().pattern.value <= 0.5, "no template of either sign"
