"""Error responses: problem details as JSON (RFC 9457)."""

from __future__ import annotations

import json
import logging
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
MAX_QUOTED = 80  # characters of the request that an error repeats
UNION_MEMBERS = {"str", "constrained-str", "int", "constrained-int"}  # pydantic's names for members of unions

KINDS: dict[str, tuple[int, str]] = {
    "not-json": (400, "The body is not JSON"),
    "no-key": (401, "A key is required"),
    "no-such-page": (404, "Unknown address"),
    "no-such-model": (404, "Unknown model"),
    "wrong-method": (405, "Method not allowed"),
    "too-large": (413, "The body is too large"),
    "invalid-request": (422, "Invalid request"),
    "unknown-item": (422, "Unknown item"),
    "cannot-answer": (422, "The model cannot answer this request"),
    "too-expensive": (422, "The request would take too much computing time"),
    "internal": (500, "Internal error"),
    "model-broken": (503, "The model file cannot be used"),
    "busy": (503, "Too many requests at once"),
}
HEADERS = {
    "no-key": {"www-authenticate": "Bearer"},  # required by RFC 9110
    "too-large": {"connection": "close"},
    "busy": {"retry-after": "1"},
}
# Descriptions of the errors for the OpenAPI document, the same for all routes.
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": "; ".join(title for its_status, title in KINDS.values() if its_status == status),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
    for status in dict.fromkeys(status for status, _ in KINDS.values())
}


class Problem(HTTPException):
    """An error of one of `KINDS`. `more` are further members of the JSON document."""

    def __init__(self, kind: str, detail: str, **more: Any) -> None:
        super().__init__(KINDS[kind][0], detail, HEADERS.get(kind))
        self.kind, self.more = kind, more

    def document(self) -> dict[str, Any]:
        status, title = KINDS[self.kind]
        return {"type": f"problem:{self.kind}", "title": title, "status": status, "detail": self.detail, **self.more}

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        content = json.dumps(self.document()).encode()
        return Response(content, self.status_code, headers or self.headers, media_type=MEDIA_TYPE)


def quoted(value: Any) -> str:
    """Return a received value, of any size and type, for a sentence."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = MAX_QUOTED
    return short.repr(value)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem for the first field that pydantic rejected; a union has an error for each of its types."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return Problem("not-json", "the body is not JSON; send one JSON object, in UTF-8")
    place = _place(first)
    expected = " or ".join(dict.fromkeys(str(each["msg"]) for each in errors if _place(each) == place))
    return Problem("invalid-request", f"{place}: {expected}; got {quoted(first['input'])}. See /openapi.json")


def _place(error: Mapping[str, Any]) -> str:
    """Return the place of an error as `basket[2]`."""
    path = [each for each in error["loc"][1:] if each not in UNION_MEMBERS]  # the first is "body" or "query"
    found = "".join(f"[{each}]" if isinstance(each, int) else f".{quoted(each)[1:-1]}" for each in path)
    return found.removeprefix(".") or "the body"


def add_error_handlers(app: FastAPI, logger: logging.Logger) -> None:
    """Answer every error with a problem document."""

    @app.exception_handler(HTTPException)
    async def problem(request: Request, error: HTTPException) -> Response:
        if isinstance(error, Problem):
            return error.response()
        kind = {404: "no-such-page", 405: "wrong-method"}.get(error.status_code, "not-json")
        asked = f"{quoted(request.method)} {quoted(request.url.path)}"
        return Problem(kind, f"{asked} cannot be answered; see /openapi.json").response(error.headers)

    @app.exception_handler(RequestValidationError)
    async def validation(request: Request, error: RequestValidationError) -> Response:
        return invalid(error.errors()).response()

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> Response:
        logger.error("failed", exc_info=error)
        return Problem("internal", "the service failed; the reason is in its log").response()
