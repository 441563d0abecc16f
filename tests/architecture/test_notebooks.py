"""The notebooks run, in order and on few pictures, and are what Jupyter can read."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "notebooks.py"))
NOTEBOOKS = sorted(TOOL["FOLDER"].glob("*.py"))

# What makes a notebook a matter of seconds; each must be found in it, once.
SMALLER = {
    "compare_explainers_honestly": {
        '"test")[:24]': '"test")[:4]',
        "methods=CONTROL_MAPS": 'methods={"edges": CONTROL_MAPS["edges"]}',
    },
    "explain_a_picture": {},
    "find_a_shortcut": {},
    "measure_your_own_explainer": {'"test")[:30]': '"test")[:5]'},
    "train_on_your_folder": {"PER_CLASS = 80": "PER_CLASS = 20", "epochs=12": "epochs=1"},
}


@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    code = path.read_text()
    for shown, instead in SMALLER[path.stem].items():
        assert code.count(shown) == 1, shown
        code = code.replace(shown, instead)
    cells = TOOL["run_cells"](TOOL["read_cells"](code), tmp_path)
    assert any(cell.said for cell in cells)
    page, pictures = TOOL["to_markdown"](cells, path.stem)
    assert page.startswith("# ")
    assert all(data.startswith(b"\x89PNG") and f"]({name})" in page for name, data in pictures.items())
    kept = json.loads(TOOL["to_ipynb"](cells))
    assert [cell["cell_type"] for cell in kept["cells"]] == [
        "code" if c.is_code else "markdown" for c in cells
    ]
    assert sum(len(cell.get("outputs", [])) for cell in kept["cells"]) >= 2


def test_there_are_five():
    assert {path.stem for path in NOTEBOOKS} == set(SMALLER)
    assert len(NOTEBOOKS) == 5


def cells_of(text, folder):
    return TOOL["run_cells"](TOOL["read_cells"](text), folder)


def test_cells_share_names_and_say_what_their_last_line_gives(tmp_path):
    text = "# %% [markdown]\n# # Title\n#\n# words\n\n# %%\na = 2\nprint('said')\na + 1\n\n"
    text += "# %%\na * 10\n\n# %%\nb = None\nb\n"
    title, first, second, third = cells_of(text, tmp_path)
    assert title.text == "# Title\n\nwords"
    assert first.said == "said\n3\n"
    assert second.said == "20\n"
    assert third.said == ""


def test_a_figure_becomes_a_picture_and_files_stay_in_the_folder(tmp_path):
    text = (
        "# %%\nfrom matplotlib.figure import Figure\nopen('here.txt', 'w').close()\nFigure(figsize=(1, 1))\n"
    )
    (cell,) = cells_of(text, tmp_path)
    assert cell.figure.startswith(b"\x89PNG")
    assert (tmp_path / "here.txt").exists()
    assert not Path("here.txt").exists()


def test_a_cell_that_fails_fails_the_notebook(tmp_path):
    with pytest.raises(ZeroDivisionError):
        cells_of("# %%\n1 / 0\n", tmp_path)
