"""A folder of runs that experiments on a slice share."""

from contextlib import contextmanager

import pytest

from experiments import accuracy, recipes

QUICK = "test_mask_k_keeps_its_curves_and_its_pictures"
RECIPE = """
data: cifar10
model:
  feature_extractor: pyramid
  extractor_options: {widths: [8, 8, 8, 8], common: 8, depth: 4}
  generator_options: {widths: [8, 8, 8], code: 16, trunk: [8, 8, 8]}
training: {terms: [{name: transformation, targets: mean}]}
"""


def pytest_collection_modifyitems(items):
    """What needs trained models is for the whole run, but for one study from its training to its figures."""
    for item in items:
        if {"trained_runs", "played"} & {*item.fixturenames} and item.name != QUICK:
            item.add_marker(pytest.mark.slow)


@contextmanager
def small_recipe(folder):
    """A small model under the name of the large one, so that slices take seconds."""
    path = folder / "cifar10.yaml"
    path.write_text(RECIPE)
    known = recipes.known_recipes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "known_recipes", lambda: known | {"cifar10": path})
        yield


@pytest.fixture(scope="session")
def trained_runs(tmp_path_factory):
    """A folder of runs in which the models of CIFAR-10's experiment were made, on a few digits."""
    root = tmp_path_factory.mktemp("runs")
    with small_recipe(root):
        accuracy.STUDY.run("cifar10", root / "cifar10-quick", quick=True)
    return root


@pytest.fixture
def folder(trained_runs):
    """The same, where the recipe is that of the small model."""
    with small_recipe(trained_runs):
        yield trained_runs
