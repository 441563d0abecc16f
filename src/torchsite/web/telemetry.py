"""Prometheus metrics: requests, latencies, queue lengths, batch sizes."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.exposition import generate_latest

__all__ = ["CONTENT_TYPE", "Telemetry"]
SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 72)


class Telemetry:
    """One registry for each application, so that several live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        counter = partial(Counter, registry=self.registry)
        times = partial(Histogram, registry=self.registry)
        self.requests = counter("torchsite_requests", "Requests answered.", ["path", "status"])
        self.refused = counter("torchsite_refused", "Requests refused: the queue was full.", ["lane"])
        self.seconds = times(
            "torchsite_request_seconds", "From a request to its answer.", ["path"], buckets=SECONDS
        )
        self.batch_size = times(
            "torchsite_batch_questions", "Questions answered in one pass.", ["lane"], buckets=SIZES
        )
        self.work_seconds = times("torchsite_batch_seconds", "Work on one batch.", ["lane"], buckets=SECONDS)
        self.waiting = Gauge("torchsite_waiting", "Requests in the queue.", ["lane"], registry=self.registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text form."""
        return generate_latest(self.registry)
