"""What the README shows is true: its code runs, its links and commands exist, its options are known."""

import re
import shlex
from pathlib import Path

import pytest
import torch
import typer
from PIL import Image

from torchsite.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SHELL = re.findall(r"^    torchsite (\w+)(.*?)(?: {2,}#.*)?$", README, flags=re.MULTILINE)


CODE = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_five_lines_run(tmp_path, monkeypatch, capsys):
    lines = [line for line in CODE[0].splitlines() if line]
    assert len(lines) == 5
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(CODE[0], names)
    explanation = names["explanation"]
    torch.testing.assert_close(explanation.heatmaps().sum((-2, -1)), explanation.logits, rtol=1e-4, atol=1e-4)
    assert capsys.readouterr().out
    assert (tmp_path / "why.png").stat().st_size > 0


def test_the_film_moves_and_is_small():
    path = ROOT / "docs" / "pictures" / "turning.webp"
    assert f"](docs/pictures/{path.name})" in README
    assert path.stat().st_size <= 1_500_000
    with Image.open(path) as film:
        assert film.n_frames >= 20
        first = film.convert("RGB").tobytes()
        film.seek(film.n_frames // 4)
        assert film.convert("RGB").tobytes() != first


def test_a_newcomer_finds_all_in_the_first_minute():
    places = [
        README.index(text) for text in ("turning.webp", "knows nothing |", "## Two commands", "## Five lines")
    ]
    assert places == sorted(places)
    assert README[: places[-1]].count("\n") < 60


def training_code():
    """The second code of the README, on a few digits and for one epoch."""
    code = CODE[1]
    smaller = {'"train")': '"train")[:160]', "epochs=5": "epochs=1", "limit=100": "limit=8"}
    for shown, instead in smaller.items():
        assert code.count(shown) == 1
        code = code.replace(shown, instead)
    return code


@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
def test_the_training_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(training_code(), names)
    heatmaps, logits = names["explanation"].heatmaps(), names["explanation"].logits
    torch.testing.assert_close(heatmaps.sum((-2, -1)), logits, rtol=1e-4, atol=1e-4)
    assert (tmp_path / "why.png").stat().st_size > 0
    assert (tmp_path / "runs" / "digits" / "result.json").exists()


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", README + CONTRIBUTING)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_exist():
    makefile, targets = (ROOT / "Makefile").read_text(), set(re.findall(r"make ([a-z][a-z0-9-]+)", README))
    targets |= set(re.findall(r"(?:`|    )make ([a-z][a-z0-9-]+)", CONTRIBUTING))
    assert {"demo", "test", "test-all", "lint"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_readme_shows_the_command_line():
    assert len(SHELL) >= 8


def test_command_lines_can_be_understood():
    for name, rest in SHELL:
        command = typer.main.get_command(app).commands[name]
        assert command.make_context(name, shlex.split(rest), resilient_parsing=False).params
