"""The program `dpplearn`: its commands, and how it starts."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands import (
    check,
    compare,
    complete,
    demo,
    demo_serve,
    describe,
    diagnose,
    explain,
    export,
    fit,
    fit_all,
    import_,
    map,
    plot,
    prepare,
    recommend,
    recommend_all,
    reproduce,
    sample,
    score,
    serve,
    update,
)
from dpplearn.cli.errors import INTERRUPTS, exit_code, run_typer, show_warning
from dpplearn.cli.output import open_streams
from dpplearn.errors import InputWarning

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo.demo,
    "demo-serve": demo_serve.demo_serve,
    "prepare": prepare.prepare,
    "fit-all": fit_all.fit_all,
    "diagnose": diagnose.diagnose,
    "fit": fit.fit,
    "update": update.update,
    "check": check.check,
    "score": score.score,
    "compare": compare.compare,
    "recommend": recommend.recommend,
    "recommend-all": recommend_all.recommend_all,
    "complete": complete.complete,
    "map": map.map_,
    "sample": sample.sample,
    "describe": describe.describe,
    "explain": explain.explain,
    "plot": plot.plot,
    "export": export.export,
    "import": import_.import_,
    "serve": serve.serve,
    "reproduce": reproduce.reproduce,
}

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Learn determinantal point processes from baskets, and use them.",
    epilog="Exit codes: 0 fine; 1 bad data, model or item; 2 wrong usage; 3 drift, of check alone; 130 ended by "
    "Ctrl-C; 143 ended by SIGTERM. "
    'With --json, standard output holds strict JSON alone: minus infinity is the string "-inf", and a number that does '
    "not exist is null.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpplearn {dpplearn.__version__}")
        raise typer.Exit


@app.callback(no_args_is_help=False)
def _dpplearn(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


for name, command in COMMANDS.items():
    app.command(name)(command)


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process, with the streams and signals as they are; the exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        warnings.simplefilter("always", InputWarning)
        return exit_code(lambda: run_typer(app, "dpplearn", list(arguments)))


def main() -> int:
    """Run the program; the exit code."""
    open_streams()
    INTERRUPTS.listen()
    return run(sys.argv[1:] or ["--help"])
