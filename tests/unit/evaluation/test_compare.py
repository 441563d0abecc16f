"""The table of methods and measures: resumed, refused, drawn."""

import csv
import importlib
import io
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from typer import Typer
from typer.testing import CliRunner

from metric_models import Templates, convnet, gradient
from torchsite.data import Dataset
from torchsite.errors import ConfigError, NotApplicableError
from torchsite.evaluation.compare import compare
from torchsite.evaluation.comparison import MODEL, Comparison
from torchsite.metrics import METRICS, Measure, strokes
from torchsite.randomness import make_rng
from torchsite.report.comparison import draw, save_report, to_csv, to_markdown, to_rich
from torchsite.results import Result
from torchsite.transforms import TransformFamily

command = importlib.import_module("torchsite.cli.compare")
QUICK = {"metrics": ["accuracy", "self_consistency", "pointing_game"], "n_transforms": 1}


def pixels(n=12, name="mnist_sample"):
    rng = make_rng(0, "pixels")
    images = torch.randint(256, (n, 1, 12, 12), generator=rng, dtype=torch.uint8)
    return Dataset(images, torch.arange(n) % 4, tuple("abcd"), name, "test")


def templates():
    return Templates(torch.rand(4, 1, 12, 12, generator=make_rng(0)))


class Calls:
    """An explainer that counts, and may be told to crash."""

    def __init__(self, crash_after=None):
        self.n, self.crash_after = 0, crash_after

    def __call__(self, images, classes):
        self.n += 1
        if self.crash_after is not None and self.n > self.crash_after:
            raise KeyboardInterrupt
        return images[:, 0]


def test_regions_may_be_a_function_or_one_for_each_picture(tmp_path):
    """Given one by one they belong to the settings: another region is another table."""
    data, out = pixels(name="elsewhere"), tmp_path / "table.json"
    whole = {"methods": ["random"], "metrics": ["energy_pointing"], "n_transforms": 1, "batch_size": 5}
    given = strokes(data.images / 255)
    found = compare(templates(), data=data, regions=given, out=out, **whole)
    asked = compare(templates(), data=data, regions=strokes, **whole)
    assert found.cells[0].values == asked.cells[0].values
    with pytest.raises(ConfigError, match="regions"):
        compare(templates(), data=data, regions=1 - given, out=out, **whole)
    with pytest.raises(ConfigError, match=r"regions: .*12 .* 3"):
        compare(templates(), data=data, regions=given[:3], **whole)


def test_one_cell_per_method_and_measure_with_costs():
    told = []
    found = compare(
        templates(),
        data=pixels(),
        methods=["self_explanation", "random", "gradient"],
        watch=lambda *news: told.append(news),
        **QUICK,
    )
    assert found.methods == [MODEL, "self_explanation", "random", "gradient"]
    assert len(found.cells) == 1 + 3 * 2
    assert all(found.cost(method) > 0 for method in found.methods[1:])
    assert found.cost(MODEL) is None
    assert found.cell("self_explanation", "pointing_game").score("transformed.tau_0.score")["value"] <= 1
    assert told[-1][1:] == (7 * 12, 7 * 12)


def test_an_interrupted_run_continues_where_it_stopped(tmp_path):
    out, model, data = tmp_path / "table.json", templates(), pixels()
    crash = {"mine": Calls(), "other": Calls(crash_after=2)}
    with pytest.raises(KeyboardInterrupt):
        compare(model, data=data, methods=crash, out=out, **QUICK)
    saved = Comparison.load(out)
    assert {(cell.method, cell.metric) for cell in saved.cells} >= {("mine", "self_consistency")}
    again = {"mine": Calls(), "other": Calls()}
    finished = compare(model, data=data, methods=again, out=out, **QUICK)
    assert again["mine"].n == 0
    assert again["other"].n > 0
    whole = compare(model, data=data, methods={"mine": Calls(), "other": Calls()}, **QUICK)
    assert [cell.values for cell in finished.cells] == [cell.values for cell in whole.cells]
    assert Comparison.load(out).only([("mine", "accuracy")]).cells == ()


def test_a_table_with_other_settings_is_refused_or_begun_anew(tmp_path):
    out, data = tmp_path / "table.json", pixels()
    compare(templates(), data=data, methods=["random"], out=out, **QUICK)
    with pytest.raises(ConfigError, match=r"seed.*resume=False"):
        compare(templates(), data=data, methods=["random"], out=out, seed=1, **QUICK)
    with pytest.raises(ConfigError, match="weights"):
        compare(convnet(), data=data, methods=["random"], out=out, **QUICK)
    with pytest.raises(ConfigError, match="n_images"):
        compare(templates(), data=data, methods=["random"], out=out, limit=4, **QUICK)
    anew = compare(templates(), data=data, methods=["random"], out=out, seed=1, resume=False, **QUICK)
    assert Comparison.load(out).seed == anew.seed == 1


def test_changed_options_are_measured_again(tmp_path):
    out, model, data = tmp_path / "table.json", templates(), pixels()
    first, second = (
        compare(
            model,
            data=data,
            methods=["random"],
            metrics=["deletion"],
            out=out,
            metric_options={"deletion": {"fills": [fill]}},
        )
        for fill in (0.0, 0.5)
    )
    assert first.cells[0].values != second.cells[0].values


