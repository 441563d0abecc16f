"""Lanes: waiting requests are answered together, too many are refused, and a bad one fails alone."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from torchsite.web.guards import Settings
from torchsite.web.lanes import Lane
from torchsite.web.problems import ProblemError
from torchsite.web.telemetry import Telemetry


def job(value):
    return SimpleNamespace(value=value)


class Work:
    """Answers each job with its value, once it is let through the gate."""

    def __init__(self, *, gated=False):
        self.batches = []
        self.started, self.gate = threading.Event(), threading.Event()
        if not gated:
            self.gate.set()

    def __call__(self, jobs):
        self.started.set()
        assert self.gate.wait(10)
        self.batches.append([one.value for one in jobs])
        if any(one.value == "bad" for one in jobs):
            raise ValueError("a bad question")
        return [one.value for one in jobs]


def lane(work, *, max_queue=8, max_batch=4, timeout=10.0):
    settings = Settings(max_batch=max_batch, retry_after=2, timeout=timeout)
    return Lane("test", work, Telemetry(), settings, max_queue)


def in_a_loop_of_its_own(work):
    """What the coroutine gives, in a thread: a browser's tests may have left a loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def gathered(work, values, **options):
    """All values asked while the first is being worked on."""
    one = lane(work, **options)
    await one.start()
    first = asyncio.create_task(one.submit([job("first")]))
    await asyncio.to_thread(work.started.wait, 10)
    rest = [asyncio.create_task(one.submit([job(value)])) for value in values]
    await asyncio.sleep(0.05)
    work.gate.set()
    answers = await asyncio.gather(first, *rest, return_exceptions=True)
    await one.stop()
    return answers


def test_what_gathers_meanwhile_is_one_batch():
    work = Work(gated=True)
    answers = in_a_loop_of_its_own(gathered(work, [1, 2, 3]))
    assert answers == [["first"], [1], [2], [3]]
    assert work.batches == [["first"], [1, 2, 3]]


def test_a_batch_has_a_limit():
    work = Work(gated=True)
    in_a_loop_of_its_own(gathered(work, [1, 2, 3, 4, 5, 6]))
    assert work.batches == [["first"], [1, 2, 3, 4], [5, 6]]


def test_a_full_queue_is_refused_at_once_with_a_hint():
    work = Work(gated=True)
    answers = in_a_loop_of_its_own(gathered(work, [1, 2, 3], max_queue=2))
    assert answers[:3] == [["first"], [1], [2]]
    assert isinstance(answers[3], ProblemError)
    assert (answers[3].status, answers[3].headers) == (503, {"Retry-After": "2"})


def test_a_bad_question_fails_alone():
    work = Work(gated=True)
    first, one, bad, two = in_a_loop_of_its_own(gathered(work, [1, "bad", 2]))
    assert (first, one, two) == (["first"], [1], [2])
    assert isinstance(bad, ValueError)


def test_a_long_request_is_worked_in_parts():
    async def ask(work):
        one = lane(work)
        await one.start()
        answer = await one.submit([job(i) for i in range(10)])
        await one.stop()
        return answer

    work = Work()
    assert in_a_loop_of_its_own(ask(work)) == list(range(10))
    assert [len(batch) for batch in work.batches] == [4, 4, 2]


def test_an_answer_that_takes_too_long_is_given_up():
    async def ask(work):
        one = lane(work, timeout=0.05)
        await one.start()
        with pytest.raises(ProblemError, match=r"no answer within 0\.05 seconds"):
            await one.submit([job(1)])
        work.gate.set()
        await one.stop()

    in_a_loop_of_its_own(ask(Work(gated=True)))


def test_stopping_refuses_what_waits_and_ends_the_thread():
    async def ask(work):
        one = lane(work)
        await one.start()
        asked = [asyncio.create_task(one.submit([job(i)])) for i in range(3)]
        await asyncio.to_thread(work.started.wait, 10)
        stopping = asyncio.create_task(one.stop())
        await asyncio.sleep(0.05)
        work.gate.set()
        await stopping
        answers = await asyncio.gather(*asked, return_exceptions=True)
        with pytest.raises(ProblemError, match="shutting down"):
            await one.submit([job(9)])
        return answers

    answers = in_a_loop_of_its_own(ask(Work(gated=True)))
    assert all(isinstance(answer, ProblemError) and answer.status == 503 for answer in answers)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lane-test")]
