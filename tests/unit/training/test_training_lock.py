"""Two runs never mix in one folder."""

import os
import platform
import re
import signal
import subprocess
import sys

import pytest

from torchsite.errors import ConfigError
from torchsite.training import Callback
from torchsite.training.run_folder import locked
from training_makers import run

HOLD = """
import sys, time
from pathlib import Path
from torchsite.training.run_folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(100)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder."""
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_run_is_refused_until_the_first_is_killed(holder, tmp_path):
    for resume in (False, True):
        with pytest.raises(ConfigError, match=f"process {holder.pid} on {re.escape(platform.node())}"):
            run(tmp_path, resume=resume)
        assert not (tmp_path / "run.json").exists(), "nothing was written"
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    run(tmp_path, epochs=1)


class Second(Callback):
    """Begins a second run in the folder of the first, before its first step."""

    def __init__(self, folder):
        self.folder = folder

    def started(self, training):
        with pytest.raises(ConfigError, match=f"process {os.getpid()}"):
            run(self.folder, epochs=1)


def test_a_folder_is_held_until_its_run_ends_however_it_ends(tmp_path):
    run(tmp_path, callbacks=[Second(tmp_path)], epochs=1)
    with pytest.raises(ConfigError, match="resume=True"):
        run(tmp_path, epochs=1)
    with locked(tmp_path):
        pass
