"""How the command line behaves: exit codes, help, completion, progress, silence in pipes."""

import io
import os
import subprocess
import sys

import pytest
import typer
from PIL import Image
from rich.console import Console
from running import in_a_process, run, runner

import torchsite.cli
from torchsite.cli import app
from torchsite.cli.terminal import say_json, terminal, watching

COMMANDS = typer.main.get_command(app).commands
SILENT = ("serve",)  # it prints no results


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    output = run(name, "--help")
    assert f"torchsite {name}" in output.replace("Usage: torchsite", "")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in SILENT])
def test_every_command_that_prints_results_speaks_json(name):
    assert "--json" in [word for parameter in COMMANDS[name].params for word in parameter.opts]


@pytest.mark.parametrize(
    "words", [["explain"], ["evaluate", "mnist", "--limit", "few"], ["explian", "x.png"], ["models", "--jsn"]]
)
def test_a_command_line_that_cannot_be_understood_ends_with_2(words):
    assert runner.invoke(app, words).exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "missing.png"], "no picture at missing.png"),
        (["evaluate", "no-such-model"], "no model 'no-such-model'"),
        (["models", "--json"], ""),
    ],
)
def test_exit_codes_and_one_clear_line(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torchsite", *words])
    with pytest.raises(SystemExit) as ended:
        torchsite.cli.main()
    output = capsys.readouterr()
    assert ended.value.code == (1 if said else 0)
    assert said in output.err
    assert "Traceback" not in output.err


def test_a_file_that_cannot_be_written_is_an_error_with_a_reason(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    words = ["evaluate", "mnist", "--limit", "2", "--out", str(tmp_path / "file" / "result.json")]
    monkeypatch.setattr(sys, "argv", ["torchsite", *words])
    with pytest.raises(SystemExit) as ended:
        torchsite.cli.main()
    assert ended.value.code == 1
    assert "error:" in capsys.readouterr().err


@pytest.mark.slow
def test_a_process_of_its_own_ends_with_the_code_and_keeps_its_streams_apart(tmp_path):
    done = in_a_process("explain", "missing.png", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == "error: no picture at missing.png: expected a file or a folder"


def test_the_shell_completes_commands(tmp_path):
    environment = os.environ | {
        "_TORCHSITE_COMPLETE": "complete_bash",
        "COMP_WORDS": "torchsite re",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv = ['torchsite']; from torchsite.cli import app; app(prog_name='torchsite')"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=280)
    assert done.stdout.split() == ["report", "reproduce"]


def test_completion_is_shown_and_installed(tmp_path, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = runner.invoke(app, ["--show-completion"], prog_name="torchsite")
    assert shown.exit_code == 0
    assert "_TORCHSITE_COMPLETE=complete_bash" in shown.stdout
    installed = runner.invoke(app, ["--install-completion"], prog_name="torchsite")
    assert installed.exit_code == 0
    assert (
        "_TORCHSITE_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "torchsite.sh").read_text()
    )


def test_help_and_completion_do_not_wait_for_the_library():
    heavy = "('torch', 'lightning', 'matplotlib')"
    code = f"import sys, torchsite.cli; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "loud"), [(Terminal, True), (io.StringIO, False)])
def test_a_bar_is_drawn_for_people_only(monkeypatch, stream, loud):
    seen = stream()
    monkeypatch.setattr(sys, "stderr", seen)
    monkeypatch.setenv("TERM", "xterm")
    with watching("working") as watch:
        watch("half way", 1, 2)
    assert bool(seen.getvalue()) is loud
    with watching("working", enabled=False) as watch:
        before = len(seen.getvalue())
        watch("half way", 1, 2)
    assert len(seen.getvalue()) == before


def test_names_are_printed_as_they_are(capsys):
    terminal().print("[red]:dog: [/x] " + 30 * "long/path/")
    say_json({"name": "[bold]:cat: é" + 100 * "x"})
    first, second = capsys.readouterr().out.splitlines()
    assert first == "[red]:dog: [/x] " + 30 * "long/path/"
    assert second == '{"name": "[bold]:cat: \\u00e9' + 100 * "x" + '"}'
    assert isinstance(terminal(), Console)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("locale", [{}, ASCII], ids=["as it is", "ascii"])
def test_no_character_ends_a_command(locale, tmp_path):
    for name in (b"caf\xe9", "日本".encode()):
        folder = tmp_path / "pièces" / os.fsdecode(name)
        folder.mkdir(parents=True)
        for n in range(4):
            Image.new("RGB", (8, 8)).save(folder / f"{n}.png")
    environment = os.environ | locale | {"TORCHSITE_CACHE": str(tmp_path / "cache")}
    options = {"cwd": tmp_path, "env": environment, "errors": "replace"}
    shown = in_a_process("data", "pièces", **options)
    assert shown.returncode == 0, shown.stderr
    assert r"caf\xe9" in shown.stdout
    missing = in_a_process("explain", os.fsdecode(b"caf\xe9.png"), **options)
    assert missing.returncode == 1
    assert "no picture at" in missing.stderr
    assert "Traceback" not in missing.stderr
