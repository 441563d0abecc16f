"""Commands as a person types them, in this process or in one of their own."""

import subprocess
import sys

from typer.testing import CliRunner

from torchsite.cli import app

runner = CliRunner()


def run(*words):
    """What a command prints; whatever it raises comes through."""
    result = runner.invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def in_a_process(*words, **options):
    """The finished process of `torchsite WORDS`."""
    command = [sys.executable, "-c", "from torchsite.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=280, **options)
