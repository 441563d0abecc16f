"""Measures in collections and in modules: flat scores, the rich result behind a method."""

import lightning
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection

from metric_models import convnet
from torchsite.metrics import METRICS, PointingGame, Poses, scores_of


def rows(n=6):
    rng = torch.Generator().manual_seed(0)
    return torch.rand(n, 1, 8, 8, generator=rng), torch.arange(n) % 2


def measures(model):
    options = {"poses": Poses(n=1), "n_resamples": 10, "n_classes": 2}
    names = ("accuracy", "self_consistency", "deletion", "patch_deletion", "completeness")
    explain = lambda images, classes: images[:, 0]  # noqa: E731
    return {name: METRICS[name](explain, model, **options) for name in names}


def test_scores_are_scalars_by_the_names_of_their_places():
    images, labels = rows()
    for measure in measures(convnet()).values():
        measure.update(images, labels)
        result = measure.result()
        assert measure.compute() == pytest.approx(scores_of(result, type(measure).headline))
        assert all(score.ndim == 0 for score in measure.compute().values())
    deletion = measures(convnet())["deletion"]
    deletion.update(images, labels)
    assert set(deletion.compute()) == {
        f"fills.{fill}.{score}" for fill in ("black", "blur") for score in ("area", "random_area")
    }


def test_a_place_within_a_place_is_found():
    game = PointingGame(lambda images, classes: images[:, 0], n_classes=2, poses=Poses(n=1), n_resamples=0)
    images, labels = rows()
    game.update(images, labels, regions=images[:, 0])
    assert game.compute()["untransformed.tau_0.score"] == 1


def test_a_collection_flattens_them():
    images, labels = rows()
    collection = MetricCollection(measures(convnet()), compute_groups=False)
    collection.update(images, labels)
    found = collection.compute()
    assert {"raw", "floor", "calibrated", "untransformed", "correlation"} <= {
        name.rpartition("consistency_")[2].rpartition("deletion_")[2].rpartition("accuracy_")[2]
        for name in found
    }
    assert all(isinstance(score, torch.Tensor) and score.ndim == 0 for score in found.values())


class Judged(lightning.LightningModule):
    """A classifier whose test logs what its maps are worth."""

    def __init__(self):
        super().__init__()
        self.net = convnet()
        self.measures = MetricCollection(measures(self.net), compute_groups=False)

    def test_step(self, batch, number):
        self.measures.update(*batch)

    def on_test_epoch_end(self):
        self.log_dict(self.measures.compute())


@pytest.mark.filterwarnings("ignore")  # Lightning has advice on runs as short as this
def test_lightning_logs_them(tmp_path):
    options = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "accelerator": "cpu",
    }
    trainer = lightning.Trainer(default_root_dir=tmp_path, enable_checkpointing=False, **options)
    (logged,) = trainer.test(Judged(), DataLoader(TensorDataset(*rows()), 3), verbose=False)
    collection = MetricCollection(measures(convnet()), compute_groups=False)
    for images, labels in DataLoader(TensorDataset(*rows()), 3):
        collection.update(images, labels)
    assert logged == pytest.approx(
        {name: float(score) for name, score in collection.compute().items()}, nan_ok=True
    )
