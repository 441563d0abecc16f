"""Lanes: one job at a time, too many are refused, a bad one fails alone, and the end is orderly."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from torchsite.web.guards import Settings
from torchsite.web.lanes import Lane
from torchsite.web.problems import ProblemError


class Work:
    """Answers each job with itself, once it is let through the gate."""

    def __init__(self):
        self.done, self.started, self.gate = [], threading.Event(), threading.Event()

    def __call__(self, job):
        self.started.set()
        assert self.gate.wait(10)
        self.done.append(job)
        if job == "bad":
            raise ValueError("a bad question")
        return job


def lane(work, *, max_queue=8, timeout=10.0):
    return Lane("test", work, Settings(retry_after=2, timeout=timeout), max_queue)


def in_a_loop_of_its_own(work):
    """What the coroutine gives, in a thread: a browser's tests may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def gathered(work, jobs, **options):
    """The answers of all jobs, asked while the first is being worked on."""
    one = lane(work, **options)
    asked = [asyncio.create_task(one.submit(job)) for job in jobs]
    await asyncio.to_thread(work.started.wait, 10)
    await asyncio.sleep(0.05)
    work.gate.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    await one.stop()
    return answers


def test_jobs_are_done_one_after_the_other():
    work = Work()
    assert in_a_loop_of_its_own(gathered(work, [1, 2, 3])) == work.done == [1, 2, 3]


def test_a_full_queue_is_refused_at_once_with_a_hint():
    answers = in_a_loop_of_its_own(gathered(Work(), [1, 2, 3, 4], max_queue=2))
    assert answers[:3] == [1, 2, 3]
    assert isinstance(answers[3], ProblemError)
    assert (answers[3].status, answers[3].headers) == (503, {"Retry-After": "2"})


def test_a_bad_question_fails_alone():
    one, bad, two = in_a_loop_of_its_own(gathered(Work(), [1, "bad", 2]))
    assert (one, two) == (1, 2)
    assert isinstance(bad, ValueError)


def test_an_answer_that_takes_too_long_is_given_up():
    async def ask(work):
        one = lane(work, timeout=0.05)
        with pytest.raises(ProblemError, match=r"0\.05 seconds"):
            await one.submit(1)
        work.gate.set()
        await one.stop()

    in_a_loop_of_its_own(ask(Work()))


def test_stopping_refuses_what_waits_and_ends_the_thread():
    async def ask(work):
        one = lane(work)
        asked = [asyncio.create_task(one.submit(i)) for i in range(3)]
        await asyncio.to_thread(work.started.wait, 10)
        stopping = asyncio.create_task(one.stop())
        await asyncio.sleep(0.05)
        work.gate.set()
        await stopping
        answers = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(ProblemError):
            await one.submit(9)
        return answers

    answers = in_a_loop_of_its_own(ask(Work()))
    assert all(isinstance(answer, ProblemError) and answer.status == 503 for answer in answers)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane-test")]
