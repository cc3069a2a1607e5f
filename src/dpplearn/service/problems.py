"""What a client is told that asked for something impossible: problem details as JSON, as RFC 9457 has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"
LONGEST = 80  # characters of what came that are shown again
MEMBERS = {"body", "str", "constrained-str", "int", "constrained-int"}  # of unions, as pydantic names them
MOST_ERRORS = 5  # of one request that are told

KINDS: dict[str, tuple[int, str]] = {
    "not-json": (400, "The body is not JSON"),
    "no-key": (401, "A key is needed"),
    "no-such-page": (404, "There is nothing at this address"),
    "no-such-model": (404, "There is no such model"),
    "wrong-method": (405, "This address takes another method"),
    "too-large": (413, "The body is too large"),
    "invalid-request": (422, "The request is not as expected"),
    "unknown-item": (422, "The model does not know an item"),
    "cannot-answer": (422, "The model cannot answer that"),
    "internal": (500, "The service failed"),
    "model-broken": (503, "The file of the model cannot be used"),
}


class Problem(Exception):
    """One of `KINDS`: what came, what was expected and what to do, and what a program can read of it."""

    def __init__(self, kind: str, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.more = kind, detail, more

    @property
    def status(self) -> int:
        return KINDS[self.kind][0]

    def document(self) -> dict[str, Any]:
        status, title = KINDS[self.kind]
        about = {"type": f"/docs#problem-{self.kind}", "title": title, "status": status, "detail": self.detail}
        return {**about, **self.more}

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        content = json.dumps(self.document()).encode()
        # RFC 9110 requires WWW-Authenticate in every 401 response.
        challenge = {"www-authenticate": "Bearer"} if self.status == 401 else {}
        return Response(content, self.status, {**challenge, **(headers or {})}, media_type=MEDIA_TYPE)


def invalid(errors: Iterable[Mapping[str, Any]]) -> Problem:
    """Of what pydantic found in a request, in one sentence per place."""
    texts: dict[str, list[str]] = {}
    came: dict[str, str] = {}
    for each in errors:
        if each["type"] == "json_invalid":
            return Problem("not-json", "the body is not JSON; send one JSON object, in UTF-8")
        place = _place(each["loc"])
        came.setdefault(place, shortened(each.get("input")))
        texts.setdefault(place, []).append(_expected(each))
    whole = [f"{place} is {came[place]}: {' or '.join(dict.fromkeys(found))}" for place, found in texts.items()]
    if "the body" in came and len(texts) == 1:
        whole[0] += "; the content type is to be application/json"
    left = len(whole) - MOST_ERRORS
    more = f"; and {left} more" if left > 0 else ""
    return Problem("invalid-request", f"{'; '.join(whole[:MOST_ERRORS])}{more}. See /docs for what is expected")


def shortened(value: Any) -> str:
    """What came, of any size and kind, as a piece of a sentence."""
    if isinstance(value, dict | list):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _place(where: tuple[str | int, ...]) -> str:
    """As `basket[2]`; what pydantic adds to tell the members of a union apart is left out."""
    inside = [each for each in where if each not in MEMBERS]
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{shortened(each)[1:-1]}" for each in inside)
    return path.removeprefix(".") or "the body"


def _expected(error: Mapping[str, Any]) -> str:
    kind, message = error["type"], str(error["msg"])
    named = {"missing": "is missing; give it", "extra_forbidden": "no such field is known; leave it out"}
    return named.get(kind, message.replace("Input should be", "expected"))
