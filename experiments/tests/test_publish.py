"""Pages say what the result files say, nothing that was not run, and show only pictures that may be shown."""

import shutil

import pytest
import torch
from made_up import ROOT, notes, page, shown

from experiments.cache import save_arrays, save_result
from experiments.publish import (
    PAGES,
    draw_figures,
    draw_published,
    fill,
    fill_card,
    find_checkout,
    model_folders,
    publish,
    tables,
    with_note,
)
from experiments.registry import EXPERIMENTS
from torchsite.errors import ConfigError
from torchsite.results import Result

LOAD = {
    "requests": 1234,
    "per_second": 41.1,
    "p50_milliseconds": 150.2,
    "p99_milliseconds": 310.7,
    "failures": {"503": 2, "500": 1},
    "megabytes_before": 700.2,
    "megabytes_after": 703.9,
}


@pytest.mark.parametrize(("template", "path"), PAGES.items())
def test_the_documentation_is_what_templates_and_results_give(template, path):
    text = (ROOT / "docs" / path).read_text()
    assert text == fill(ROOT, template), "run python tools/write_docs.py"


def test_the_tables_are_what_results_give():
    given = tables(ROOT) | {"results/server.md": fill(ROOT, "server.md.j2")}
    written = {f"results/{path.name}": path.read_text() for path in (ROOT / "docs/results").glob("*.md")}
    assert written == given, "run python tools/write_docs.py"


def test_every_page_with_tables_has_its_place_in_the_site_and_on_the_page_of_results():
    site, results = ((ROOT / name).read_text() for name in ("mkdocs.yml", "docs/results.md"))
    for path in (ROOT / "docs" / "results").glob("*.md"):
        assert f"results/{path.name}" in site, path.name
        assert f"](results/{path.name})" in results, path.name


def test_the_page_of_results_is_short():
    assert len((ROOT / "docs" / "results.md").read_text().splitlines()) <= 200


@pytest.mark.parametrize("folder", model_folders(ROOT), ids=lambda folder: folder.name)
def test_the_cards_are_what_template_and_results_give(folder):
    assert (folder / "README.md").read_text() == fill_card(ROOT, folder), "run python tools/write_docs.py"


def test_every_figure_of_the_pages_is_there():
    pages = [*PAGES.values(), *(f"results/{path.name}" for path in (ROOT / "docs/results").glob("*.md"))]
    links = [
        (ROOT / "docs" / path).parent / link.partition(")")[0]
        for path in pages
        for link in (ROOT / "docs" / path).read_text().split("](")[1:]
        if ".png" in link.partition(")")[0]
    ]
    assert len(links) > 15
    assert [link for link in links if not link.is_file()] == []


def test_a_note_stands_after_the_heading():
    assert with_note("## Title\n\ntext\n\nmore", "note") == "## Title\n\nnote\n\ntext\n\nmore"
    assert with_note("## Title\n\ntext", "") == "## Title\n\ntext"


@pytest.fixture
def checkout(tmp_path):
    """The templates of this checkout, and no results yet."""
    shutil.copytree(ROOT / "docs" / "templates", tmp_path / "docs" / "templates")
    (tmp_path / "results").mkdir()
    return tmp_path


def test_a_published_result_stands_on_the_page_with_its_figure(checkout):
    made = Result(
        "mnist_explanations", {"pictures": notes("3", "5")}, {"recipe": "mnist", "weights": {}}, 0, 1.0
    )
    save_result(made, checkout / "runs" / "mnist_explanations", shown())
    written = publish(EXPERIMENTS["mnist_explanations"], checkout / "runs" / "mnist_explanations", checkout)
    names = [str(path.relative_to(checkout)) for path in written]
    assert names == [
        "results/mnist_explanations.json",
        "results/mnist_explanations.npz",
        "docs/pictures/results-mnist_explanations.png",
        "docs/results.md",
        "docs/leaderboard.md",
        "docs/metrics.md",
        "docs/scaling.md",
        "README.md",
        "docs/results/mnist_explanations.md",
    ]
    text = (checkout / "docs" / "results" / "mnist_explanations.md").read_text()
    assert "](../pictures/results-mnist_explanations.png)" in text
    assert "`torchsite reproduce mnist_explanations --publish` → `results/mnist_explanations.json`" in text


def test_pictures_of_cifar10_are_not_published(checkout):
    made = Result(
        "cifar10_explanations", {"pictures": notes("cat")}, {"recipe": "cifar10", "weights": {}}, 0, 1.0
    )
    save_result(made, checkout / "run", shown(1))
    publish(EXPERIMENTS["cifar10_explanations"], checkout / "run", checkout)
    assert [path.name for path in (checkout / "results").iterdir()] == ["cifar10_explanations.json"]
    assert not (checkout / "docs" / "pictures").exists()
    save_arrays(checkout / "results" / "cifar10_explanations.npz", shown(1))
    assert draw_published(EXPERIMENTS["cifar10_explanations"], checkout) == []


@pytest.mark.slow
def test_what_needs_no_pictures_of_cifar10_is_drawn_without_them(checkout):
    shutil.copy(ROOT / "results" / "cifar10_mask_k.json", checkout / "results")
    arrays = {name: torch.rand(3, 3, 8, 8) for name in ("masked", "moved")}
    (bare,) = draw_published(EXPERIMENTS["cifar10_mask_k"], checkout)
    alone = bare.read_bytes()
    save_arrays(checkout / "results" / "cifar10_mask_k.npz", arrays)
    (beside,) = draw_published(EXPERIMENTS["cifar10_mask_k"], checkout)
    assert alone.startswith(b"\x89PNG")
    assert beside.read_bytes() == alone
    (whole,) = draw_figures(EXPERIMENTS["cifar10_mask_k"], checkout / "results")
    assert whole.read_bytes() != alone