def test_a_measure_that_changed_its_meaning_is_measured_again(tmp_path):
    out = tmp_path / "table.json"
    options = {"data": pixels(), "methods": ["random"], "metrics": ["frame_control"], "out": out}
    now = compare(templates(), **options)
    assert now.cells[0].options == {"definition": 2}
    earlier = replace(now.cells[0], options={}, values={"black": "as it was"})
    now.with_cell(earlier).save(out)
    assert compare(templates(), **options).cells[0].values == now.cells[0].values
    assert len(Comparison.load(out).cells) == 1


def test_what_does_not_apply_is_a_reason_not_a_crash():
    def refuse(model, images, classes):
        raise NotApplicableError("layer 'odd' stands in the way")

    found = compare(
        convnet(),
        data=pixels(name="unknown"),
        methods={"odd": refuse, "gradient": gradient},
        metrics=["self_consistency", "pointing_game", "completeness"],
    )
    assert found.cell("odd", "completeness").reason == "layer 'odd' stands in the way"
    assert "needs the objects' regions" in found.cell("gradient", "pointing_game").reason
    assert found.cell("gradient", "completeness").values is not None
    text = to_markdown(found)
    assert "n/a" in text
    assert text.count("layer 'odd' stands in the way") == 1


def test_all_explainers_meet_the_same_poses():
    seen = {}

    def watcher(name):
        seen[name] = []

        def explain(images, classes):
            seen[name].append(images)
            return images[:, 0]

        return explain

    methods = {"first": watcher("first"), "second": watcher("second")}
    compare(templates(), data=pixels(), methods=methods, metrics=["self_consistency"], n_transforms=2)
    assert len(seen["first"]) == 3
    for one, other in zip(seen["first"], seen["second"], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"methods": ["gradeint"]}, "'gradient'"),
        ({"metrics": ["self_consistncy"]}, "'self_consistency'"),
        ({"limit": 0}, "limit"),
        ({"method_options": {"gradeint": {}}}, "'gradient'"),
    ],
)
def test_mistakes_are_named(wrong, said):
    with pytest.raises(ConfigError, match=said):
        compare(templates(), data=pixels(), **wrong)


def full():
    judge = {"prototype_recognition": {"judge": convnet()}}
    return compare(templates(), data=pixels(), methods=["self_explanation", "gradient"], metric_options=judge)


def test_every_form_of_the_report_shows_every_measure(tmp_path):
    found = full()
    assert set(found.metrics) == set(METRICS)
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(to_rich(found))
    shown = console.export_text()
    for metric in found.metrics:
        assert metric.replace("_", " ") in shown
        assert metric.replace("_", " ") in to_markdown(found)
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert {line["metric"] for line in lines} == set(found.metrics)
    values = [line for line in lines if line["figure"] == "raw"]
    assert all(float(v["low"]) <= float(v["value"]) <= float(v["high"]) for v in values)
    paths = save_report(found, tmp_path)
    assert [path.name for path in paths] == ["comparison.md", "comparison.csv", "comparison.png"]
    assert all(path.stat().st_size for path in paths)


def test_the_result_file_gives_the_comparison_back(tmp_path):
    found = full()
    path = found.save(tmp_path / "table.json")
    json.loads(path.read_text(), parse_constant=pytest.fail)
    back = Comparison.load(path)
    assert to_markdown(back) == to_markdown(found)
    assert to_csv(back) == to_csv(found)
    with pytest.raises(ConfigError, match="comparison"):
        Comparison.from_result(Result("other", {}, {}, 0, 0.0))


def test_tables_show_every_filling_of_a_measure():
    asked = {"data": pixels(), "methods": ["random"], "metrics": ["deletion", "mask_k"], "n_transforms": 1}
    both = compare(templates(), **asked)
    table, lines = to_markdown(both), to_csv(both)
    for name in ("deletion: black area", "deletion: blur area", "mask k: blur accuracy area"):
        assert f"| {name} |" in table
    assert "random,deletion,fills.blur.area," in lines
    assert draw(both).axes
    grey = compare(templates(), metric_options={"deletion": {"fills": [0.5]}}, **asked)
    assert "deletion: Colour(values=(0.5,)) area" in to_markdown(grey)


def test_a_figure_of_the_model_alone_or_of_nothing_is_drawn_too():
    only_model = compare(templates(), data=pixels(), methods=["random"], metrics=["accuracy"])
    assert draw(only_model).axes
    assert draw(Comparison(only_model.config, 0)).axes


def test_the_command_writes_and_resumes(tmp_path, monkeypatch):
    model = templates()
    model.config = SimpleNamespace(family=TransformFamily(max_rotation=180.0, reflect=True))
    monkeypatch.setattr(command, "open_model", lambda name: model)
    monkeypatch.setattr(command, "open_data", lambda name, split, model: pixels())
    app = Typer()
    app.command()(command.compare)
    arguments = ["anything", "--methods", "random, gradient", "--metrics", "self_consistency", "--limit", "6"]
    for _ in range(2):
        ran = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)], env={"COLUMNS": "120"})
        assert ran.exit_code == 0, ran.output
        assert "calibrated" in ran.output
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".md", ".csv", ".png"}
    assert "±180°, ±25 % shift, mirrored" in (tmp_path / "comparison.md").read_text()


def test_every_measure_says_what_it_shows():
    for name, kind in METRICS.items():
        assert issubclass(kind, Measure), name
        assert kind.headline, name
        assert kind.__doc__, name
    assert strokes(torch.ones(1, 3, 2, 2)).shape == (1, 2, 2)
