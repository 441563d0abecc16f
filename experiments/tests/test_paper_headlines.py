"""The README's table: numbers are those of results, each beside its null; what is missing is left out."""

import json
import shutil
from dataclasses import replace

import pytest
from made_up import ROOT

from experiments.claims import CLAIMS, HEADLINES, headline_table
from experiments.provenance import shipped_weights
from experiments.publish import fill, read_results
from torchsite.report.format import NOTHING

SHIPPED = shipped_weights(ROOT)
NAMES = sorted({claim.result for claim in CLAIMS if claim.words in HEADLINES.values()})


@pytest.fixture(scope="module")
def results():
    return read_results(ROOT / "results")


def rows_of(results):
    """What the table shows: the words of a row, our number, the paper's, the null."""
    lines = headline_table(results, SHIPPED).splitlines()[2:]
    return {row[0]: row[1:] for row in (line.strip("| ").split(" | ") for line in lines)}


def test_claims_have_names_of_their_own_and_the_readme_has_at_most_eight():
    assert len({claim.words for claim in CLAIMS}) == len(CLAIMS)
    assert set(HEADLINES.values()) <= {claim.words for claim in CLAIMS}
    assert len(HEADLINES) <= 8


def test_a_row_says_what_its_file_says(results):
    found = results["accuracy_mnist"].values["site"]["accuracy"]["untransformed"]
    value, low, high = (f"{100 * found[name]:.1f}%" for name in ("value", "low", "high"))
    assert rows_of(results)["MNIST: accuracy"] == [f"{value} [{low}, {high}]", "98.8%", "10.0%"]


def test_every_row_has_our_number_and_a_null(results):
    rows = rows_of(results)
    assert len(rows) == len(HEADLINES)
    assert [words for words, (ours, _, null) in rows.items() if NOTHING in (ours, null)] == []


def test_without_results_there_is_no_table():
    assert headline_table({}, SHIPPED) == ""


@pytest.mark.parametrize("left_out", NAMES)
def test_a_result_that_is_missing_or_of_other_weights_costs_its_rows_and_no_others(left_out, results):
    whole = rows_of(results)
    rest = rows_of({name: found for name, found in results.items() if name != left_out})
    assert 0 < len(rest) < len(whole)
    assert rest.items() < whole.items()
    config = results[left_out].config | {"weights": {"site": "other", "black_box": "other"}}
    assert rows_of(results | {left_out: replace(results[left_out], config=config)}) == rest


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
