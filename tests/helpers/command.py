"""The commands of the program, run in this process: starting one takes longer than most of them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import warnings
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

from dpplearn.cli import app


def run(*arguments: object, cwd: Path | None = None) -> CompletedProcess[str]:
    """On a screen of 80 columns, with the warnings of a program and not those of tests."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, COLUMNS="80"),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("default", UserWarning)
        code = app.run(list(map(str, arguments)))
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def parsed(text: str) -> Any:
    """Strict JSON: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def answer_of(done: CompletedProcess[str]) -> Any:
    """What it wrote as JSON, without a complaint."""
    assert (done.returncode, done.stderr) == (0, "")
    return parsed(done.stdout)


def table_of(done: CompletedProcess[str]) -> str:
    """What it wrote for a screen of 80 columns, without a complaint."""
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    return done.stdout


def answer(*arguments: object) -> Any:
    return answer_of(run(*arguments, "--json"))


def table(*arguments: object) -> str:
    return table_of(run(*arguments))


def both(*arguments: object) -> tuple[Any, str]:
    """The answer as JSON and as tables."""
    return answer(*arguments), table(*arguments)
