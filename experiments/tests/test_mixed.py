"""Mixed prototypes: evidence without drawing all of them, the same numbers as with."""

import pytest
import torch

from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, load
from torchsite.objective import TransformationTerm
from torchsite.objective.transformation import transformation_loss
from torchsite.randomness import make_rng
from torchsite.training import TrainingConfig, fit
from torchsite.transforms import AffineTransform

SMALL = {
    "extractor_options": {"widths": (4, 4, 6), "depth": 3},
    "generator_options": {"widths": (4, 5), "trunk": (6, 5), "rank": 4},
}


def model(n_classes=7, **options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = SITE("small_cnn", "mixed", n_classes, image_shape=(3, 16, 16), **SMALL, **options)
        return made.double().eval()


def pictures(n=3):
    return torch.rand(n, 3, 16, 16, generator=make_rng(0), dtype=torch.float64)


@pytest.mark.parametrize("relative", [False, True])
def test_evidence_is_that_of_the_prototypes_that_could_have_been_drawn(relative):
    """Σ_r a_ir (b_r · z) = w_i · z: the shorter way gives the longer one's numbers."""
    found = model().explain(pictures(), relative=relative)
    assert found.prototypes.shape == (3, 7, *found.features.shape[1:])
    assert found.evidence.std() > 1e-3
    torch.testing.assert_close(found.contributions.sum(2), found.evidence)
    torch.testing.assert_close(found.heatmaps().sum((-2, -1)), found.logits)


def test_mixtures_are_bounded_and_raw_ones_are_their_inverse():
    with torch.no_grad():
        made = model()
        for parameter in made.generator.parameters():
            parameter.mul_(3)
        run = made.run(pictures())
    assert 0.1 < float(run.prototypes.abs().max()) <= 1
    torch.testing.assert_close(run.raw_prototypes.tanh(), run.prototypes, atol=2e-4, rtol=1e-3)
    some = torch.tensor([4, 1])
    torch.testing.assert_close(run.raw_of(some), run.raw_prototypes[:, some])
    torch.testing.assert_close(made.generator(run.features), run.raw_prototypes)


def test_the_drawn_maps_do_not_grow_with_the_classes():
    """What a training pass keeps: rank × depth maps and one of evidence for each class."""
    few, many = (model(n).run(pictures()) for n in (7, 70))
    assert few.basis.shape == many.basis.shape
    assert many.evidence.shape[1] == 70


def test_classes_that_stand_for_all_are_right_on_average():
    run, pose = model().run(pictures()), AffineTransform.identity(3)
    targets = torch.rand(7, *run.features.shape[1:], generator=make_rng(1), dtype=torch.float64)
    whole = transformation_loss(run.raw_prototypes, targets, pose, slope=2.0)
    each = [transformation_loss(run.raw_of(k), targets[k], pose, slope=2.0) for k in torch.arange(7).split(1)]
    torch.testing.assert_close(torch.stack(each).mean(), whole)


def test_a_mixed_model_learns_and_comes_back(tmp_path):
    labels = torch.arange(96) % 3
    images = torch.randint(0, 100, (96, 3, 16, 16), generator=make_rng(0), dtype=torch.uint8)
    for label in range(3):
        images[labels == label, label] += 120
    data = Dataset(images, labels, ("red", "green", "blue"))
    made = model(3, classes=data.classes).float()
    terms = (TransformationTerm(weight=0.1, targets="mean", n_classes=2),)
    config = TrainingConfig(epochs=6, batch_size=24, terms=terms, precision="32")
    fit(made, data, config, validation=data, folder=tmp_path)
    assert float((made(data.images / 255).argmax(1) == labels).float().mean()) > 0.8
    again = load(tmp_path / "model")
    assert torch.equal(again(data.images[:4] / 255), made(data.images[:4] / 255))


def test_mixtures_of_a_sigmoid_stay_between_nothing_and_one():
    with torch.no_grad():
        run = model(activation="sigmoid").run(pictures())
    assert 0 <= float(run.prototypes.min()) < float(run.prototypes.max()) <= 1
    torch.testing.assert_close(run.raw_prototypes.sigmoid(), run.prototypes, atol=2e-4, rtol=1e-3)


def test_the_number_of_classes_that_stand_for_all_is_positive():
    with pytest.raises(ConfigError, match="n_classes: expected at least 1"):
        TransformationTerm(n_classes=0)