def test_publishing_needs_a_checkout(checkout, tmp_path_factory):
    assert find_checkout(checkout / "docs" / "templates") == checkout
    with pytest.raises(ConfigError, match="lies in none"):
        find_checkout(tmp_path_factory.mktemp("elsewhere"))


def save(folder, name, values, **config):
    Result(name, values, config, 0, 1.0).save(folder / f"{name}.json")


def fault(what, tried, runs, survived):
    return {"what": what, "tried": tried, "runs": runs, "survived": survived, "notes": [], "seconds": 1}


def test_without_a_campaign_there_is_no_page(tmp_path):
    assert page("reliability", tmp_path) == ""


def test_every_fault_and_every_reader_has_its_line(tmp_path):
    faults = {"kill_9": fault("kill -9 anywhere.", 21, 7, 7), "flipped": fault("A bit flipped.", 20, 20, 19)}
    save(tmp_path, "faults", faults, steps=30)
    text = page("reliability", tmp_path)
    assert "| kill -9 anywhere | 21 | 7 of 7 runs |" in text
    assert "| A bit flipped | 20 | 19 of 20 runs |" in text
    assert "Bad files" not in text
    target = {"inputs": 12345, "seconds": 60.2, "findings": 0, "largest memory, MB": None}
    limits = {"hang, s": 20, "memory, MB": 3000}
    save(tmp_path, "fuzz", {"targets": {"picture": target}, "findings": 0}, **limits)
    assert "| picture | 12,345 | 60 | – | 0 |" in page("reliability", tmp_path)


def test_the_tables_of_scaling_come_with_their_results(tmp_path):
    bare = page("scaling", tmp_path)
    assert "torchrun" in bare
    assert "One step, measured" not in bare
    save(
        tmp_path, "scaling", {"steps": {"reference": 100.0, "bfloat16": 50.0}, "ranks": {"1 processes": 4.0}}
    )
    seen = [{"step": i, "own, MB": 400.0, "mapped, MB": 10.0 * i} for i in range(10, 70, 10)]
    large = {
        "pictures": 200_000,
        "cache, MB": 614.4,
        "decoding, s": 60,
        "limit, MB": 500,
        "during training": seen,
    }
    save(tmp_path, "large_set", large)
    quality = {"accuracy, int8": 0.99, "accuracy, float32": 0.992, "int8 agrees with float32": 0.998}
    export = {
        "milliseconds": {"1": {"PyTorch": 2.0}, "32": {"PyTorch": 40.0}},
        "largest difference from PyTorch": 3e-5,
        "bytes": {"float32": 100, "int8": 29},
        "quality": quality,
    }
    save(tmp_path, "export", export, model="mnist", threads="1", data="mnist_sample")
    text = page("scaling", tmp_path)
    for line in (
        "| bfloat16 | 50 | 0.50 |",
        "| 1 processes | 4.0 |",
        "| 60 | 400 | 600 |",
        "with a hard limit of 500 MB",
        "| PyTorch | 2.00 | 40.00 |",
        "the same answer for 99.8%",
    ):
        assert line in text, line


def test_costs_of_training_say_what_was_missed(tmp_path):
    row = {
        "name": "explanation / black box",
        "times": "1 ms, 2 ms",
        "ratio": 1.504,
        "target": "≤ 1.3",
        "met": False,
    }
    plain = {"name": "step, 101 classes / 10", "times": "3 ms", "ratio": 3.0, "target": "", "met": None}
    save(tmp_path, "training_costs", {"rows": [row, plain]}, batch_size=64, threads=2)
    text = page("scaling", tmp_path)
    assert "| explanation / black box | 1 ms, 2 ms | 1.50 | ≤ 1.3 | missed |" in text
    assert "| step, 101 classes / 10 | 3 ms | 3.00 |  |  |" in text


def page_of(folder, rates):
    values = {"updates_per_second": rates, "load": {"mnist": LOAD}}
    Result("web", values, {"seconds": 30.0, "clients": 8}, 0, 90.0).save(folder / "web.json")
    return page("server", folder)


def test_rates_loads_and_failures_have_their_columns(tmp_path):
    text = page_of(tmp_path, {"mnist": {"alone": 23.4, "beside Grad-CAM": 14.0}})
    assert "| mnist | 23.4 | 14.0 |" in text
    assert "8 clients for 30 seconds" in text
    assert "| mnist | 1,234 | 41.1 | 150 | 311 | 3 | 700 → 704 |" in text


def test_without_a_browser_there_are_no_rates(tmp_path):
    text = page_of(tmp_path, {})
    assert "in Chromium" not in text
    assert "| mnist | 1,234 |" in text


def test_sections_stand_in_the_order_of_the_paper_and_other_results_have_none(tmp_path):
    for name in ("cifar10_mask_k", "cifar10_consistency", "baselines"):
        shutil.copy(ROOT / "results" / f"{name}.json", tmp_path)
    save(tmp_path, "other", {})
    text = page("results", tmp_path)
    places = [text.index(title) for title in ("(Table 2)", "(Table 1)", "(Figure 5)")]
    assert places == sorted(places)
    assert "CIFAR-10: self-consistency (Table 1)" in text
    assert "](../pictures/results-cifar10_mask_k.png)" in text
    assert "Figure 4" not in text
