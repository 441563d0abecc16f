"""No process outlives the test that started it, nor any the run, whatever ends them.

Whoever is started by a run inherits a mark in the environment, and so do children of children. After the body
of a test its new processes are killed. And since a run may be killed itself, or end by a time limit that asks
nobody, a guardian stands beside it, which does the same when the run is gone. (On Linux; elsewhere the tests
clean up after themselves as well as they can.)
"""

import contextlib
import os
import sys
import time
from multiprocessing import forkserver, resource_tracker

import pytest

import guardian
from guardian import MARK, PROC, kill, marked


class Children:
    """The plugin: one mark and one guardian for each process that runs tests."""

    def __init__(self):
        self.mark = f"{os.getpid()}-{time.time_ns()}"
        command = [sys.executable, "-I", "-S", guardian.__file__, self.mark, str(os.getpid())]
        nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        self.guardian = os.posix_spawn(command[0], command, environment, file_actions=nothing, setsid=True)
        os.environ[MARK] = self.mark

    def alive(self):
        """Whoever was started and still runs, but for the helpers of multiprocessing, which stay for all."""
        helpers = {forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid}
        return marked(self.mark) - helpers if self.has_children() else set()

    def has_children(self):
        """Whether anybody but the guardian was started by this process: quick, since mostly nobody was."""
        found = set()
        for file in PROC.glob("self/task/*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                found |= {int(pid) for pid in file.read_text().split()}
        return found != {self.guardian}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self):
        before = self.alive()
        try:
            return (yield)
        finally:
            kill(self.alive() - before)

    def pytest_sessionfinish(self):
        """Else multiprocessing would wait for its own at the very end."""
        kill(self.alive())


def pytest_configure(config):
    if (PROC / "self" / "environ").exists():
        config.pluginmanager.register(Children(), "their end")
