"""A run of tests that fails, exceeds its time or is killed leaves no process behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import guardian
from guardian import is_running

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")

HEAD = """
import multiprocessing, os, pytest, subprocess, sys, time
from pathlib import Path
from guardian import is_running

NOTES = Path(__file__).parent / "pids"
GRANDCHILD = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '600']).pid); time.sleep(600)"

def start():
    '''A child with a child of its own, in a session of its own, and two of multiprocessing.'''
    code = [sys.executable, "-u", "-c", GRANDCHILD]
    child = subprocess.Popen(code, stdout=subprocess.PIPE, text=True, start_new_session=True)
    pids = [child.pid, int(child.stdout.readline())]
    for method in ("spawn", "forkserver"):
        process = multiprocessing.get_context(method).Process(target=time.sleep, args=(600,))
        process.start()
        pids.append(process.pid)
    (NOTES.parent / "worker").write_text(str(os.getpid()))
    NOTES.with_suffix(".part").write_text(" ".join(map(str, pids)))
    NOTES.with_suffix(".part").rename(NOTES)

def alive():
    return [pid for pid in map(int, NOTES.read_text().split()) if is_running(pid)]
"""
HANGS = (
    HEAD
    + "\n@pytest.fixture\ndef children():\n    start()\n\ndef test_hangs(children):\n    time.sleep(600)\n"
)
FAILS = HEAD + (
    "\ndef test_fails():\n    start()\n    assert len(alive()) == 4\n    assert False\n"
    "\ndef test_next():\n    time.sleep(0.5)\n    assert not alive()\n"
)
LIMIT = ("-p", "pytest_timeout", "--timeout=1", "-o", "timeout_func_only=true")  # the body, not its start


@pytest.fixture
def begin(tmp_path):
    """Start pytest on one file; it is killed at the end, if it still runs."""
    runs = []

    def started(code, *options):
        (tmp_path / "test_it.py").write_text(code)
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        environment = os.environ | {"PYTHONPATH": str(Path(guardian.__file__).parent)}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [sys.executable, "-m", "pytest", "-p", "children", "-p", "no:cacheprovider", *options, "."]
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
        runs.append(run)
        return run

    yield started
    for run in runs:
        run.kill()
        run.wait()
        run.stdout.close()


def pids(folder):
    """The children of the run, as soon as it has started all; it has as long as it takes."""
    while not (folder / "pids").exists():
        time.sleep(0.05)
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def all_die(children):
    while any(map(is_running, children)):
        time.sleep(0.05)
    return True


def test_a_test_that_fails_leaves_none_to_the_next(begin):
    said, _ = begin(FAILS).communicate()
    assert "1 failed, 1 passed" in said


@pytest.mark.slow
@pytest.mark.parametrize("method", ["thread", "signal"])
def test_a_test_that_exceeds_its_time_leaves_none(begin, tmp_path, method):
    run = begin(HANGS, *LIMIT, f"--timeout-method={method}")
    children = pids(tmp_path)
    run.communicate()
    assert run.returncode == 1
    assert all_die(children)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_none(begin, tmp_path, number):
    run = begin(HANGS)
    children = pids(tmp_path)
    assert all(map(is_running, children))
    run.send_signal(number)
    assert all_die(children)


@pytest.mark.slow
def test_a_worker_that_is_killed_leaves_none(begin, tmp_path):
    begin(HANGS, "-p", "xdist", "-n1")
    children = pids(tmp_path)
    (worker,) = (tmp_path / "worker").read_text().split()
    os.kill(int(worker), signal.SIGKILL)
    assert all_die(children)
