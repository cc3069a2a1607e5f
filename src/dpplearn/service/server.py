"""The server: one process or several, which replaces workers that die and finishes requests before it ends."""

from __future__ import annotations

import logging
import os
import socket
import sys
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from dpplearn.errors import InputError
from dpplearn.service.app import create_app
from dpplearn.service.loader import KnownCosts, read_store
from dpplearn.service.middleware import SHARED_FOLDER, log_event, log_to_stderr
from dpplearn.service.settings import Settings

UVICORN: dict[str, Any] = {
    "log_config": None,
    "access_log": False,
    "server_header": False,
    "timeout_graceful_shutdown": 30,  # seconds for running requests when the server ends
    "timeout_worker_healthcheck": 60,  # a worker that does not respond for this long, also while it starts, is replaced
    "timeout_keep_alive": 30,
    "lifespan": "on",
}
BACKLOG = 2048
SWITCH_SECONDS = 0.001  # of the GIL: how long the event loop waits for a computing thread (Python: 0.005)


def serve(settings: Settings, host: str = "127.0.0.1", port: int = 8000, workers: int = 1) -> None:
    """Serve until a signal ends the process; running requests are finished."""
    with _listening(host, port) as listener:
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        log_to_stderr(quiet=settings.quiet)
        if workers == 1:
            sys.setswitchinterval(SWITCH_SECONDS)
            app = create_app(settings)
            log_event("serving", address=url, workers=1)
            uvicorn.Server(uvicorn.Config(app, **UVICORN)).run(sockets=[listener])
            return
        # Reports an error once, not in every worker again and again, and measures the costs for all workers.
        costs = {each.version: each.costs for each in read_store(settings.source).models.values()}
        with TemporaryDirectory(prefix="dpplearn-metrics-") as shared:
            os.environ[SHARED_FOLDER] = shared
            log_event("serving", address=url, workers=workers)
            app_of_worker = partial(worker_app, settings, costs)
            config = uvicorn.Config(app_of_worker, workers=workers, factory=True, **UVICORN)
            Multiprocess(config, [listener]).run()


def worker_app(settings: Settings, costs: KnownCosts) -> FastAPI:
    """Return the application of a worker process. A worker that cannot load any model ends, and is started again."""
    log_to_stderr(quiet=settings.quiet)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        return create_app(settings, costs)
    except InputError as error:
        log_event("not_started", logging.ERROR, reason=str(error))
        sys.exit(1)


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket from which every worker accepts connections."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen on {host} port {port}: {error}; name another --host or --port") from None
    # Opened again, the socket knows its protocol, and asyncio sets TCP_NODELAY; else responses are delayed by 40 ms.
    found = socket.socket(fileno=listener.detach())
    found.set_inheritable(True)
    return found
