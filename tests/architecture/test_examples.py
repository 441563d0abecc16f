"""The examples are short, they run, and the pages show the very files."""

import re
import runpy
from pathlib import Path

import pytest
import torch
from PIL import Image

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TOOL = runpy.run_path(str(ROOT / "tools" / "show_examples.py"))


def quick_ones(paths):
    """As parameters: one for every run, the others for the whole one."""
    slow = pytest.mark.slow
    return [p if p.stem == "explain_a_picture" else pytest.param(p, marks=slow) for p in paths]


# What makes an example a matter of seconds; each must be found in it, once.
SMALLER = {
    "compare_methods": {"limit=100": "limit=4"},
    "explain_a_picture": {},
    "export_a_model": {},
    "measure_a_captum_method": {"[:64]": "[:6]"},
    "measure_with_quantus": {},
    "train_on_a_folder": {
        "epochs=30, batch_size=32": "epochs=1, batch_size=4",
        "size=64": "size=16",
        "(3, 64, 64)": "(3, 16, 16)",
    },
    "twin_of_a_classifier": {
        'load_dataset("mnist_sample")': 'load_dataset("mnist_sample")[:140]',
        "(200, 50)": "(3, 50)",
        "epochs=8": "epochs=1, batch_size=40",
    },
    "your_own_extractor": {
        'load_dataset("mnist_sample")': 'load_dataset("mnist_sample")[:140]',
        "epochs=5": "epochs=1, batch_size=40",
    },
}


def photos(folder):
    """Two classes of ten small pictures: bright above, bright below."""
    rng = torch.Generator().manual_seed(0)
    for label, rows in (("above", slice(0, 10)), ("below", slice(10, 20))):
        (folder / label).mkdir(parents=True)
        for number in range(10):
            pixels = torch.randint(0, 60, (20, 20, 3), generator=rng, dtype=torch.uint8)
            pixels[rows] += 150
            Image.fromarray(pixels.numpy()).save(folder / label / f"{number}.png")


@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
@pytest.mark.parametrize("path", quick_ones(EXAMPLES), ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    if path.stem == "export_a_model":
        pytest.importorskip("onnxruntime", reason="the extra `export` is not installed")
        pytest.importorskip("onnxscript", reason="the extra `export` is not installed")
    if path.stem == "measure_with_quantus":
        pytest.importorskip("quantus", reason="Quantus is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHSITE_CACHE", str(tmp_path / "cache"))
    photos(tmp_path / "photos")
    code = path.read_text()
    for shown, instead in SMALLER[path.stem].items():
        assert code.count(shown) == 1, shown
        code = code.replace(shown, instead)
    exec(compile(code, path, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_there_are_eight_and_none_is_longer_than_fifteen_lines():
    assert len(EXAMPLES) == 8
    assert {path.stem for path in EXAMPLES} == set(SMALLER)
    for path in EXAMPLES:
        assert len(path.read_text().splitlines()) <= 15, path.name
        assert path.read_text().startswith('"""')


@pytest.mark.parametrize("page", TOOL["PAGES"])
def test_pages_show_the_very_files(page):
    text = (ROOT / page).read_text()
    assert re.findall(r"<!-- examples/", text)
    assert TOOL["filled"](text) == text, "run: python tools/show_examples.py"


def test_all_examples_are_shown():
    text = "".join((ROOT / page).read_text() for page in TOOL["PAGES"])
    assert all(f"<!-- examples/{path.name} -->" in text for path in EXAMPLES)
