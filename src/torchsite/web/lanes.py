"""Two threads answer requests, one for quick ones and one for slow ones, and each has a bounded queue.

A lane is one such thread: it works on one job at a time. If its queue is full, a request fails at once with
503 and Retry-After.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from torchsite.web.engine import Job, JobResult
from torchsite.web.guards import Settings
from torchsite.web.problems import CLOSING, busy


class Lane:
    """One thread, and at most `max_queue` jobs that wait for it."""

    def __init__(
        self, name: str, work: Callable[[Job], JobResult], settings: Settings, max_queue: int
    ) -> None:
        self._work, self._settings, self._max_queue = work, settings, max_queue
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"lane-{name}")
        self._open: set[asyncio.Future[JobResult]] = set()
        self._closed = False

    async def submit(self, job: Job) -> JobResult:
        """The result of one job, or a `ProblemError` with 503."""
        retry_after, timeout = self._settings.retry_after, self._settings.timeout
        if self._closed:
            raise busy(CLOSING, retry_after)
        if len(self._open) > self._max_queue:
            raise busy("too many requests are waiting", retry_after)
        answer = asyncio.get_running_loop().run_in_executor(self._pool, self._work, job)
        self._open.add(answer)
        answer.add_done_callback(self._open.discard)
        done, _ = await asyncio.wait([answer], timeout=timeout)
        if answer.cancelled() or not done:
            answer.cancel()
            raise busy(f"no answer within {timeout:g} seconds" if not done else CLOSING, retry_after)
        return answer.result()

    def refuse(self) -> None:
        """Accept no more jobs and answer those that wait with 503; the running one goes on."""
        self._closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def stop(self) -> None:
        """Answer all requests with 503 and end the thread."""
        self.refuse()
        for answer in list(self._open):
            answer.cancel()
        await asyncio.to_thread(self._pool.shutdown, wait=True)
