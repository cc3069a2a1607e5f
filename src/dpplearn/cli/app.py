"""The program `dpplearn`: its commands and its start."""

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

# Commands and the first lines of their help. A command's module is imported only when the command is called.
COMMANDS = {
    "diagnose": "Measure on held-out baskets which model suits the data.",
    "fit": "Fit a mixture (default) or a DPP to baskets and save it.",
    "score": "Evaluate a model on held-out baskets, next to baselines.",
    "compare": "Compare models, learners and baselines by cross-validation.",
    "recommend": "Recommend items to add to a basket, or to many baskets.",
    "explain": "Explain why a basket makes an item more or less likely.",
    "complete": "Extend a basket to a set of high probability (greedy MAP).",
    "sample": "Draw random sets from a model.",
    "describe": "Summarise a model: sizes, substitutes, complements, segments.",
    "plot": "Plot a model: spectrum, sizes, lift, segments.",
    "add-items": "Add items without data to a model.",
    "update": "Update a model with new baskets and report what changed.",
    "check": "Test recent baskets for drift (exit code 3 if there is any).",
    "prepare": "Turn raw orders into training and test baskets per category.",
    "fit-all": "Fit one model per category of prepared baskets.",
    "serve": "Serve models over HTTP, with web pages.",
}
BRIEF = ("recommend", "complete", "explain")  # finished before a second BLAS thread pays off


def command(name: str) -> Callable[..., None]:
    """Import the function of a command, which is in the module of the same name."""
    from dpplearn.cli.options import with_options

    own = name.replace("-", "_")
    return with_options(getattr(import_module(f"dpplearn.cli.commands.{own}"), own))


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
    """Return the program with the command that the arguments name; without one, with summaries of all commands."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=HELP, epilog=EPILOG)
    app.callback(no_args_is_help=False)(_dpplearn)
    if arguments and arguments[0] in COMMANDS:
        app.command(arguments[0])(command(arguments[0]))
        return app
    app.rich_markup_mode = None  # plain help of the program: importing the formatter would take longer
    for name, summary in COMMANDS.items():
        app.command(name, help=summary)(lambda: None)  # is never called
    return app


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process, without changing streams and signals. Return the exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        warnings.simplefilter("always", InputWarning)
        return exit_code(lambda: run_typer(program(arguments), list(arguments)))


def main() -> int:
    """Run the program and return the exit code."""
    if sys.argv[1:2] and sys.argv[1] in BRIEF:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
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
