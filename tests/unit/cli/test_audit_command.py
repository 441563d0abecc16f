"""`torchsite audit`: a page, the numbers beside it, sentences for people and JSON for scripts."""

import json

import pytest
from running import run

from torchsite.data import load_dataset
from torchsite.errors import DataError
from torchsite.results import Result


def test_audit_writes_a_page_and_its_numbers(model_folder, tmp_path):
    boxes, page = tmp_path / "boxes.json", tmp_path / "audit.html"
    boxes.write_text(
        json.dumps({str(row): [[0, 0, 7, 7]] for row in range(len(load_dataset("mnist_sample", "test")))})
    )
    words = ["audit", model_folder, "--limit", 8, "--out", page, "--regions", boxes]
    said = run(*words)
    found = Result.load(tmp_path / "audit.json")
    assert {group["kind"] for group in found.values["groups"]} >= {"regions"}
    assert "The regions given" in said
    assert page.read_text().count("<svg") == 3


def test_audit_by_several_methods_speaks_json(black_box_folder, tmp_path):
    words = ["audit", black_box_folder, "--limit", 8, "--out", tmp_path / "audit.html", "--json"]
    said = json.loads(run(*words, "--methods", "gradient,random"))
    assert [one["config"]["method"] for one in said["results"]] == ["gradient", "random"]
    assert said["verdicts"]


def test_bad_regions_are_an_error(model_folder, tmp_path):
    with pytest.raises(DataError):
        run("audit", model_folder, "--out", tmp_path / "audit.html", "--regions", tmp_path / "none.json")
