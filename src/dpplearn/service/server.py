"""The server: one process or several, that start, take over a worker that died, and end when told."""

from __future__ import annotations

import logging
import os
import socket
import sys
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from dpplearn.errors import InputError
from dpplearn.service.app import create_app
from dpplearn.service.logs import log_to_stderr, tell
from dpplearn.service.metrics import SHARED_FOLDER
from dpplearn.service.settings import Settings
from dpplearn.service.shelves import read_served

LAST_SECONDS = 30  # for what is under way when the server is told to end
WORKER_START_SECONDS = 60  # a worker that does not respond for this long, also while it starts, is replaced
BACKLOG = 2048


@dataclass(frozen=True)
class Address:
    host: str = "127.0.0.1"
    port: int = 8000


def serve(settings: Settings, address: Address, workers: int = 1) -> None:
    """Answer until told to end by a signal; what is under way then is finished."""
    with _listening(address) as listener:
        host, port = listener.getsockname()[:2]
        told = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        log_to_stderr(quiet=settings.quiet)
        if workers == 1:
            app = create_app(settings)
            tell("serving", address=told, workers=1)
            uvicorn.Server(_config(app)).run(sockets=[listener])
            return
        read_served(settings.source)  # an error is told here, once, and not by each worker again and again
        with TemporaryDirectory(prefix="dpplearn-metrics-") as shared:
            os.environ[SHARED_FOLDER] = shared  # the workers find it there
            tell("serving", address=told, workers=workers)
            config = _config(partial(worker_app, settings), workers=workers, factory=True)
            Multiprocess(config, [listener]).run()


def worker_app(settings: Settings) -> FastAPI:
    """What each worker runs. One that finds nothing to serve ends, and the next tries again."""
    log_to_stderr(quiet=settings.quiet)
    try:
        return create_app(settings)
    except InputError as error:
        tell("not_started", logging.ERROR, reason=str(error))
        sys.exit(1)


def _config(app: object, *, workers: int = 1, factory: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        workers=workers,
        factory=factory,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_SECONDS,
        timeout_worker_healthcheck=WORKER_START_SECONDS,
        timeout_keep_alive=30,
        lifespan="on",
    )


def _listening(address: Address) -> socket.socket:
    """A socket that every worker takes connections from."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # The protocol is named: only then does asyncio send at once what it has, and does not wait for 40 ms for more.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address.host, address.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = error.strerror or error
        raise InputError(
            f"cannot listen on {address.host} port {address.port}: {why}; name another --host or --port"
        ) from None
    listener.set_inheritable(True)
    return listener
