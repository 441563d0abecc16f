"""The command: it says where the page is, serves it, and ends when told to."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner
from web_makers import digits

from torchsite.cli import app
from torchsite.errors import ConfigError
from torchsite.web.server import address, bound


@contextmanager
def started(*words):
    """The command in a process of its own, and the address it names; it does not outlive the test."""
    code = "from torchsite.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = (re.search(r"http://\S+", line) for line in process.stdout)
            yield process, next(found[0] for found in lines if found)
        finally:
            process.kill()


def get(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        return response.read()


def test_serve_answers_and_ends_cleanly(tmp_path):
    digits().save_pretrained(tmp_path / "mine")
    with started("--model", str(tmp_path / "mine"), "--threads", "1") as (process, url):
        assert url.startswith("http://127.0.0.1:")
        assert "mine" in [model["name"] for model in json.loads(get(f"{url}/api/models"))]
        assert b"Does the explanation" in get(url)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(60) == 0
    assert "ended" in rest


def test_a_taken_port_is_an_error_that_says_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="--port"):
            bound("127.0.0.1", port)


def test_an_address_that_is_none_is_an_error():
    with pytest.raises(ConfigError, match="port"):
        bound("no.such.host.invalid", 0)


def test_the_address_can_be_typed_into_a_browser():
    with bound("127.0.0.1", 0) as listener:
        assert address(listener, "127.0.0.1") == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert address(listener, "::1").startswith("http://[::1]:")


def test_help_has_an_example():
    result = CliRunner().invoke(app, ["serve", "--help"])
    assert result.exit_code == 0
    assert "torchsite serve --model" in result.output
