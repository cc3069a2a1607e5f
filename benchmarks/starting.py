"""How long until something happens: import, help, and the first fit of a fresh install."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Result, best_seconds, seconds

FIRST_FIT = "import dpplearn; dpplearn.fit([[0], [1], [0, 1], []], prior=0)"


def command(*words: str, cache: str | None = None) -> None:
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache is not None else {})}
    subprocess.run(words, check=True, capture_output=True, env=environment)


def run() -> list[Result]:
    program = str(Path(sys.executable).parent / "dpplearn")
    nothing = best_seconds(lambda: command(sys.executable, "-c", "pass"))
    imported = best_seconds(lambda: command(sys.executable, "-c", "import dpplearn"))
    helped = best_seconds(lambda: command(program, "--help"))
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(lambda: command(sys.executable, "-c", FIRST_FIT, cache=cache))
        second = seconds(lambda: command(sys.executable, "-c", FIRST_FIT, cache=cache))
    return [
        Result("import dpplearn", imported - nothing, "s", 0.5, False),
        Result("dpplearn --help", helped, "s", 1, False),
        Result("compiling in the first fit of a fresh install", first - second, "s", 5, False, f"{first:.1f} s in all"),
        Result("a first fit in a second process", second, "s"),
    ]
