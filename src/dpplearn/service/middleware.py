"""Around every request: authentication, the limit on bodies, one log line, and metrics for Prometheus."""

from __future__ import annotations

import hmac
import json
import logging
import os
import re
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpplearn.service.errors import Problem
from dpplearn.service.loader import LiveModelStore
from dpplearn.service.settings import digest_of_key

LOGGER = logging.getLogger("dpplearn.service")
REQUEST_ID = re.compile(r"[\w.-]{1,64}")  # identifiers that a client may choose
MAX_PATH = 200  # characters of a path in the log
UNMATCHED = "(unmatched)"  # one label for all unknown addresses
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # environment variable: where several workers keep their counts
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # seconds


def key_guard(keys: tuple[bytes, ...]) -> Callable[[Request], Awaitable[None]]:
    """Return a FastAPI dependency that rejects requests without a valid key.

    The key is sent as `Authorization: Bearer KEY` or `X-API-Key: KEY`. The guard belongs to the routes and does not
    look at the path, so it holds under any root path, mount or prefix.

    Parameters
    ----------
    keys
        Digests of the valid keys, as `read_keys` returns them.
    """

    async def guard(request: Request) -> None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        digest = digest_of_key(given.encode("latin-1"))  # the encoding of header values in ASGI
        # Constant-time comparison: the time must not depend on how much of the key is right.
        if not any(hmac.compare_digest(digest, key) for key in keys):
            raise Problem("no-key", "missing or invalid key; send it as Authorization: Bearer KEY or as X-API-Key: KEY")

    return guard


class JsonLines(logging.Formatter):
    """One JSON object per line, with the fields given as `extra={"fields": ...}`."""

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        line = {"time": utc(record.created), "level": record.levelname.lower(), "event": record.getMessage(), **fields}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def utc(seconds: float) -> str:
    """Return a Unix time in ISO format."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def log_to_stderr(*, quiet: bool = False) -> None:
    """Write the logs of the service and of uvicorn to standard error; with `quiet`, errors only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for logger in (LOGGER, logging.getLogger("uvicorn")):
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.ERROR if quiet else logging.INFO)


def log_event(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event that is not a request."""
    LOGGER.log(level, event, extra={"fields": fields})


class AroundRequests:
    """Counts, times and logs every request, and rejects bodies that are too large while they are read.

    FastAPI reads and parses the body before it checks the key. Items are logged only if `log_baskets` is set.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, max_body: int) -> None:
        self._app, self._metrics, self._max_body = app, metrics, max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        identifier = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope["noted"] = {}  # fields that handlers add to the log line
        began, status, n_bytes = time.perf_counter(), 500, 0

        async def receive_limited() -> Message:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._max_body:
                raise Problem("too-large", f"the body has more than {self._max_body} bytes; send less at a time")
            return message

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = [(b"x-request-id", identifier.encode()), (b"x-content-type-options", b"nosniff")]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            await self._app(scope, receive_limited, send_with_id)
        finally:
            self._note(scope, status, time.perf_counter() - began, identifier)

    def _note(self, scope: Scope, status: int, seconds: float, identifier: str) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = getattr(scope.get("route"), "path", UNMATCHED)
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        about = {"id": identifier, "method": method, "path": scope["path"][:MAX_PATH], "status": status}
        log_event("request", **about, ms=round(1000 * seconds, 3), **scope["noted"])


class Metrics:
    """Counters of this process. With several workers, prometheus_client adds them up in a shared folder."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str) -> Counter:
            return Counter(f"dpplearn_{name}", about, labels, registry=self.registry)

        self.requests = counter("requests", "Requests answered.", "route", "method", "status")
        self.unknown = counter("unknown_items", "Requested items that are unknown.", "model")
        self.loads = counter("store_loads", "Loads of the model store, by event.", "event")
        self.seconds = Histogram(
            "dpplearn_request_seconds", "Response time.", ["route"], registry=self.registry, buckets=BUCKETS
        )

    def text(self, store: LiveModelStore) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        counters = AllWorkers() if SHARED_FOLDER in os.environ else self.registry
        return generate_latest(counters) + generate_latest(ModelGauges(store))


class AllWorkers(Collector):
    """Counters of all workers. A file is empty while its worker creates it, for ever if the worker is killed then."""

    def collect(self) -> Iterable[Metric]:
        files = [str(file) for file in Path(os.environ[SHARED_FOLDER]).glob("*.db") if file.stat().st_size]
        return MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call,no-any-return]


class ModelGauges(Collector):
    """Versions and ages of the models, and which are broken."""

    def __init__(self, store: LiveModelStore) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        store, now = self._store.now, time.time()
        version = GaugeMetricFamily("dpplearn_model_info", "1 for the version in use.", labels=["model", "version"])
        for each in store.models.values():
            version.add_metric([each.name, each.version], 1)
        yield version
        ages = {name: max(now - each.modified, 0) for name, each in store.models.items()}
        yield _by_model("age_seconds", "Since its file was written.", ages)
        ages = {name: max(now - each.loaded, 0) for name, each in store.models.items()}
        yield _by_model("loaded_seconds", "Since it was loaded.", ages)
        broken = {name: float(name in store.broken) for name in {**store.models, **store.broken}}
        yield _by_model("broken", "1 if the newest file is broken.", broken)
        refused = "1 if the current source is not served as a whole."
        yield GaugeMetricFamily("dpplearn_store_refused", refused, float(bool(self._store.failed)))


def _by_model(name: str, about: str, values: Mapping[str, float]) -> Metric:
    found = GaugeMetricFamily(f"dpplearn_model_{name}", about, labels=["model"])
    for model, value in values.items():
        found.add_metric([model], value)
    return found
