"""Every block of docs/extending.md is short and runs; a table of one's own is run and written about."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from experiments.section import Pictures
from torchsite.objective import Term

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)$(.+?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
BLOCKS = {
    title: block
    for title, body in SECTIONS.items()
    for block in re.findall(r"```python\n(.+?)```", body, flags=re.DOTALL)
}


def written(block):
    """Lines of code: imports and blank lines are given."""
    return [line for line in block.splitlines() if line and not line.startswith(("import ", "from "))]


def run(block):
    """The names that a block defines, and what it printed."""
    names, printed = {"__name__": "extending"}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "docs/extending.md", "exec"), names)
    return names, printed.getvalue()


def test_everything_that_people_add_has_a_block():
    assert len(SECTIONS) == len(BLOCKS) == 6


@pytest.mark.parametrize("title", BLOCKS)
def test_a_block_is_short_and_runs(title, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(written(BLOCKS[title])) < 20
    try:
        run(BLOCKS[title])
    finally:
        Term.tags.pop("sparse", None)  # the page's term is known to this test alone


def test_the_method_is_measured_and_the_metric_is_a_share(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "x ⊙ gradient" in run(BLOCKS["A method"])[1]
    share = run(BLOCKS["A metric"])[0]["measure"].result()
    assert 0 < share.low <= share.value <= share.high < 1


def test_the_backbone_learns_at_two_rates():
    model = run(BLOCKS["A backbone of your own"])[0]["model"]
    groups = model.feature_extractor.parameter_groups()
    assert [group.learning_rate_factor for group in groups] == [0.1, 1.0]


def test_the_table_is_run_and_written(tmp_path):
    study = run(BLOCKS["A table or figure"])[0]["STUDY"]
    result = study.run("", tmp_path, quick=True)
    assert (tmp_path / "my_table.json").is_file()
    value = result.values["lines"][0]["untransformed"]["value"]
    assert f"| {value:.3f} |" in study.section(result, Pictures())
