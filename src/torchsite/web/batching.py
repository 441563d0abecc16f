"""Dynamic batching: requests that arrive while one batch is computed form the next.

A lane is one thread with one bounded queue. An idle lane starts at once, a busy one takes all requests that
are queued when it is done. If the queue is full, a request fails at once with 503 and Retry-After.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from torchsite.web.engine import Answerer, Job, JobResult
from torchsite.web.problems import ProblemError, busy
from torchsite.web.telemetry import Telemetry


@dataclass(frozen=True, eq=False)
class Waiting:
    """The jobs of one request and the future of its answer."""

    jobs: Sequence[Job]
    answer: "asyncio.Future[list[JobResult]]"


class Lane:
    """A bounded queue and the one thread that works on it."""

    def __init__(
        self,
        name: str,
        work: Answerer,
        telemetry: Telemetry,
        *,
        max_queue: int,
        max_batch: int,
        retry_after: int,
        timeout: float,
    ) -> None:
        self.name = name
        self._work, self._telemetry = work, telemetry
        self._max_batch, self._retry_after, self._timeout = max_batch, retry_after, timeout
        self._queue: asyncio.Queue[Waiting] = asyncio.Queue(max_queue)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"lane-{name}")
        self._runner: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Start the worker task."""
        self._closed = False
        self._runner = asyncio.create_task(self._run())

    def refuse(self) -> None:
        """Accept no more requests and answer queued ones with 503; the running batch goes on."""
        self._closed = True
        while not self._queue.empty():
            _fail(self._queue.get_nowait(), self._busy("the server is shutting down"))

    async def stop(self) -> None:
        """Answer all requests with 503 and end the thread."""
        self.refuse()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            runner.cancel()
            await asyncio.gather(runner, return_exceptions=True)
        await asyncio.to_thread(self._pool.shutdown, wait=True)

    async def submit(self, jobs: Sequence[Job]) -> list[JobResult]:
        """The results of one request, or a `ProblemError` with 503."""
        if self._closed or self._runner is None:
            raise self._busy("the server is shutting down")
        waiting = Waiting(jobs, asyncio.get_running_loop().create_future())
        try:
            self._queue.put_nowait(waiting)
        except asyncio.QueueFull:
            self._telemetry.refused.labels(self.name).inc()
            raise self._busy("too many requests are waiting") from None
        self._telemetry.waiting.labels(self.name).set(self._queue.qsize())
        try:
            async with asyncio.timeout(self._timeout):
                return await waiting.answer
        except TimeoutError:
            raise self._busy(f"no answer within {self._timeout:g} seconds") from None

    async def _run(self) -> None:
        while True:
            batch = self._gathered(await self._queue.get())
            self._telemetry.waiting.labels(self.name).set(self._queue.qsize())
            if batch:
                try:
                    await self._answer(batch)
                except asyncio.CancelledError:
                    for waiting in batch:
                        _fail(waiting, self._busy("the server is shutting down"))
                    raise

    def _gathered(self, first: Waiting) -> list[Waiting]:
        """The queued requests up to the size of a batch, without those that timed out."""
        batch, size = [first], len(first.jobs)
        while size < self._max_batch and not self._queue.empty():
            batch.append(self._queue.get_nowait())
            size += len(batch[-1].jobs)
        return [waiting for waiting in batch if not waiting.answer.done()]

    async def _answer(self, batch: list[Waiting]) -> None:
        """Compute one batch; if it fails, compute each request alone, so that only the bad one fails."""
        try:
            results = await self._in_thread([job for waiting in batch for job in waiting.jobs])
        except Exception as error:  # whatever it is, it belongs to the request that caused it
            if len(batch) == 1:
                _fail(batch[0], error)
                return
            for waiting in batch:
                await self._answer([waiting])
            return
        for waiting in batch:
            mine, results = results[: len(waiting.jobs)], results[len(waiting.jobs) :]
            if not waiting.answer.done():
                waiting.answer.set_result(mine)

    async def _in_thread(self, jobs: list[Job]) -> list[JobResult]:
        self._telemetry.batch_size.labels(self.name).observe(len(jobs))
        with self._telemetry.work_seconds.labels(self.name).time():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, self._in_batches, jobs)

    def _in_batches(self, jobs: list[Job]) -> list[JobResult]:
        parts = [jobs[i : i + self._max_batch] for i in range(0, len(jobs), self._max_batch)]
        return [result for part in parts for result in self._work(part)]

    def _busy(self, reason: str) -> ProblemError:
        return busy(reason, self._retry_after)


def _fail(waiting: Waiting, error: Exception) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
