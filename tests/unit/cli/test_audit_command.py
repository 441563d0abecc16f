"""`torchsite audit`: a page, the numbers beside it, sentences for people and JSON for scripts."""

import json

import pytest
from running import run

from torchsite.data import load_dataset
from torchsite.errors import ConfigError, DataError
from torchsite.evaluation.audit_ignored import with_regions
from torchsite.model import SITE
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


@pytest.fixture(scope="module")
def audited(model_folder, tmp_path_factory):
    """The numbers of an audit of a tiny model, and one of its groups of pieces."""
    page = tmp_path_factory.mktemp("audit") / "audit.html"
    run("audit", model_folder, "--limit", 8, "--out", page)
    numbers = page.with_suffix(".json")
    groups = Result.load(numbers).values["groups"]
    return numbers, next(group for group in groups if group["kind"] == "content")


def test_a_group_of_an_audit_is_found_in_the_pictures_of_a_training(audited):
    numbers, group = audited
    data = load_dataset("mnist_sample", "train")[:60]
    regions = with_regions(data, [f"{numbers}:{group['number']}"]).regions
    own = data.labels == data.classes.index(group["class"])
    assert regions[own].any()
    assert not regions[~own].any()


def test_groups_that_are_not_there_are_an_error(audited, model_folder, black_box_folder, tmp_path):
    numbers, _ = audited
    data = load_dataset("mnist_sample", "train")[:60]

    def changed(name, text, new):
        path = tmp_path / f"{name}.json"
        path.write_text(numbers.read_text().replace(text, new))
        return path

    for path, number in (
        (numbers, 9999),
        (tmp_path / "none.json", 1),
        (model_folder / "config.json", 1),
        (changed("moved", str(model_folder), str(tmp_path / "gone")), 1),
        (changed("other", str(model_folder), str(black_box_folder)), 1),
        (changed("name", '"audit"', '"training"'), 1),
    ):
        with pytest.raises(ConfigError):
            with_regions(data, [f"{path}:{number}"])


TINY = [
    "--epochs",
    1,
    "--limit",
    200,
    "--model.generator-options",
    '{"widths": [4, 4, 4], "code": 8, "trunk": [4, 4, 4]}',
]


def test_training_ignores_regions_and_groups(audited, tmp_path):
    numbers, group = audited
    boxes = tmp_path / "boxes.json"
    boxes.write_text(json.dumps({str(row): [[0, 0, 7, 7]] for row in range(100)}))
    words = ["--ignore", boxes, "--ignore-group", f"{numbers}:{group['number']}"]
    run("train", "mnist_sample", "--out", tmp_path / "run", *TINY, *words)
    begun = json.loads((tmp_path / "run" / "run.json").read_text())
    assert begun["training"]["terms"][-1]["name"] == "ignored_regions"
    assert "ignored_regions" in (tmp_path / "run" / "logs" / "metrics.csv").read_text()
    assert SITE.from_pretrained(tmp_path / "run" / "model")


def test_bad_regions_are_an_error(model_folder, tmp_path):
    with pytest.raises(DataError):
        run("audit", model_folder, "--out", tmp_path / "audit.html", "--regions", tmp_path / "none.json")
