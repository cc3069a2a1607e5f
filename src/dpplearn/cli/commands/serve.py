"""dpplearn serve: serve models over HTTP."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import FILE
from dpplearn.cli.output import Display
from dpplearn.errors import InputError


def serve(
    source: Annotated[Path, typer.Argument(metavar="STORE")],
    display: Display,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64)] = 1,
    key_file: Annotated[Path | None, FILE] = None,
    no_key: Annotated[bool, typer.Option("--no-key")] = False,
    cors: Annotated[list[str] | None, typer.Option(metavar="ORIGIN")] = None,
    max_cost: Annotated[float, typer.Option(min=0.001)] = 0.5,
    log_baskets: Annotated[bool, typer.Option("--log-baskets")] = False,
) -> None:
    """Serve models over HTTP, with web pages.

    Models that are replaced on disk are reloaded while the service runs. The log goes to standard error, one line of
    JSON per request.

    Parameters
    ----------
    source
        A model store of dpplearn fit-all, a folder of model files, or one model file.
    host
        The address to listen on.
    port
        The port; 0 for a free one.
    workers
        Number of processes.
    key_file
        File of keys, one per line; clients must send one of them.
    no_key
        Allow other machines to connect without a key.
    cors
        Allow pages of this origin, such as https://shop.example; repeat for more.
    max_cost
        CPU-seconds that one request may take; more expensive ones are rejected.
    log_baskets
        Log requests with their items.
    """
    try:
        from dpplearn.service.server import serve as run
        from dpplearn.service.settings import Settings, is_loopback, read_keys
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; pip install 'dpplearn[serve]'") from None
    if key_file is None and not no_key and not is_loopback(host):
        raise UsageError(
            f"--host {host} is reachable from other machines without a key; pass --key-file, or --no-key to allow that"
        )
    keys, origins = () if key_file is None else read_keys(key_file), tuple(cors or ())
    settings = Settings(source, keys, max_cost, origins=origins, log_baskets=log_baskets, quiet=display.quiet)
    with suppress(KeyboardInterrupt):  # uvicorn raises it again after shutdown
        run(settings, host, port, workers)
