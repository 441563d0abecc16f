"""What the README shows is true: its code runs, its links and commands exist, its options are known."""

import re
import shlex
import shutil
from pathlib import Path

import torch
import typer
from PIL import Image

from torchsite.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
SHELL = [
    found
    for page in PAGES
    for found in re.findall(r"^    torchsite (\w+)(.*?)(?: {2,}#.*)?$", page.read_text(), flags=re.MULTILINE)
]
CODE = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_five_lines_run(tmp_path, monkeypatch, capsys):
    lines = [line for line in CODE[0].splitlines() if line]
    assert len(lines) == 5
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "docs" / "pictures" / "cat.jpg", tmp_path)
    names = {}
    exec(CODE[0], names)
    explanation = names["explanation"]
    torch.testing.assert_close(explanation.heatmaps().sum((-2, -1)), explanation.logits, rtol=1e-4, atol=1e-4)
    assert capsys.readouterr().out == "seen as cat\n"
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
    assert README.count("\n") <= 120
    places = [
        README.index(text)
        for text in ("turning.webp", "pip install", "```python", "without knowledge |", "## Two commands")
    ]
    assert places == sorted(places)
    assert README[: places[-1]].count("\n") < 60


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", README + CONTRIBUTING)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_commands_exist():
    makefile, targets = (ROOT / "Makefile").read_text(), set(re.findall(r"make ([a-z][a-z0-9-]+)", README))
    targets |= set(re.findall(r"(?:`|    )make ([a-z][a-z0-9-]+)", CONTRIBUTING))
    assert {"demo", "test", "test-all", "lint"} <= targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_command_lines_of_the_pages_can_be_understood(tmp_path, monkeypatch):
    assert len(SHELL) >= 25
    monkeypatch.chdir(tmp_path)
    for name, rest in SHELL:
        for folder in re.findall(r"runs/\w+/model", rest):  # some commands ask for a folder that is there
            Path(folder).mkdir(parents=True, exist_ok=True)
        command = typer.main.get_command(app).commands[name]
        assert command.make_context(name, shlex.split(rest), resilient_parsing=False).params
