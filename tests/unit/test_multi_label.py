"""Several labels for a picture, from the table to the trained model: a yes or no for each, and its map."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from torchsite.cli import app
from torchsite.data import Dataset
from torchsite.data.label_tables import load_labelled, rarest, read_label_table
from torchsite.data.request import Request
from torchsite.errors import ConfigError, DataError, ShapeError
from torchsite.evaluation.answers import label_figures
from torchsite.evaluation.examine import ask, examine
from torchsite.evaluation.illustrate import illustrate
from torchsite.model import SITE
from torchsite.objective.classification import multi_label_loss, yes_weights
from torchsite.report import write_report
from torchsite.training import fit
from training_makers import PYRAMID, make_config


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))


def corners(n=80, seed=0):
    """A bright square above on the left, below on the right, both or none."""
    rng = torch.Generator().manual_seed(seed)
    multi_hot = torch.rand(n, 2, generator=rng) < 0.5
    pixels = torch.randint(0, 60, (n, 1, 16, 16), generator=rng, dtype=torch.uint8)
    pixels[multi_hot[:, 0], :, 1:7, 1:7] = 230
    pixels[multi_hot[:, 1], :, 9:15, 9:15] = 230
    return Dataset(
        pixels, torch.tensor(rarest(multi_hot)), ("above", "below"), "corners", multi_hot=multi_hot
    )


def site(**options):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        small = {"widths": (4, 8), "trunk": (4, 4)}
        return SITE(
            "pyramid", "spatial", 2, image_shape=(1, 16, 16), extractor_options=PYRAMID,
            generator_options=small, classes=("above", "below"), **options,
        )  # fmt: skip


def test_each_label_is_learnt_and_has_a_map_of_its_own(tmp_path):
    data, model = corners(), site(multi_label=True)
    terms = [{"name": "equivariance", "weight": 0.1}]
    family = {"max_rotation": 10.0, "max_shift": 0.05}
    config = make_config(epochs=25, batch_size=16, terms=terms, learning_rate=0.01, family=family)
    fit(model, data, config, validation=corners(20, 1), folder=tmp_path)
    unseen = corners(60, seed=2)
    found = label_figures(ask(model, unseen, None, 32).logits, unseen.multi_hot, unseen.classes)
    assert found["mean"]["auroc"] > 0.9
    explanation = model.explain(corners(4, seed=3))
    assert torch.equal(explanation.probabilities, explanation.logits.sigmoid())
    again = SITE.from_pretrained(tmp_path / "model")
    assert again.config.multi_label


def test_marks_go_with_their_pictures():
    data = corners(10)
    assert torch.equal(data[[3, 1]].multi_hot, data.multi_hot[[3, 1]])
    assert data.counts == tuple(data.multi_hot.sum(0).tolist())
    with pytest.raises(ShapeError, match="multi_hot"):
        Dataset(data.images, data.labels, data.classes, multi_hot=data.multi_hot[:5])


def test_what_means_nothing_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="zero_sum"):
        site(multi_label=True, zero_sum=True)
    with pytest.raises(DataError, match="multi_label=True"):
        fit(site(), corners(), make_config(terms=[]), folder=tmp_path)
    with pytest.raises(ConfigError, match="transformation"):
        fit(site(multi_label=True), corners(), make_config(), folder=tmp_path)
    with pytest.raises(ConfigError, match="label_smoothing"):
        fit(site(multi_label=True), corners(), make_config(terms=[], label_smoothing=0.1), folder=tmp_path)


def test_the_loss_is_zero_for_sure_and_right_answers_and_rare_labels_weigh_more():
    multi_hot = torch.tensor([[True, False], [False, False], [False, False], [True, True]])
    assert float(multi_label_loss((multi_hot.float() - 0.5) * 100, multi_hot)) == pytest.approx(0, abs=1e-6)
    assert yes_weights(multi_hot).tolist() == [1.0, 3.0]


def test_figures_of_each_label():
    multi_hot = torch.tensor([[True, True], [False, True], [True, True]])
    found = label_figures(torch.tensor([[2.0, 1.0], [-1.0, -1.0], [1.0, 3.0]]), multi_hot, ("a", "b"))
    assert found["labels"]["a"]["auroc"] == found["labels"]["a"]["average_precision"] == 1
    assert found["labels"]["b"]["auroc"] is None
    assert found["labels"]["b"]["sensitivity"]["value"] == pytest.approx(2 / 3)
    assert found["mean"]["auroc"] == 1


@pytest.mark.parametrize(
    "text", ["file,a,b\n1.png,1,0\n2.png,1,1\n3.png,0,0\n", "file,labels\n1.png,a\n2.png,a;b\n3.png,\n"]
)
def test_both_forms_of_a_table_say_the_same(tmp_path, text):
    (tmp_path / "labels.csv").write_text(text)
    table = read_label_table(tmp_path / "labels.csv", tmp_path)
    assert table.classes == ("a", "b")
    assert table.multi_hot.tolist() == [[True, False], [True, True], [False, False]]
    assert rarest(table.multi_hot) == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("file,a,b\n1.png,1\n", "line 2: "),
        ("file,a,b\n1.png,1,maybe\n", "line 2: "),
        ("file\n1.png\n", "labels"),
        ("file,a\n1.png,1\n", "labels"),
        ("file,a,b,split\n1.png,1,0,somewhere\n", "split"),
    ],
)
def test_wrong_tables_are_errors_that_name_the_line(tmp_path, text, said):
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=said):
        read_label_table(tmp_path / "labels.csv", tmp_path)


def test_a_column_splits_or_a_seed_does(tmp_path):
    data = corners(20)
    folder = _written(data, tmp_path)
    table = read_label_table(tmp_path / "labels.csv", tmp_path)
    halves = [load_labelled(folder, table, Request("pictures", half, size=16)) for half in ("train", "test")]
    assert sum(map(len, halves)) == 20
    for half in halves:
        rows = [int(path.stem) for path in half.paths]
        assert torch.equal(half.multi_hot, data.multi_hot[rows])


def _written(data, root):
    folder = root / "pictures"
    folder.mkdir()
    lines = ["file,above,below"]
    for i, pixels in enumerate(data.images):
        Image.fromarray(np.asarray(pixels[0])).save(folder / f"{i}.png")
        lines.append(f"{i}.png,{int(data.multi_hot[i, 0])},{int(data.multi_hot[i, 1])}")
    (root / "labels.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
def test_from_a_table_to_a_model_that_names_what_is_there(tmp_path):
    folder = _written(corners(60), tmp_path)
    words = ["train", folder, "--labels", tmp_path / "labels.csv", "--minutes", 5,
             "--out", tmp_path / "run", "--poses", "upright", "--json", "--epochs", 2,
             "--model.extractor-options", '{"widths": [4, 4, 8, 8], "common": 8}',
             "--model.generator-options", '{"widths": [4, 8], "trunk": [4, 4]}']  # fmt: skip
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert set(said["figures"]["labels"]) == {"above", "below"}
    assert said["settings"]["labels"]["chosen"] == "several"
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(
        f'id="figure-{name}"' in page for name in ("counts", "training", "answers", "curves", "examples")
    )
    assert "Label by label" in page
    assert "AUROC in poses" in page
    words = ["explain", folder / "0.png", "--model", tmp_path / "run" / "model", "--out", tmp_path / "out"]
    words = [str(word) for word in [*words, "--json"]]
    line = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert set(line["prediction"].split(", ")) <= {"above", "below", "none"}
    assert line["rather_than"] == "nothing"


def test_the_report_names_the_label_it_knows_least_and_wrong_answers(tmp_path):
    data, model = corners(40, seed=4), site(multi_label=True).eval()
    result = examine(model, data)
    assert set(result.values["curves"]) == {"above", "below"}
    assert [entry["label"] for entry in result.values["examples"]] == [0, 1]
    assert all(data.multi_hot[entry["row"], entry["label"]] for entry in result.values["examples"])
    with torch.no_grad():
        logits = model(data.images / 255)
    for entry in result.values["mistakes"]:
        assert (
            bool(data.multi_hot[entry["row"], entry["label"]])
            == entry["true"]
            != (entry["probability"] > 0.5)
        )
        assert float(logits[entry["row"], entry["label"]].sigmoid()) == pytest.approx(entry["probability"])
    shown = illustrate(model, data, result)
    sums = shown.mistakes.maps.sum((-2, -1))
    said = torch.tensor([entry["probability"] for entry in result.values["mistakes"]])
    assert torch.allclose(sums.sigmoid(), said, atol=1e-4)  # the map is the answer
    page = write_report(result, shown, tmp_path / "report.html").read_text()
    least = min(result.values["labels"], key=lambda name: result.values["labels"][name]["auroc"])
    assert f"weakest label is {least}" in page
    assert "wrongly named" in page or "missed" in page
    with pytest.raises(DataError, match="labels"):
        examine(site(), data)


def test_a_label_that_no_test_picture_has_is_said_to_be_unknown(tmp_path):
    data = corners(12)
    multi_hot = data.multi_hot.clone()
    multi_hot[:, 1] = False
    data = replace(data, multi_hot=multi_hot, labels=torch.tensor(rarest(multi_hot)))
    result = examine(site(multi_label=True), data)
    assert result.values["curves"]["below"] is None
    shown = illustrate(site(multi_label=True), data, result)
    assert "Not measured" in write_report(result, shown, tmp_path / "report.html").read_text()


def test_a_report_without_mistakes_shows_none(tmp_path):
    data, model = corners(12), site(multi_label=True)
    result = examine(model, data)
    result = replace(result, values={**result.values, "mistakes": []})
    page = write_report(result, illustrate(model, data, result), tmp_path / "report.html")
    assert "figure-examples" in page.read_text()
    assert "figure-mistakes" not in page.read_text()
