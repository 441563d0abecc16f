"""What is exported answers as the model does, for any number of pictures."""

import json
import sys

import pytest
import torch
from typer.testing import CliRunner

from torchsite.cli import app
from torchsite.cli.export import judge
from torchsite.data import load_dataset, to_float
from torchsite.errors import ConfigError, MissingExtraError, WeightsError
from torchsite.model import SITE, BlackBox, load
from torchsite.model import export as exporting
from torchsite.model.export import OnnxModel, annotate, export_onnx, export_program, quantise

TINY = {"widths": (4, 8), "code": 8, "trunk": (4, 4)}
PYRAMID = {"depth": 2, "widths": (4, 4, 4), "common": 4}


def coloured():
    """Features of half the picture's size: the heatmaps are enlarged."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        options = {"extractor_options": PYRAMID, "generator_options": TINY, "classes": ["ä", "b", "c"]}
        return SITE("pyramid", "lateral", 3, image_shape=(3, 20, 26), **options).train()


def pictures(n, shape, seed=0):
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


def test_onnx_gives_logits_and_heatmaps_for_any_batch(tmp_path):
    model = coloured()
    exported = export_onnx(model, tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert model.training, "the model is given back as it was"
    run = OnnxModel(exported.path)
    for n in (1, 2, 7):
        images = pictures(n, (3, 20, 26), n)
        found, explained = run(images), model.explain(images)
        torch.testing.assert_close(found["logits"], explained.logits, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found["heatmaps"], explained.heatmaps(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(found["heatmaps"].sum((-2, -1)), found["logits"], rtol=1e-4, atol=1e-4)
    assert json.loads(run.metadata["classes"]) == ["ä", "b", "c"]
    assert float(run.metadata["max_difference"]) == exported.max_difference < 1e-4


@pytest.mark.slow
def test_onnx_gives_the_parts_that_are_asked_for(tmp_path):
    model, images = coloured(), pictures(3, (3, 20, 26))
    outputs = ("logits", "evidence", "prototypes")
    found = OnnxModel(export_onnx(model, tmp_path / "parts.onnx", outputs).path)(images)
    explained = model.explain(images)
    assert tuple(found) == outputs
    torch.testing.assert_close(found["evidence"], explained.evidence, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found["prototypes"], explained.prototypes, rtol=1e-4, atol=1e-5)
    with pytest.raises(ConfigError, match="'prototypes'"):
        export_onnx(model, tmp_path / "parts.onnx", ("logits", "prototype"))


def test_a_program_of_torch_runs_without_torchsite(tmp_path):
    model = coloured()
    exported = export_program(model, tmp_path / "model.pt2")
    about = {"about.json": ""}
    program = torch.export.load(exported.path, extra_files=about).module()
    assert json.loads(about["about.json"])["image_shape"] == "[3, 20, 26]"
    images = pictures(4, (3, 20, 26))
    logits, heatmaps = program(images)
    torch.testing.assert_close(logits, model.explain(images).logits)
    torch.testing.assert_close(heatmaps, model.explain(images).heatmaps())


def test_a_black_box_has_logits_only(tmp_path):
    model = BlackBox("identity", 10, image_shape=(1, 28, 28), encoder_options={"widths": (4, 8), "code": 8})
    found = OnnxModel(export_onnx(model, tmp_path / "box.onnx").path)(pictures(3, (1, 28, 28)))
    assert list(found) == ["logits"]
    torch.testing.assert_close(found["logits"], model.eval()(pictures(3, (1, 28, 28))), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_int8_is_small_and_nearly_as_good(tmp_path):
    data = load_dataset("mnist_sample", "test")[::10]
    whole = export_onnx(load("mnist"), tmp_path / "mnist.onnx").path
    small = quantise(whole, tmp_path / "mnist.int8.onnx", to_float(data.images[:64]))
    assert small.stat().st_size < 0.5 * whole.stat().st_size
    figures = judge(whole, small, data)
    assert figures["accuracy, float32"] > 0.95
    assert figures["accuracy, int8"] > figures["accuracy, float32"] - 0.05
    annotate(small, figures)
    metadata = OnnxModel(small).metadata
    assert float(metadata["accuracy, int8"]) == figures["accuracy, int8"]
    found = OnnxModel(small)(to_float(data.images[:8]))
    torch.testing.assert_close(found["heatmaps"].sum((-2, -1)), found["logits"], rtol=1e-3, atol=1e-3)


def test_an_export_that_answers_otherwise_is_refused(tmp_path, monkeypatch):
    model = coloured()
    with monkeypatch.context() as patch:
        patch.setattr(exporting, "TOLERANCE", -1.0)
        with pytest.raises(WeightsError, match="logits"):
            export_program(model, tmp_path / "model.pt2")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="float32"):
        export_program(coloured().double(), tmp_path / "model.pt2")
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    with pytest.raises(WeightsError, match="ONNX"):
        OnnxModel(tmp_path / "broken.onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"torchsite\[export\]"):
        OnnxModel(tmp_path / "broken.onnx")


def test_the_command_states_the_difference(tmp_path):
    said = CliRunner().invoke(
        app, ["export", "mnist", "--to", "torch-export", "--out", str(tmp_path / "m.pt2")]
    )
    assert said.exit_code == 0, said.output
    assert "differs from the model by at most" in said.output
    refused = CliRunner().invoke(app, ["export", "mnist", "--to", "torch-export", "--int8"])
    assert isinstance(refused.exception, ConfigError)
