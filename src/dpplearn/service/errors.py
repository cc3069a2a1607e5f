"""Error responses: problem details as JSON (RFC 9457)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
MAX_QUOTED = 80  # characters of the request that an error repeats
MAX_ERRORS = 5  # invalid fields that are named
UNION_MEMBERS = {"body", "str", "constrained-str", "int", "constrained-int"}  # pydantic's names for members of unions
RETRY_SECONDS = 1

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


class Problem(Exception):
    """An error of one of `KINDS`. `more` are further members of the JSON document."""

    def __init__(self, kind: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.more = kind, detail, more

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def document(self) -> dict[str, Any]:
        status, title = KINDS[self.kind]
        return {"type": f"problem:{self.kind}", "title": title, "status": status, "detail": self.detail, **self.more}

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        own = {}
        if self.status == 401:
            own["www-authenticate"] = "Bearer"  # required by RFC 9110
        if self.kind == "busy":
            own["retry-after"] = str(RETRY_SECONDS)
        content = json.dumps(self.document()).encode()
        return Response(content, self.status, {**own, **(headers or {})}, media_type=MEDIA_TYPE)


def problem_responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of the errors that a route may answer with."""
    titles: dict[int | str, list[str]] = {}
    for kind in ("no-key", *kinds):
        status, title = KINDS[kind]
        titles.setdefault(status, []).append(title)
    schema = {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
    return {
        status: {"description": "; ".join(each), "content": {MEDIA_TYPE: schema}} for status, each in titles.items()
    }


def invalid(errors: Iterable[Mapping[str, Any]]) -> Problem:
    """Return the problem for what pydantic found in a request, one clause per field."""
    expected: dict[str, list[str]] = {}  # by field and value; a union has an error for each of its types
    for each in errors:
        if each["type"] == "json_invalid":
            return Problem("not-json", "the body is not JSON; send one JSON object, in UTF-8")
        given = "" if each["type"] == "missing" else f" is {quoted(each.get('input'))}"
        expected.setdefault(f"{_field(each['loc'])}{given}", []).append(_expected(each))
    clauses = [f"{received}: {' or '.join(dict.fromkeys(each))}" for received, each in expected.items()]
    more = f"; and {len(clauses) - MAX_ERRORS} more" if len(clauses) > MAX_ERRORS else ""
    return Problem("invalid-request", f"{'; '.join(clauses[:MAX_ERRORS])}{more}. See /openapi.json")


def quoted(value: Any) -> str:
    """Return a received value, of any size and type, for a sentence."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    value = value.decode(errors="replace") if isinstance(value, bytes) else value
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}…"


def _field(where: tuple[str | int, ...]) -> str:
    """Return the place of an error as `basket[2]`."""
    inside = [each for each in where if each not in UNION_MEMBERS]
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{quoted(each)[1:-1]}" for each in inside)
    return path.removeprefix(".") or "the body"


def _expected(error: Mapping[str, Any]) -> str:
    fixed = {
        "missing": "this field is required",
        "extra_forbidden": "unknown field; leave it out",
        "model_attributes_type": "expected a JSON object, with the content type application/json",
    }
    return fixed.get(error["type"], str(error["msg"]).replace("Input should be", "expected"))


def add_error_handlers(app: FastAPI, logger: logging.Logger) -> None:
    """Answer every error with a problem document."""

    async def problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return invalid(error.errors()).response()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        path = quoted(request.url.path)
        found = {
            404: Problem("no-such-page", f"there is nothing at {path}; see /openapi.json"),
            405: Problem("wrong-method", f"{path} does not support {quoted(request.method)}; see /openapi.json"),
        }.get(error.status_code, Problem("not-json", "the body cannot be read as JSON; send one JSON object, in UTF-8"))
        return found.response(error.headers)

    async def unexpected(request: Request, error: Exception) -> Response:
        logger.error("failed", exc_info=error)
        return Problem("internal", "the service failed; the reason is in its log").response()

    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RequestValidationError, validation)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)
