"""Work apart: the answer comes back, errors too, and nobody is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.processes import peak_memory, run_apart
from guardian import is_running
from torchsite.errors import ConfigError, TorchsiteError

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
PLACES = (HERE, ROOT, ROOT / "tests")
linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


def whoami(word):
    return word, os.getpid()


def complain():
    raise ConfigError("no such thing")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def sleep_on(note):
    Path(note).write_text(str(os.getpid()))
    time.sleep(600)


def wait_until(condition, seconds=60):
    """A generous limit: it decides how long a failure takes, never whether a busy machine passes."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()


def test_the_answer_comes_from_another_process():
    word, pid = run_apart(whoami, "hello")
    assert word == "hello"
    assert pid != os.getpid()


def test_an_error_over_there_is_raised_here():
    with pytest.raises(ConfigError, match="no such thing"):
        run_apart(complain)


def test_a_process_that_dies_is_an_error_that_says_so():
    with pytest.raises(TorchsiteError, match=r"die ended without an answer \(exit code -9\)"):
        run_apart(die)


@linux
def test_an_interruption_here_kills_over_there(tmp_path):
    note = tmp_path / "pid"

    def interrupt(*_):
        raise KeyboardInterrupt

    def notice(*_):
        if note.exists() and note.read_text():
            interrupt()
        signal.setitimer(signal.ITIMER_REAL, 0.2)

    before = signal.signal(signal.SIGALRM, notice)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_apart(sleep_on, str(note))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not is_running(int(note.read_text()))


@linux
def test_whoever_is_killed_leaves_nobody_behind(tmp_path):
    note = tmp_path / "pid"
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        f"sys.path[:0] = {[str(path) for path in PLACES]!r}\n"
        "from test_processes import run_apart, sleep_on\n"
        f"if __name__ == '__main__':\n    run_apart(sleep_on, {str(note)!r})\n"
    )
    with subprocess.Popen([sys.executable, str(program)]) as started:
        wait_until(lambda: note.exists() and note.read_text())
        started.kill()
    wait_until(lambda: not is_running(int(note.read_text())))


def test_the_peak_of_memory_is_in_bytes():
    peak = peak_memory()
    assert peak is None or 10e6 < peak < 1e12
