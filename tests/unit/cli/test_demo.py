"""The demo trains, measures, writes a report, and says what to do next."""

import json

import pytest
from running import run

from torchsite.data import load_dataset
from torchsite.model import SITE
from torchsite.results import Result


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
def test_demo_ends_with_the_report_and_the_command_for_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("torchsite.data.load_dataset", lambda name, split: load_dataset(name, split)[:200])
    words = ["demo", "--out", tmp_path, "--epochs", 1, "--limit", 10]
    output = run(*words)
    page = (tmp_path / "report.html").read_text()
    assert f"report:   {tmp_path / 'report.html'}" in output
    assert f"torchsite serve --model {tmp_path / 'run' / 'model'}" in output
    assert "http" not in page
    assert 'id="training"' in page
    assert Result.load(tmp_path / "demo.json").config["n_images"] == 10
    trained = (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns
    again = json.loads(run(*words, "--json"))
    assert again["report"] == str(tmp_path / "report.html")
    assert (tmp_path / "run" / "model" / "model.safetensors").stat().st_mtime_ns == trained
    assert isinstance(SITE.from_pretrained(again["model"]), SITE)
