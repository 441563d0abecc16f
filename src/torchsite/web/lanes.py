"""Dynamic batching: requests that arrive while one batch is computed form the next.

A lane is one thread with one bounded queue. An idle lane starts at once, a busy one takes all requests that
are queued when it is done. If the queue is full, a request fails at once with 503 and Retry-After.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from torchsite.web.engine import Job, JobResult
from torchsite.web.guards import Settings
from torchsite.web.problems import busy
from torchsite.web.telemetry import Telemetry

CLOSING = "the server is shutting down"


@dataclass(frozen=True, eq=False)
class Waiting:
    """The jobs of one request and the future of its answer."""

    jobs: Sequence[Job]
    answer: "asyncio.Future[list[JobResult]]"

    def fail(self, error: Exception) -> None:
        """Answer with an error, unless there is an answer already."""
        if not self.answer.done():
            self.answer.set_exception(error)


class Lane:
    """A bounded queue and the one thread that works on it."""

    def __init__(
        self,
        name: str,
        work: Callable[[Sequence[Job]], list[JobResult]],
        telemetry: Telemetry,
        settings: Settings,
        max_queue: int,
    ) -> None:
        self.name, self._work, self._telemetry, self._settings = name, work, telemetry, settings
        self._queue: asyncio.Queue[Waiting] = asyncio.Queue(max_queue)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"lane-{name}")
        self._runner: asyncio.Task[None] | None = None
        self._closed = True

    async def start(self) -> None:
        """Start the worker task."""
        self._closed = False
        self._runner = asyncio.create_task(self._run())

    def refuse(self) -> None:
        """Accept no more requests and answer queued ones with 503; the running batch goes on."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait().fail(busy(CLOSING, self._settings.retry_after))

    async def stop(self) -> None:
        """Answer all requests with 503 and end the thread."""
        self.refuse()
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
            self._runner = None
        await asyncio.to_thread(self._pool.shutdown, wait=True)

    async def submit(self, jobs: Sequence[Job]) -> list[JobResult]:
        """The results of one request, or a `ProblemError` with 503."""
        retry_after, timeout = self._settings.retry_after, self._settings.timeout
        if self._closed:
            raise busy(CLOSING, retry_after)
        waiting = Waiting(jobs, asyncio.get_running_loop().create_future())
        try:
            self._queue.put_nowait(waiting)
        except asyncio.QueueFull:
            self._telemetry.refused.labels(self.name).inc()
            raise busy("too many requests are waiting", retry_after) from None
        self._telemetry.waiting.labels(self.name).set(self._queue.qsize())
        try:
            async with asyncio.timeout(timeout):
                return await waiting.answer
        except TimeoutError:
            raise busy(f"no answer within {timeout:g} seconds", retry_after) from None

    async def _run(self) -> None:
        while True:
            batch = self._gathered(await self._queue.get())
            self._telemetry.waiting.labels(self.name).set(self._queue.qsize())
            try:
                await self._answer(batch)
            except asyncio.CancelledError:
                for waiting in batch:
                    waiting.fail(busy(CLOSING, self._settings.retry_after))
                raise

    def _gathered(self, first: Waiting) -> list[Waiting]:
        """The queued requests up to the size of a batch, without those that timed out."""
        batch, size = [first], len(first.jobs)
        while size < self._settings.max_batch and not self._queue.empty():
            batch.append(self._queue.get_nowait())
            size += len(batch[-1].jobs)
        return [waiting for waiting in batch if not waiting.answer.done()]

    async def _answer(self, batch: list[Waiting]) -> None:
        """Compute one batch; if it fails, compute each request alone, so that only the bad one fails."""
        jobs = [job for waiting in batch for job in waiting.jobs]
        if not jobs:
            return
        self._telemetry.batch_size.labels(self.name).observe(len(jobs))
        try:
            with self._telemetry.work_seconds.labels(self.name).time():
                loop = asyncio.get_running_loop()
                results = await loop.run_in_executor(self._pool, self._in_batches, jobs)
        except Exception as error:  # whatever it is, it belongs to the request that caused it
            if len(batch) == 1:
                batch[0].fail(error)
                return
            for waiting in batch:
                await self._answer([waiting])
            return
        for waiting in batch:
            mine, results = results[: len(waiting.jobs)], results[len(waiting.jobs) :]
            if not waiting.answer.done():
                waiting.answer.set_result(mine)

    def _in_batches(self, jobs: list[Job]) -> list[JobResult]:
        size = self._settings.max_batch
        parts = [jobs[i : i + size] for i in range(0, len(jobs), size)]
        return [result for part in parts for result in self._work(part)]
