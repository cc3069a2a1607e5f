"""How long until something happens: import, help, and the first fit of a fresh install."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import dpplearn as dl
from benchmarks.measure import Result, best_seconds, seconds

FIRST_FIT = "import dpplearn; dpplearn.fit_dpp([[0], [1], [0, 1], []], shrinkage=0)"


def command(*words: str, cache: str | None = None) -> None:
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache is not None else {})}
    subprocess.run(words, check=True, capture_output=True, env=environment)


def processor_seconds(*words: str) -> float:
    """Of the program, the least of five runs."""

    def used() -> float:
        of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return of_children.ru_utime + of_children.ru_stime

    times = []
    for _ in range(5):
        before = used()
        command(*words)
        times.append(used() - before)
    return min(times)


def one_recommendation(program: str) -> float:
    """Of a mixture of the generated registries of feeding."""
    registries = dl.datasets.make_registries("feeding", 5000, rng=0)
    with tempfile.TemporaryDirectory() as folder:
        model = dl.fit(registries, rng=0).model
        model.save(f"{folder}/model.safetensors")
        return processor_seconds(program, "recommend", f"{folder}/model.safetensors", str(model.items[0]))


def run() -> list[Result]:
    program = str(Path(sys.executable).parent / "dpplearn")
    nothing = best_seconds(lambda: command(sys.executable, "-c", "pass"))
    imported = best_seconds(lambda: command(sys.executable, "-c", "import dpplearn; dpplearn.fit"))
    helped = best_seconds(lambda: command(program, "--help"))
    with tempfile.TemporaryDirectory() as cache:
        first = seconds(lambda: command(sys.executable, "-c", FIRST_FIT, cache=cache))
        second = seconds(lambda: command(sys.executable, "-c", FIRST_FIT, cache=cache))
    return [
        Result("import dpplearn and its fit", imported - nothing, "s", 0.5, False),
        Result("dpplearn --help", helped, "s", 1, False),
        Result("one dpplearn recommend, processor time", one_recommendation(program), "s", 0.6, False),
        Result("compiling in the first fit of a fresh install", first - second, "s", 5, False, f"{first:.1f} s in all"),
        Result("a first fit in a second process", second, "s"),
    ]
