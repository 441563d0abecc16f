"""What can be asked of an explanation: classes, sizes, and evidence relative to all classes."""

from dataclasses import replace

import pytest
import torch

from torchsite.errors import ShapeError
from torchsite.model import SITE

TINY = {"widths": (4, 5), "code": 6, "trunk": (4, 4)}
NAMES = ("cat", "dog", "frog")


def tiny(extractor="identity", n_classes=3, shape=(1, 12, 12), **options):
    return SITE(extractor, "lateral", n_classes, image_shape=shape, generator_options=TINY, **options)


def pictures(n=2, shape=(1, 12, 12)):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(0))


# Choosing classes


def test_one_class_by_number_by_name_or_one_for_each_picture():
    found = tiny(classes=NAMES).explain(pictures(4))
    every = found.heatmaps()
    assert torch.equal(found.heatmaps(classes=1), every[:, 1])
    assert torch.equal(found.heatmaps(classes="dog"), every[:, 1])
    each = torch.tensor([2, 0, 1, 1])
    assert torch.equal(found.heatmaps(classes=each), every[torch.arange(4), each])
    assert torch.equal(found.heatmaps(classes=each.int()), found.heatmaps(classes=each))
    assert torch.equal(found.contrast("cat", each), every[:, 0] - every[torch.arange(4), each])
    assert torch.equal(found.why("cat", each), found.contrast("cat", each))  # the earlier name


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ("dgo", "'dgo': .*'dog'"),
        (3, "classes: "),
        (-1, "classes: "),
        (1.0, "classes: "),
        (True, "classes: "),
        (torch.tensor([0, 1]), "classes: "),
    ],
)
def test_classes_that_do_not_exist_are_refused(choice, words):
    with pytest.raises(ShapeError, match=words):
        tiny(classes=NAMES).explain(pictures(4)).heatmaps(classes=choice)


def test_sizes_of_nothing_are_refused():
    with pytest.raises(ShapeError, match="size"):
        tiny().explain(pictures()).heatmaps(size=(0, 4))


def test_predictions_are_sorted_by_logits():
    found = tiny(n_classes=5).explain(pictures(6))
    order = found.logits.argsort(1, descending=True)
    assert torch.equal(found.predicted, order[:, 0])
    assert torch.equal(found.runner_up(), order[:, 1])
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(6))
    assert len(found) == 6


# Evidence relative to all classes


def test_with_zero_sum_the_evidence_sums_to_zero_and_probabilities_stay():
    usual = tiny("pyramid", shape=(3, 16, 16), extractor_options={"depth": 2, "widths": (4, 4, 4)})
    relative = SITE.from_config(replace(usual.config, zero_sum=True))
    relative.load_state_dict(usual.state_dict())
    images = pictures(4, (3, 16, 16))
    before, after = usual.explain(images), relative.explain(images)
    assert before.evidence.sum(1).abs().max() > 1e-4
    torch.testing.assert_close(after.evidence.sum(1), torch.zeros_like(after.evidence[:, 0]))
    torch.testing.assert_close(after.probabilities, before.probabilities)
    torch.testing.assert_close(after.contributions.sum(2), after.evidence)
    torch.testing.assert_close(after.contrast("0", "1"), before.contrast("0", "1"))


@pytest.mark.parametrize("zero_sum", [False, True])
def test_a_model_shows_either_kind_of_maps_when_asked(zero_sum):
    model = tiny(zero_sum=zero_sum)
    usual, plain, relative = (model.explain(pictures(), relative=kind) for kind in (None, False, True))
    assert torch.equal(usual.evidence, (relative if zero_sum else plain).evidence)
    mean = plain.evidence.mean(1, keepdim=True)
    torch.testing.assert_close(relative.evidence, plain.evidence - mean)
    assert plain.evidence.sum(1).abs().max() > 1e-4
    assert model.config.zero_sum is zero_sum
