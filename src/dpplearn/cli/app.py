"""The program `dpplearn`: its commands, and how it starts."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.errors import INTERRUPTS, exit_code, run_typer, show_warning
from dpplearn.errors import InputWarning

COMMANDS = (
    "demo",
    "demo-serve",
    "prepare",
    "fit-all",
    "diagnose",
    "fit",
    "update",
    "check",
    "score",
    "compare",
    "recommend",
    "recommend-all",
    "complete",
    "sample",
    "describe",
    "explain",
    "plot",
    "add-items",
    "serve",
    "reproduce",
)
BRIEF = ("recommend", "complete", "explain")  # over before a second thread of BLAS has begun to be of use


def command(name: str) -> Callable[..., None]:
    """The function of a command, in the module of the same name; these are loaded when they are wanted."""
    own = name.replace("-", "_")
    found: Callable[..., None] = getattr(import_module(f"dpplearn.cli.commands.{own}"), own)
    return found


HELP = "Learn determinantal point processes from baskets, and use them."
EPILOG = (
    "Exit codes: 0 fine; 1 bad data, model or item; 2 wrong usage; 3 drift, of check alone; 130 ended by Ctrl-C; 143 "
    "ended by SIGTERM. "
    'With --json, standard output holds strict JSON alone: minus infinity is the string "-inf", and a number that does '
    "not exist is null. Long work says how far it is on standard error, where that is no terminal in a line now and "
    "then: every DPPLEARN_PROGRESS_SECONDS, if that is in the environment."
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpplearn {dpplearn.__version__}")
        raise typer.Exit


def _dpplearn(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def program(arguments: Sequence[str] = ()) -> typer.Typer:
    """With the command that the arguments begin with, or else with all of them, as help and mistakes need."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=HELP, epilog=EPILOG)
    app.callback(no_args_is_help=False)(_dpplearn)
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        app.command(name)(command(name))
    return app


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process, with the streams and signals as they are; the exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        warnings.simplefilter("always", InputWarning)
        return exit_code(lambda: run_typer(program(arguments), "dpplearn", list(arguments)))


def main() -> int:
    """Run the program; the exit code."""
    if sys.argv[1:2] and sys.argv[1] in BRIEF:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is loaded, which nothing here has done
    _prepare_streams()
    INTERRUPTS.listen()
    return run(sys.argv[1:] or ["--help"])


def _prepare_streams() -> None:
    """Discard what is written to closed streams, and make standard output buffered.

    Unbuffered (PYTHONUNBUFFERED), Python ignores that a pipe took only a part of what was written.
    """
    out = sys.stdout
    if out is not None:
        sys.stdout = open(out.fileno(), "w", encoding=out.encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115
