"""`ts.convert`: a network in, its twin out, and how far the two agree."""

import json

import pytest
import torch
from torch import nn

import torchsite as ts
from torchsite.autotrain.conversion import choose_statistics, compare_answers, convert
from torchsite.data import Dataset
from torchsite.errors import ConfigError
from torchsite.model import SITE, ClassifierFront
from torchsite.objective.same_answers import read_answers

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHAPE = (3, 16, 16)


class Residual(nn.Module):
    """A stem, a block whose sum works in place, a second stage, a head."""

    def __init__(self, n_classes=2):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(inplace=True))
        self.conv, self.norm = nn.Conv2d(6, 6, 3, 1, 1), nn.BatchNorm2d(6)
        self.last = nn.Conv2d(6, 8, 3, 2, 1)
        self.relu, self.pool = nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, n_classes)

    def forward(self, images):
        maps = self.stem(images)
        added = self.norm(self.conv(maps))
        added += maps
        return self.head(torch.flatten(self.pool(self.relu(self.last(self.relu(added)))), 1))


def network(n_classes=2):
    """With statistics of its own, ready to answer."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = Residual(n_classes)
        for _ in range(3):
            net(torch.randn(8, *SHAPE))
    return net.eval()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))


def discs(n, seed=0):
    """Red and blue squares on noise."""
    rng = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 80, (n, 3, 16, 16), generator=rng, dtype=torch.uint8)
    labels = torch.arange(n) % 2
    pixels[:, 0, 4:12, 4:12] = torch.where(labels == 0, 220, 40).to(torch.uint8)[:, None, None]
    pixels[:, 2, 4:12, 4:12] = torch.where(labels == 0, 40, 220).to(torch.uint8)[:, None, None]
    return Dataset(pixels, labels, ("red", "blue"), "discs")


@pytest.fixture(scope="module")
def net():
    """A network that has learnt the discs, normalised as ImageNet's are."""
    model, data = network(), discs(64)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    images = (data.images / 255 - mean) / std
    optimiser = torch.optim.Adam([*model.head.parameters(), *model.last.parameters()], lr=0.02)
    for _ in range(40):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(images), data.labels).backward()
        optimiser.step()
    return model.eval()


def test_the_normalisation_is_the_one_with_which_it_names_most(net):
    _statistics, decision = choose_statistics(net, discs(64, seed=1), None)
    assert "names 100% of 64" in decision.why
    given, asked = choose_statistics(net, discs(8), (MEAN, STD))
    assert given == (MEAN, STD)
    assert asked.why == "as you asked"


def test_the_four_kinds_of_pictures_add_up():
    data = discs(6)
    theirs, ours = torch.eye(2)[data.labels], torch.eye(2)[[0, 1, 0, 1, 1, 0]]
    found = compare_answers(theirs, ours, data)
    kinds = ("both_right", "only_classifier_right", "only_twin_right", "both_wrong")
    assert [found[kind] for kind in kinds] == [4, 2, 0, 0]
    assert found["agreement"]["value"] == pytest.approx(4 / 6)


def test_a_twin_of_a_network_keeps_its_answers(net, tmp_path):
    train, test = discs(128), discs(32, seed=2)
    found = convert(
        net,
        train,
        test,
        minutes=5,
        folder=tmp_path / "run",
        poses="upright",
        changes={"batch_size": 16, "epochs": 6},
    )
    assert found.comparison["classifier"]["value"] == 1
    assert found.comparison["agreement"]["value"] >= 0.9
    assert read_answers(tmp_path / "run" / "answers.safetensors").shape == (128, 2)
    assert json.loads((tmp_path / "run" / "conversion.json").read_text())["values"] == found.comparison
    again = SITE.from_pretrained(tmp_path / "run" / "model", feature_extractor=ClassifierFront(net, SHAPE))
    assert again.classes == ("red", "blue")
    assert {"front", "same answers", "poses"} <= {d.setting for d in found.prepared.plan.decisions}


def test_a_network_of_other_classes_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="5"):
        convert(network(n_classes=5), discs(16), discs(8), folder=tmp_path)


def test_files_of_networks_are_not_read(tmp_path):
    """Reading TorchScript runs the code in it, so there is no way in for files."""
    with pytest.raises(ConfigError, match="PosixPath"):
        convert(tmp_path / "net.pt", discs(16), discs(8), folder=tmp_path)
    assert not hasattr(SITE, "from_program")
    with pytest.raises(ConfigError, match="feature extractor"):
        SITE("program", "spatial", 2, image_shape=SHAPE)
    assert ts.convert is convert
