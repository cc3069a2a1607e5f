"""Measure speed and memory: `python -m benchmarks [NAME]...`, by default all of NAMES."""

from __future__ import annotations

import sys
from importlib import import_module

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result
from dpplearn.utils.progress import shown_progress

NAMES = (
    "starting",
    "learning",
    "statistics",
    "sampling",
    "using",
    "large_using",
    "prepare",
    "recommend_all",
    "service",
)


def table(results: list[Result]) -> Table:
    shown = Table("what", "value", "target", "reached", "detail", title="benchmarks")
    for result in results:
        bound = f"{'≥' if result.at_least else '≤'} {result.target:g}" if result.target is not None else ""
        mark = {True: "yes", False: "NO", None: ""}[result.reached]
        shown.add_row(result.what, f"{result.figure:.3g} {result.unit}", bound, mark, result.detail)
    return shown


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 160)
    results: list[Result] = []
    for name in names or NAMES:
        with shown_progress(transient=True) as progress:
            progress.bar(f"measuring {name}")
            results += import_module(f"benchmarks.{name}").run()
    console.print(table(results))
    return 1 if any(result.reached is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
