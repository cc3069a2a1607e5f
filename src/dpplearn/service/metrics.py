"""What a service counts of itself, for Prometheus: over all workers, where there are several."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from dpplearn.service.watching import Current

disable_created_metrics()  # type: ignore[no-untyped-call]  # when each was counted first, which nobody asked for

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where workers put their counts, if there are several
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds


class Metrics:
    """Counters of this process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "dpplearn_requests", "Requests answered.", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "dpplearn_request_seconds", "Until the answer was sent.", ["route"], registry=self.registry, buckets=BUCKETS
        )
        self.unknown = Counter(
            "dpplearn_unknown_items", "Items asked about that no model knows.", ["model"], registry=self.registry
        )
        self.recommended = Counter(
            "dpplearn_recommended_items", "Items recommended.", ["model"], registry=self.registry
        )
        self.loads = Counter("dpplearn_shelf_loads", "Shelves read, by event.", ["event"], registry=self.registry)
        self._counters: dict[tuple[str, ...], tuple[Counter, Histogram]] = {}

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (route, method, str(status))
        if key not in self._counters:
            self._counters[key] = self.requests.labels(*key), self.seconds.labels(route)
        count, times = self._counters[key]
        count.inc()
        times.observe(seconds)

    def text(self, current: Current) -> bytes:
        """As Prometheus reads it. What is served is told by the worker that is asked: all look at one source."""
        registry = self.registry
        if SHARED_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        of_models = CollectorRegistry()
        of_models.register(OfModels(current))
        return generate_latest(registry) + generate_latest(of_models)


class OfModels(Collector):
    """Versions and ages of what is served, and what is wrong with it."""

    def __init__(self, current: Current) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        served, now = self._current.now.served, time.time()
        version = GaugeMetricFamily("dpplearn_model_info", "1 for the version in use.", labels=["model", "version"])
        age = GaugeMetricFamily("dpplearn_model_age_seconds", "Since its file was written.", labels=["model"])
        loaded = GaugeMetricFamily("dpplearn_model_loaded_seconds", "Since it was loaded.", labels=["model"])
        broken = GaugeMetricFamily("dpplearn_model_broken", "1 where the newest file is broken.", labels=["model"])
        for name, each in served.models.items():
            version.add_metric([name, each.version], 1)
            age.add_metric([name], max(now - each.modified, 0))
            loaded.add_metric([name], max(now - each.loaded, 0))
        for name in {**served.models, **served.broken}:
            broken.add_metric([name], float(name in served.broken))
        refused = GaugeMetricFamily("dpplearn_shelf_refused", "1 where the source is not served as it is now.")
        refused.add_metric([], float(bool(self._current.failed)))
        yield from (version, age, loaded, broken, refused)
