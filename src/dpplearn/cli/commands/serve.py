"""dpplearn serve: models over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import Quiet
from dpplearn.errors import InputError

LIMITS, ACCESS = "Limits per request", "Access"


def _limit(help: str) -> Any:
    return typer.Option(min=1, rich_help_panel=LIMITS, help=help)


def serve(
    source: Annotated[
        Path, typer.Argument(metavar="SHELF", help="A shelf of dpplearn fit-all, a folder of model files, or one file.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many processes.")] = 1,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", rich_help_panel=ACCESS, help="A file of keys, one per line; every client must send one."
        ),
    ] = None,
    no_key: Annotated[
        bool, typer.Option("--no-key", rich_help_panel=ACCESS, help="Listen beyond this machine without a key.")
    ] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN",
            rich_help_panel=ACCESS,
            help="Pages of this origin, as https://shop.example, may call the service; repeat for more.",
        ),
    ] = None,
    max_body: Annotated[int, _limit("Bytes of a body.")] = 1 << 20,
    max_basket: Annotated[int, _limit("Items of a basket.")] = 500,
    max_k: Annotated[int, _limit("Items of an answer.")] = 100,
    max_batch: Annotated[int, _limit("Rows of a batch, and sets of a sample.")] = 100,
    max_explain: Annotated[int, _limit("Items of a basket whose influence is asked for.")] = 50,
    log_baskets: Annotated[bool, typer.Option("--log-baskets", help="Log what was asked, with its items.")] = False,
    poll: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks whether the shelf was replaced.")
    ] = 1.0,
    quiet: Quiet = False,
) -> None:
    """Serve models over HTTP, with web pages.

    Models that are replaced on disk are reloaded while the service runs. The log goes to standard error, one line of
    JSON per request.
    """
    try:
        from dpplearn.service.security import is_loopback, read_keys
        from dpplearn.service.server import Address
        from dpplearn.service.server import serve as run
        from dpplearn.service.settings import Limits, Settings
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; pip install 'dpplearn[serve]'") from None
    if key_file is None and not no_key and not is_loopback(host):
        raise UsageError(
            f"--host {host} would let others ask without a key; give --key-file, or --no-key if that is meant"
        )
    settings = Settings(
        source,
        read_keys(key_file) if key_file is not None else (),
        Limits(max_body, max_basket, max_k, max_batch, max_explain),
        tuple(cors or ()),
        log_baskets,
        quiet,
        poll,
    )
    try:
        run(settings, Address(host, port), workers)
    except KeyboardInterrupt:  # how uvicorn passes on the signal that ended it, when all is done
        return
