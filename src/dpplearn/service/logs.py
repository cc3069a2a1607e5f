"""One line of JSON per event and per request on standard error, and the counts of requests."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpplearn.service.metrics import Metrics

NAME = "dpplearn.service"
GIVEN = re.compile(r"[\w.-]{1,64}")  # an identifier of a request that a client may choose
LONGEST_PATH = 200
UNMATCHED = "(unmatched)"  # addresses that are none, which would be too many to count each by itself
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class JsonLines(logging.Formatter):
    """What came as `extra={"fields": ...}`, or the plain message."""

    def format(self, record: logging.LogRecord) -> str:
        fields: Mapping[str, Any] = getattr(record, "fields", {})
        line = {"time": utc(record.created), "level": record.levelname.lower(), "event": record.getMessage(), **fields}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def log_to_stderr(*, quiet: bool = False) -> None:
    """Ours and those of the server, one line per event; of a quiet service, errors alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in (NAME, "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.ERROR if quiet else logging.INFO)


def tell(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """An event that is not a request."""
    logging.getLogger(NAME).log(level, event, extra={"fields": fields})


class RequestLog:
    """Counts, times and logs every request. What a basket holds is logged only if that was asked for."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._logger = logging.getLogger(NAME)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        identifier = given if GIVEN.fullmatch(given) else secrets.token_hex(8)
        scope["noted"] = {}
        began, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                more = [(b"x-request-id", identifier.encode()), (b"x-content-type-options", b"nosniff")]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            self._note(scope, status, time.perf_counter() - began, identifier)

    def _note(self, scope: Scope, status: int, seconds: float, identifier: str) -> None:
        route = getattr(scope.get("route"), "path", UNMATCHED)
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.answered(route, method, status, seconds)
        fields = {
            "id": identifier,
            "method": method,
            "path": scope["path"][:LONGEST_PATH],
            "status": status,
            "ms": round(1000 * seconds, 3),
            **scope["noted"],
        }
        if self._logger.isEnabledFor(logging.INFO):  # made by hand: to look for the line of code that logs takes longer
            record = logging.LogRecord(NAME, logging.INFO, "", 0, "request", (), None)
            record.fields = fields
            self._logger.handle(record)
