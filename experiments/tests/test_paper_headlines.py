"""The table of the README: numbers are those of results, scores have nulls, what is missing is left out."""

import json
import shutil

import pytest
from made_up import ROOT

from experiments.headlines import HEADER
from experiments.headlines import headline_table as table_of
from experiments.provenance import shipped_weights
from experiments.publish import fill, read_results
from torchsite.report.format import NOTHING
from torchsite.results import Result

NAMES = ("accuracy_mnist", "mnist_pointing", "accuracy_cifar10", "cifar10_consistency", "cifar10_truth")


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


SHIPPED = shipped_weights(ROOT)


def headline_table(results):
    return table_of(results, SHIPPED)


def scored(value):
    return {"value": value, "low": value - 0.01, "high": value + 0.01}


def made_up(**own):
    """A table of methods with one score each for SITE and for Grad-CAM on the black box."""
    rows = [
        {"model": "site", "method": "self_explanation", "metric": "patch_deletion", "values": own},
        {"model": "black_box", "method": "grad_cam", "metric": "patch_deletion", "values": own},
    ]
    weights = {"site": SHIPPED["cifar10"], "black_box": SHIPPED["cifar10_black_box"]}
    return Result("cifar10_truth", {"table": rows}, {"weights": weights}, 0, 1.0)


def test_a_row_says_what_its_file_says():
    table = headline_table({"cifar10_truth": made_up(correlation=scored(0.456), floor=scored(0.123))})
    heading, row = table.splitlines()[2:]
    assert heading.startswith("| **CIFAR-10**")
    assert row.split(" | ")[1:4] == ["0.46 [0.45, 0.47]", "Grad-CAM 0.46 (null 0.12)", "0.12"]


def test_without_results_there_is_no_table():
    assert headline_table({}) == ""


def rows_of(table):
    """The rows of each data set."""
    found = {}
    for line in table.splitlines()[2:]:
        if line.startswith("| **"):
            found[line] = []
        elif line.startswith("|"):
            found[next(reversed(found))].append(line.strip("| ").split(" | "))
    return found


@pytest.mark.parametrize("left_out", NAMES)
def test_a_missing_result_costs_its_cells_and_no_others(left_out, results):
    whole = rows_of(headline_table(results))
    rest = rows_of(headline_table({name: found for name, found in results.items() if name != left_out}))
    assert 0 < len(rest) <= len(whole)
    shown = {(data, row[0]): row for data, group in whole.items() for row in group}
    for data, group in rest.items():
        for row in group:
            assert all(a in (b, NOTHING) for a, b in zip(row[1:4], shown[data, row[0]][1:4], strict=True)), (
                row
            )


def test_every_score_of_the_readme_stands_beside_a_null(results):
    rows = [row for group in rows_of(headline_table(results)).values() for row in group]
    assert len(rows) >= 8
    for row in rows:
        assert row[HEADER.index("knows nothing")][0].isdigit(), row


def test_a_new_result_changes_the_readme(tmp_path):
    for name in NAMES:
        shutil.copy(ROOT / "results" / f"{name}.json", tmp_path)
    before = fill(ROOT, "README.md.j2", tmp_path)
    path = tmp_path / "accuracy_mnist.json"
    changed = json.loads(path.read_text())
    changed["values"]["site"]["accuracy"]["untransformed"]["value"] = 0.1234
    path.write_text(json.dumps(changed))
    after = fill(ROOT, "README.md.j2", tmp_path)
    assert before != after
    assert "12.3%" in after
