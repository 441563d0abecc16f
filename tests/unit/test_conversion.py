"""`torchsite convert`: a network in, its twin out, and how far the two agree."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from foreign_networks import network, save
from torchsite.cli import app
from torchsite.cli.networks import open_network
from torchsite.conversion import choose_statistics, compare_answers, convert, reordered
from torchsite.data import Dataset
from torchsite.errors import ConfigError, DataError
from torchsite.model import SITE
from torchsite.objective.same_answers import read_answers

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


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


def test_classes_can_stand_in_another_order():
    data = discs(4)
    turned = reordered(data, ["blue", "red"])
    assert [turned.classes[i] for i in turned.labels] == [data.classes[i] for i in data.labels]
    with pytest.raises(DataError, match="name each once"):
        reordered(data, ["blue", "green"])


def test_a_twin_of_a_network_keeps_its_answers(net, tmp_path):
    train, test, told = discs(128), discs(32, seed=2), []
    found = convert(
        net,
        train,
        test,
        minutes=5,
        folder=tmp_path / "run",
        poses="upright",
        changes={"batch_size": 16, "epochs": 6},
        tell=told.append,
    )
    assert told == [found.prepared]
    assert found.comparison["classifier"]["value"] == 1
    assert found.comparison["agreement"]["value"] >= 0.9
    assert read_answers(tmp_path / "run" / "answers.safetensors").shape == (128, 2)
    assert json.loads((tmp_path / "run" / "conversion.json").read_text())["values"] == found.comparison
    again = SITE.from_pretrained(tmp_path / "run" / "model")
    assert again.classes == ("red", "blue")
    assert {"front", "same answers", "poses"} <= {d.setting for d in found.prepared.plan.decisions}


def test_a_network_of_other_classes_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="one sub-folder for each"):
        convert(network(n_classes=5), discs(16), discs(8), folder=tmp_path)


def test_the_command_ends_with_both_accuracies_and_a_report(net, tmp_path):
    data = discs(60)
    for i, (pixels, label) in enumerate(zip(data.images, data.labels, strict=True)):
        folder = tmp_path / "photos" / data.classes[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(pixels.permute(1, 2, 0))).save(folder / f"{i}.png")
    file = save(net, tmp_path / "net.pt2", "exported for any batch")
    words = [
        "convert", file, tmp_path / "photos", "--minutes", 5, "--epochs", 2, "--out", tmp_path / "run",
        "--classes", "red,blue", "--batch-size", 16, "--poses", "upright",
    ]  # fmt: skip
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "accuracy, your network" in result.stdout
    assert "they agree on" in result.stdout
    assert "as you asked" in result.stdout
    assert "twin of a network" in (tmp_path / "run" / "report.html").read_text()
    assert SITE.from_pretrained(tmp_path / "run" / "model").config.image_shape == (3, 16, 16)


def test_a_function_of_ones_own_code_is_found_and_weights_fit(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef build():\n    return nn.Sequential(nn.Conv2d(1, 2, 3))\nnothing = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    network = open_network("mine:build")
    torch.save({name: tensor + 1 for name, tensor in network.state_dict().items()}, tmp_path / "w.pth")
    again = open_network("mine:build", tmp_path / "w.pth")
    assert torch.equal(again[0].bias * 0, network[0].bias * 0)
    with pytest.raises(ConfigError, match="expected module:function"):
        open_network("mine:bild")
    with pytest.raises(ConfigError, match="Module, got int"):
        open_network("mine:nothing")
    torch.save({"other": torch.zeros(1)}, tmp_path / "o.pth")
    with pytest.raises(ConfigError, match="does not fit"):
        open_network("mine:build", tmp_path / "o.pth")
