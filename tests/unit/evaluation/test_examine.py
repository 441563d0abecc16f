"""What a model answers, its training log, and its examination: against other implementations and by hand."""

import pytest
import torch
from torchmetrics.functional.classification import multiclass_calibration_error, multiclass_confusion_matrix

from torchsite.data import load_dataset
from torchsite.errors import DataError
from torchsite.evaluation.answers import Answers, one_of_each, wilson
from torchsite.evaluation.examine import check_data, draw_rows, examine
from torchsite.evaluation.training_log import find_log, read_log
from torchsite.metrics import Poses
from torchsite.model import SITE, BlackBox

TINY = {"widths": [4, 4, 4], "code": 8}


@pytest.fixture(scope="module")
def answers():
    rng = torch.Generator().manual_seed(0)
    return Answers(3 * torch.randn(200, 5, generator=rng), torch.randint(5, (200,), generator=rng))


def test_confusion_and_calibration_are_those_of_torchmetrics(answers):
    expected = multiclass_confusion_matrix(answers.logits, answers.labels, num_classes=5)
    assert answers.confusion() == expected.tolist()
    error = multiclass_calibration_error(
        answers.logits.double().softmax(1), answers.labels, num_classes=5, n_bins=10, norm="l1"
    )
    assert answers.calibration()["error"] == pytest.approx(float(error), abs=1e-6)


def test_bins_count_every_picture_once(answers):
    bins = answers.calibration()["bins"]
    assert sum(b["n"] for b in bins) == 200
    assert all(b["low"] <= b["confidence"] <= b["high"] for b in bins if b["n"])


def test_mistakes_are_wrong_and_the_most_confident_come_first(answers):
    found = answers.mistakes(7)
    assert not answers.right[found].any()
    confidence = answers.confidence[found]
    assert (confidence.diff() <= 0).all()
    rest = (~answers.right).nonzero()[:, 0]
    assert confidence[0] == answers.confidence[rest].max()


def test_a_wilson_interval_is_not_certain_of_a_handful():
    assert wilson(0, 0).value != wilson(0, 0).value
    low, high = wilson(5, 5)[1:]
    assert high == 1
    assert low == pytest.approx(0.5655, abs=1e-4)
    assert wilson(8, 10)[1:] == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_one_of_each_class_is_a_recognised_one_where_there_is_one():
    logits = torch.eye(3)[[0, 1, 1, 0]]
    answers = Answers(logits, torch.tensor([1, 1, 0, 0]))
    assert one_of_each(answers, 3) == [3, 1]
    assert one_of_each(Answers(logits[:1], torch.tensor([1])), 3) == [0]


def test_a_resumed_log_is_one_curve(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "metrics-1.csv").write_text("loss,step\n9,10\n8,20\n7,30\n")
    (logs / "metrics-2.csv").write_text("loss,step\n6,30\n5,40\n")
    (logs / "metrics.csv").write_text("epoch,loss,step\n0,4,40\n0,3,50\n")
    path = find_log(tmp_path / "model")
    assert read_log(path) == {"loss": [(10, 9), (20, 8), (30, 6), (40, 4), (50, 3)]}
    assert find_log(tmp_path / "other" / "model") is None


@pytest.mark.parametrize("text", ["loss\n3\n", "loss,step\nx,3\n"])
def test_a_file_that_is_no_log_is_named(tmp_path, text):
    (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(DataError, match="log"):
        read_log(tmp_path / "metrics.csv")
    with pytest.raises(DataError, match=r"metrics\.csv"):
        read_log(tmp_path / "nothing.csv")


def test_rows_are_drawn_once_and_from_the_seed():
    rows = draw_rows(100, 40, seed=3)
    assert len(set(rows.tolist())) == 40
    assert rows.tolist() == draw_rows(100, 40, seed=3).tolist()
    assert rows.tolist() != sorted(rows.tolist())
    assert sorted(draw_rows(10, None, seed=0).tolist()) == list(range(10))


def test_an_examination_finds_what_the_model_says():
    data = load_dataset("mnist_sample", "test")[:60]
    model = SITE(
        "identity", "lateral", 10, image_shape=(1, 28, 28), generator_options=TINY | {"trunk": [4, 4, 4]}
    )
    seen = []
    result = examine(
        model,
        data,
        limit=20,
        n_compared=6,
        n_transforms=1,
        methods=["self_explanation", "gradient"],
        watch=lambda label, done, total: seen.append((label, done, total)),
    )
    rows = draw_rows(60, 20, seed=0)
    images, labels = data.images[rows].float() / 255, data.labels[rows]
    right = model(images).argmax(1) == labels
    assert result.values["accuracy"]["untransformed"]["value"] == pytest.approx(float(right.double().mean()))
    posed = model(Poses(model.config.family, 1, 0).of(torch.arange(20), 0)(images)).argmax(1)
    for entry in result.values["mistakes"]["transformed"]:
        assert posed[entry["position"]] == entry["predicted"] != entry["label"]
        assert data.labels[entry["row"]] == entry["label"]
    assert result.config["n_images"] == 20
    assert {cell["method"] for cell in result.values["comparison"]["values"]["cells"]} == {
        "self_explanation",
        "gradient",
    }
    assert seen[-1][1] == seen[-1][2]


def test_data_of_another_kind_is_refused():
    data = load_dataset("mnist_sample", "test")[:10]
    small = BlackBox("identity", 3, image_shape=(1, 9, 9), encoder_options={"widths": [2, 2], "code": 4})
    with pytest.raises(DataError):
        check_data(small, data)
    few = BlackBox("identity", 3, image_shape=(1, 28, 28), encoder_options=TINY)
    with pytest.raises(DataError, match="classes"):
        check_data(few, data)
    with pytest.raises(DataError):
        check_data(BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options=TINY), data[:1])


def test_methods_of_ones_own_are_compared_by_their_names():
    data = load_dataset("mnist_sample", "test")[:8]
    model = BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options=TINY)
    own = {"mine": lambda images, classes: images[:, 0]}
    result = examine(model, data, n_compared=4, n_transforms=1, methods=own)
    assert {cell["method"] for cell in result.values["comparison"]["values"]["cells"]} == {"mine"}
