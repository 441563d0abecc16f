"""The demo trains, measures, writes a report and a picture, and says how good it is in four sentences."""

import json

import pytest
from PIL import Image
from running import run

from torchsite.data import load_dataset
from torchsite.model import SITE
from torchsite.results import Result


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
def test_demo_ends_with_four_verdicts_and_where_to_look(tmp_path, monkeypatch):
    monkeypatch.setattr("torchsite.data.load_dataset", lambda name, split: load_dataset(name, split)[:200])
    words = ["demo", "--out", tmp_path, "--epochs", 1, "--limit", 10]
    output = run(*words)
    page = (tmp_path / "report.html").read_text()
    said = [line for line in output.splitlines() if line.startswith(("Good: ", "Fair: ", "Bad: "))]
    assert len(said) == 4
    assert f"report:   file://{tmp_path / 'report.html'}" in output
    assert f"torchsite serve --model {tmp_path / 'run' / 'model'}" in output
    with Image.open(tmp_path / "explanation.png") as picture:
        assert picture.width > 300
    assert "http" not in page
    assert 'id="training"' in page
    assert Result.load(tmp_path / "demo.json").config["n_images"] == 10
    trained = (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns
    again = json.loads(run(*words, "--json"))
    assert again["report"] == str(tmp_path / "report.html")
    assert again["verdicts"] == said
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns == trained
    assert isinstance(SITE.from_pretrained(again["model"]), SITE)
