"""`evaluate`, `report`, `compare`, `reproduce`, `data`, `models`: words for people, JSON for scripts."""

import json
import shutil

import pytest
from running import run

from experiments.publish import PAGES
from experiments.registry import EXPERIMENTS, Experiment
from torchsite.errors import ConfigError, NotApplicableError
from torchsite.evaluation.comparison import Comparison
from torchsite.results import Result


def test_evaluate_writes_a_result_file_and_prints_it_as_json(model_folder, tmp_path):
    words = ["evaluate", model_folder, "--limit", 20, "--out", tmp_path / "result.json"]
    assert "self-consistency, floor" in run(*words)
    values = Result.load(tmp_path / "result.json").values
    assert values["completeness"]["worst"] <= 1e-4
    assert json.loads(run(*words, "--json"))["values"] == values


def test_compare_prints_a_table_or_json(model_folder, tmp_path):
    words = ["compare", model_folder, "--methods", "self_explanation, gradient", "--limit", 4]
    words += ["--metrics", "completeness", "--out", tmp_path]
    assert "completeness" in run(*words)
    assert (tmp_path / "comparison.md").exists()
    found = Comparison.from_result(Result(**json.loads(run(*words, "--json"))))
    assert found.methods == ["self_explanation", "gradient"]


@pytest.mark.slow
def test_report_writes_one_page(model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "run" / "model")
    (tmp_path / "run" / "logs").mkdir()
    (tmp_path / "run" / "logs" / "metrics.csv").write_text("loss,step\n3,1\n2,2\n")
    (tmp_path / "run" / "run.json").write_text(json.dumps({"data": {"name": "mnist_sample"}}))
    page = tmp_path / "page.html"
    words = ["report", tmp_path / "run" / "model", "--out", page, "--limit", 8]
    found = json.loads(run(*words, "--methods", "", "--json"))
    assert found["report"] == str(page)
    assert page.read_text().count("<svg") > 5
    values = found["result"]["values"]
    assert values["training"] == {"loss": [[1, 3.0], [2, 2.0]]}
    assert sum(values["data"]["training"]["counts"]) == 5000
    assert "comparison" not in values


def test_reproduce_lists_and_refuses():
    assert "food10" in run("reproduce")
    assert "food10" in json.loads(run("reproduce", "--json"))
    with pytest.raises(ConfigError, match="'mnist'"):
        run("reproduce", "mnst")


def test_reproduce_all_plans_goes_on_and_names_what_failed(tmp_path, monkeypatch):
    ran = []

    def run_one(experiment, folder, **options):
        if experiment.name == "baselines":
            raise ConfigError("needs another library")
        ran.append(experiment.name)
        made = Result(experiment.result_name, {}, {}, 0, 1.0)
        made.save(folder / f"{experiment.result_name}.json")
        return made

    monkeypatch.setattr(Experiment, "run", run_one)
    monkeypatch.setattr(Experiment, "figures", lambda *_: {})
    Result("food10", {}, {}, 0, 1.0).save(tmp_path / "food10" / "food10.json")
    with pytest.raises(NotApplicableError, match=": baselines"):
        run("reproduce", "all", "--out", tmp_path)
    assert set(ran) == set(EXPERIMENTS) - {"food10", "baselines"}
    assert ran.index("cifar10") < ran.index("cifar10_truth")
    with pytest.raises(NotApplicableError):
        run("reproduce", "all", "--out", tmp_path)
    with pytest.raises(ConfigError):
        run("reproduce", "all", "--quick")


def test_data_and_models_tell_what_there_is():
    assert "mnist_sample" in run("data")
    assert "5,000" in run("data", "mnist_sample")
    assert "mnist_sample" in json.loads(run("data", "--json"))
    described = json.loads(run("data", "mnist_sample", "--split", "test", "--json"))
    assert described["n"] == sum(described["classes"].values()) == 1000
    assert "kind" in run("models")
    assert json.loads(run("models", "--json"))["mnist"]["image_shape"] == [1, 28, 28]


def test_reproduce_publishes_whole_runs_into_a_checkout(tmp_path, monkeypatch):
    made = Result("baselines", {"table": []}, {"weights": {}}, 0, 1.0)

    def finished(experiment, folder, **options):
        made.save(folder / "baselines.json")
        return made

    monkeypatch.setattr(Experiment, "run", finished)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError):
        run("reproduce", "baselines", "--publish")
    with pytest.raises(ConfigError, match="--quick"):
        run("reproduce", "baselines", "--publish", "--quick")
    (tmp_path / "results").mkdir()
    (tmp_path / "docs" / "templates").mkdir(parents=True)
    for template in PAGES:
        (tmp_path / "docs" / "templates" / template).write_text("{{ pages }}")
    said = run("reproduce", "baselines", "--publish")
    assert f"published: {tmp_path / 'results' / 'baselines.json'}" in said
    assert Result.load(tmp_path / "runs" / "baselines" / "baselines.json") == made
    assert Result.load(tmp_path / "results" / "baselines.json") == made
    assert "Classical models beside SITE" in (tmp_path / "docs" / "results" / "baselines.md").read_text()
