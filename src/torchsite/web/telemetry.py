"""Prometheus metrics: requests, latencies, queue lengths, batch sizes."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 72)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Telemetry:
    """One registry for each application, so that several live in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "torchsite_requests", "Requests answered.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "torchsite_request_seconds",
            "From a request to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "torchsite_batch_questions",
            "Questions answered in one pass.",
            ["lane"],
            buckets=SIZES,
            registry=self.registry,
        )
        self.work_seconds = Histogram(
            "torchsite_batch_seconds", "Work on one batch.", ["lane"], buckets=SECONDS, registry=self.registry
        )
        self.waiting = Gauge("torchsite_waiting", "Requests in the queue.", ["lane"], registry=self.registry)
        self.refused = Counter(
            "torchsite_refused",
            "Requests refused because the queue was full.",
            ["lane"],
            registry=self.registry,
        )

    def text(self) -> bytes:
        """All figures in Prometheus' text form."""
        return generate_latest(self.registry)
