"""Authentication by key, and the limit on the size of a request body."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpplearn.errors import InputError
from dpplearn.service.problems import Problem

SHORTEST_KEY = 16  # characters


def read_keys(path: Path) -> tuple[bytes, ...]:
    """The digests of the keys in a file, one per line."""
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key file {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    keys = [line for line in lines if line]
    if not keys:
        raise InputError(f"the key file {path} is empty; write a key of {SHORTEST_KEY} characters or more into it")
    if min(map(len, keys)) < SHORTEST_KEY:
        raise InputError(f"the key file {path} has a key of fewer than {SHORTEST_KEY} characters; choose a longer one")
    return tuple(_digest(key.encode()) for key in keys)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        if not _has_key(request.headers, keys):
            raise Problem("no-key", "missing or invalid key; send it as Authorization: Bearer KEY or as X-API-Key: KEY")

    return guard


def _has_key(headers: Headers, keys: tuple[bytes, ...]) -> bool:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")
    digest = _digest(given.encode("latin-1"))  # the encoding of header values in ASGI
    # Constant-time comparison: the time must not depend on how much of the key is right.
    return any(hmac.compare_digest(digest, key) for key in keys)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


class BodyLimit:
    """Reads the body before anything is done with it, and refuses one that is too large as soon as that shows."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdecimal() and int(told[:20]) > self._most:
            await self._refuse(scope, receive, send)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self._most:
                await self._refuse(scope, receive, send)
                return
            if not message.get("more_body", False):
                break
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_whole() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, receive_whole, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"the body has more than {self._most} bytes, which is the most that is taken; send less at a time"
        await Problem("too-large", detail).response({"connection": "close"})(scope, receive, send)
