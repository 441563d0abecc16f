"""Two runs never mix in one folder."""

import os
import platform
import signal
import subprocess
import sys

import pytest

from torchsite.errors import ConfigError
from torchsite.training import Callback, fit
from torchsite.training.run_folder import locked
from training_makers import digits, make_config, make_site

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


def run(folder, **options):
    return fit(
        make_site(), digits(), make_config(epochs=1), validation=digits(20, "test"), folder=folder, **options
    )


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_is_refused_and_told_whose_the_folder_is(resume, holder, tmp_path):
    with pytest.raises(ConfigError) as refused:
        run(tmp_path, resume=resume)
    assert f"process {holder.pid} on {platform.node()}" in str(refused.value)
    assert not (tmp_path / "run.json").exists(), "nothing was written"


def test_what_a_killed_process_left_stands_in_nobodys_way(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    run(tmp_path)


class Second(Callback):
    """Begins a second run in the folder of the first, before its first step."""

    def __init__(self, folder):
        self.folder = folder

    def started(self, training):
        with pytest.raises(ConfigError, match=f"process {os.getpid()}"):
            run(self.folder)


def test_a_folder_is_held_until_its_run_ends_however_it_ends(tmp_path):
    run(tmp_path, callbacks=[Second(tmp_path)])
    with pytest.raises(ConfigError, match="resume=True"):
        run(tmp_path)
    with locked(tmp_path):
        pass
