"""What the README shows is true: its code runs, its links and commands exist, its options are known."""

import re
import shlex
from pathlib import Path

import pytest
import torch
import typer

from torchsite.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
SHELL = re.findall(r"^    torchsite (\w+)(.*?)(?: {2,}#.*)?$", README, flags=re.MULTILINE)


def quick_start():
    """The first code of the README, on a few digits and for one epoch."""
    code = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[0]
    smaller = {'"train")': '"train")[:160]', "epochs=5": "epochs=1", "limit=100": "limit=8"}
    for shown, instead in smaller.items():
        assert code.count(shown) == 1
        code = code.replace(shown, instead)
    return code


@pytest.mark.filterwarnings("default")  # Lightning has advice on runs as short as this
def test_the_quick_start_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(quick_start(), names)
    heatmaps, logits = names["explanation"].heatmaps(), names["explanation"].logits
    torch.testing.assert_close(heatmaps.sum((-2, -1)), logits, rtol=1e-4, atol=1e-4)
    assert (tmp_path / "why.png").stat().st_size > 0
    assert (tmp_path / "runs" / "digits" / "result.json").exists()


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link):
    assert (ROOT / link).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([a-z]+)", README))))
def test_commands_exist(target):
    assert f"\n{target}:" in (ROOT / "Makefile").read_text()


def test_the_readme_shows_the_command_line():
    assert len(SHELL) >= 8


@pytest.mark.parametrize(("name", "rest"), SHELL)
def test_command_lines_can_be_understood(name, rest):
    command = typer.main.get_command(app).commands[name]
    context = command.make_context(name, shlex.split(rest), resilient_parsing=False)
    assert context.params
