"""The service in this process, and in one of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from dpplearn.service.app import create_app
from dpplearn.service.settings import Settings
from helpers.program import PATIENCE, begin, is_running, wait_for

KEYS = ("type", "title", "status", "detail")  # that every problem has


class Client:
    """Asks a service in this process; what fails in it is an answer, as it would be of a server."""

    def __init__(self, source: Path, **settings: Any) -> None:
        self.app = create_app(Settings(source, **settings))
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://here")

    def ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        return asyncio.run(self._client.request(method, path, **how))

    def get(self, path: str, **how: Any) -> httpx.Response:
        return self.ask("GET", path, **how)

    def post(self, path: str, **how: Any) -> httpx.Response:
        return self.ask("POST", path, **how)

    def refresh(self) -> None:
        """Look at once whether the store was replaced."""
        self.app.state.service.store.refresh()


def problem_of(response: Any, status: int) -> dict[str, Any]:
    """Return the problem document of a response, which must have this status."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert [name for name in KEYS if not found.get(name)] == []
    assert found["status"] == status
    return found


def answer_of(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


class Server:
    """`dpplearn serve` in a process of its own, on a free port."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self.log = process, log
        wait_for(lambda: bool(self.events("serving")), self.process)
        self.url = self.events("serving")[0]["address"].rstrip("/")
        wait_for(self._is_ready, self.process)

    def _is_ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def all_events(self) -> list[dict[str, Any]]:
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [each for each in self.all_events() if each["event"] == name]

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        """The status and the body, over a connection of its own."""
        with closing(Connection(self.url)) as connection:
            return connection.ask(method, path, body, headers)

    def workers(self) -> list[int]:
        """Return the process ids of the running workers; the log may contain some that were replaced."""
        found = [each["event"] for each in self.all_events() if each["event"].startswith("Started server process")]
        return [pid for pid in (int(each.split("[")[1].rstrip("]")) for each in found) if is_running(pid)]

    def stop(self) -> int:
        """Ask the server to end and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


class Connection(HTTPConnection):
    """One connection, kept open, which never connects again by itself."""

    auto_open = 0

    def __init__(self, url: str) -> None:
        super().__init__(urlsplit(url).netloc, timeout=PATIENCE)
        self.connect()

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body)
        self.request(method, path, content, {"content-type": "application/json", **(headers or {})})
        return self.read()

    def read(self) -> tuple[int, bytes]:
        response = self.getresponse()
        return response.status, response.read()


@contextmanager
def server(source: Path, log: Path, *options: object) -> Iterator[Server]:
    """Start a server, and in the end kill it and its workers, if any still run."""
    call = ("serve", source, "--port", 0, *options)
    quiet = subprocess.DEVNULL  # workers that outlive the server would keep a pipe open
    with (
        open(log, "w", encoding="utf-8") as file,
        begin(*call, stdout=quiet, stderr=file, OPENBLAS_NUM_THREADS="1") as process,
    ):
        try:
            yield Server(process, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
