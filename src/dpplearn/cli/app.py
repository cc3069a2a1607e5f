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
    "diagnose",
    "fit",
    "score",
    "compare",
    "recommend",
    "explain",
    "complete",
    "sample",
    "describe",
    "plot",
    "add-items",
    "update",
    "check",
    "prepare",
    "fit-all",
    "recommend-all",
    "serve",
)
BRIEF = ("recommend", "complete", "explain")  # over before a second thread of BLAS has begun to be of use


def command(name: str) -> Callable[..., None]:
    """The function of a command, in the module of the same name; these are loaded when they are wanted."""
    own = name.replace("-", "_")
    found: Callable[..., None] = getattr(import_module(f"dpplearn.cli.commands.{own}"), own)
    return found


HELP = "Fit determinantal point processes, and mixtures of them, to baskets; recommend, evaluate and serve."
EPILOG = (
    "Exit codes: 0 success; 1 invalid data, model or item; 2 wrong usage; 3 drift (check); 130 Ctrl-C; 143 SIGTERM. "
    'With --json, standard output holds only strict JSON: minus infinity is "-inf", an undefined number is null. '
    "Progress goes to standard error; if that is not a terminal, one line every DPPLEARN_PROGRESS_SECONDS."
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
