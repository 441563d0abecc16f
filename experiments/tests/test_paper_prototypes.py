"""Prototypes are named by judges of other architectures than the readers', and shown under their classes."""

import pytest
import torch
from made_up import estimate, page, section

from experiments import prototypes
from experiments.cache import load_arrays
from experiments.judges import JUDGES, make_judge
from experiments.publish import draw_figures
from experiments.readers import READERS
from experiments.registry import EXPERIMENTS
from torchsite.data import load_dataset
from torchsite.results import Result
from torchsite.transforms import TransformFamily


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("runs") / "prototypes-quick"


@pytest.fixture(scope="module")
def result(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prototypes, "RECIPES", {"mnist": "MNIST"})
        patch.setattr(prototypes, "JUDGE_EPOCHS", 1.0)
        return EXPERIMENTS["prototypes"].run(place, quick=True)


@pytest.mark.slow
def test_every_judge_names_prototypes_upright_and_posed(result):
    values = result.values["mnist"]
    assert set(values["judges"]) == set(JUDGES)
    for judge in JUDGES:
        assert {"untransformed", "transformed"} <= set(values["now"][judge])
    assert 0 < values["now"]["likeness"]["consistency"]["raw"]["value"] <= 1
    assert "before" not in values


@pytest.mark.slow
def test_pictures_stand_upright_and_posed_beside_all_their_prototypes(result, place, monkeypatch):
    monkeypatch.setattr(prototypes, "RECIPES", {"mnist": "MNIST"})
    arrays = load_arrays(place / "prototypes.npz")
    n = len(arrays["mnist_pictures"])
    assert n % 2 == 0
    assert arrays["mnist_prototypes"].shape == (n, 10, 1, 28, 28)
    (figure,) = draw_figures(EXPERIMENTS["prototypes"], place)
    assert figure.name == "prototypes-mnist.png"
    assert "pictures/results-prototypes-mnist.png" in page("results", place)


def test_judges_are_no_readers_and_are_kept(tmp_path):
    data = load_dataset("mnist_sample")[:200]
    for name, build in JUDGES.items():
        shapes = [tuple(p.shape) for p in build(1, 10).parameters()]
        assert all(
            shapes != [tuple(p.shape) for p in reader(1, 10).parameters()] for reader in READERS.values()
        )
        path = tmp_path / f"{name}.safetensors"
        first = make_judge(name, data, TransformFamily(), path, 1.0)
        again = make_judge(name, data, TransformFamily(), path, 1.0)
        images = data.images[:3] / 255
        assert path.is_file()
        assert not first.training
        assert torch.equal(first(images), again(images))


def test_the_table_shows_now_before_aims_and_the_judges_own_accuracy():
    def both(value):
        return {"untransformed": estimate(value), "transformed": estimate(value - 0.1)}

    def scores(value):
        consistency = {name: estimate(0.5) for name in ("raw", "floor", "calibrated", "centred")}
        likeness = {"nearest": estimate(0.9), "nearest_transformed": estimate(0.8), "nearest_floor": 0.11}
        likeness |= {"consistency": consistency}
        return {name: both(value) for name in (*JUDGES, "accuracy")} | {"likeness": likeness}

    one = {
        "judges": {name: both(0.991) for name in JUDGES},
        "now": scores(0.961),
        "before": scores(0.481),
        "classes": ["0", "1"],
    }
    config = {"recipes": {name: {"n_images": 10_000} for name in ("mnist", "fashion_mnist")}}
    text = section(Result("prototypes", {"mnist": one, "fashion_mnist": one}, config, 0, 1.0))
    for number in ("0.9610", "0.8610", "0.4810", "0.9910", "0.95", "0.70", "10,000"):
        assert number in text
