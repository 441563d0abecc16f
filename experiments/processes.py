"""Work in a process of its own, which ends with whoever started it."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from torchsite.errors import TorchsiteError

T = TypeVar("T")


def run_apart(function: Callable[..., T], *arguments: Any) -> T:
    """The answer of a function of a module, called in a new process; its error is raised here.

    Whatever happens here meanwhile (Ctrl+C, a time limit), the other process is killed; if this one is
    killed, the other ends by itself.
    """
    context = multiprocessing.get_context("spawn")
    answers, answering = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(answering, function, arguments))
    process.start()
    answering.close()
    try:
        succeeded, answer = answers.recv()
    except EOFError:
        process.join()
        raise TorchsiteError(
            f"the process of {function.__name__} ended without an answer (exit code {process.exitcode}): "
            "a negative code is a signal; the system kills what takes too much memory with signal 9"
        ) from None
    finally:
        process.kill()
        process.join()
        answers.close()
    if not succeeded:
        raise answer
    return answer


def end_with_parent() -> None:
    """End this process, which `multiprocessing` started, as soon as the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_outlive, args=(parent,), daemon=True).start()


def peak_memory() -> int | None:
    """The most memory that this process ever took, in bytes; unknown on Windows."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _answer(answering: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    end_with_parent()
    try:
        answer = True, function(*arguments)
    except Exception as error:
        answer = False, error
    answering.send(answer)


def _outlive(parent: Any) -> None:
    parent.join()
    os._exit(1)
