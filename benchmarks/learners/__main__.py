"""Compare all learners on all problems: `python -m benchmarks.learners`. A second call continues."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import __main__ as benchmarks
from benchmarks.learners.contest import CONTESTANTS, Record, compete
from benchmarks.learners.problems import CATEGORIES, problem_names, problem_of, registries
from benchmarks.learners.scores import GAPS, Scores, calibration, targets
from benchmarks.resuming import all_rows

STARTS = ("moments", "wishart")

Job = tuple[str, str, str, float]  # problem, start, learner, limit in seconds


def contest(seconds: float, large_seconds: float) -> Scores:
    """Run every learner on every problem, one after another because they are timed."""
    jobs = [
        (problem, start, learner, seconds if problem in CATEGORIES else large_seconds)
        for problem in problem_names()
        for start in STARTS
        for learner in CONTESTANTS
    ]

    def run(job: Job) -> dict[str, Any]:
        name, start, learner, limit = job
        return asdict(compete(problem_of(name), start, learner, limit))

    return Scores([Record(**row) for row in all_rows("learners", jobs, run).values()])


def runs_table(scores: Scores) -> Table:
    heads = (f"to {gap}: ms / evaluations" for gap in GAPS)
    table = Table("problem", "start", "learner", *heads, "end below best", "train", "test")
    for r in scores.records:
        cells = []
        for gap in GAPS:
            taken, evaluations = scores.reached(r, gap)
            cells.append(f"{taken * 1e3:.1f} / {evaluations:g}" if np.isfinite(taken) else "–")
        end = (f"{scores.short(r):.5f}", f"{r.log_likelihood[-1]:.4f}", f"{r.test:.4f}")
        table.add_row(r.problem, r.start, r.learner, *cells, *end)
    return table


def summary_table(scores: Scores) -> Table:
    """A line per learner and start: over the registries, how many reached each gap, and the median time of those."""
    heads = (f"to {gap}: reached, median ms / evaluations" for gap in GAPS)
    table = Table("learner", "start", *heads, "end below best, median", "largest", title="the registries")
    for learner in CONTESTANTS:
        for start in STARTS:
            records = [scores.of(learner, problem, start) for problem in scores.registries]
            short = [scores.short(record) for record in records]
            reached = (_reached(scores, records, gap) for gap in GAPS)
            table.add_row(learner, start, *reached, f"{np.median(short):.5f}", f"{max(short):.5f}")
    return table


def _reached(scores: Scores, records: list[Record], gap: float) -> str:
    pairs = [pair for record in records if np.isfinite((pair := scores.reached(record, gap))[0])]
    if not pairs:
        return f"0 of {len(records)}"
    times, evaluations = zip(*pairs, strict=True)
    return f"{len(pairs)} of {len(records)}, {np.median(times) * 1e3:.1f} / {np.median(evaluations):g}"


def calibration_table(scores: Scores) -> Table:
    table = Table("learner", "tolerance", "runs", "left / tolerance, median", "largest", title="the stopping rule")
    for (learner, tol), ratios in calibration(scores).items():
        table.add_row(learner, tol, str(len(ratios)), f"{np.median(ratios):.2f}", f"{max(ratios):.2f}")
    return table


def main(arguments: list[str]) -> int:
    """Run every learner on every problem from both starts and print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learners", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="limit of a run on the registries")
    parser.add_argument("--large-seconds", type=float, default=120, help="limit of a run on the synthetic problems")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 190)
    for learner in CONTESTANTS:  # compile and load everything before anything is timed
        compete(next(iter(registries())), "wishart", learner, 0.2)
    scores = contest(options.seconds, options.large_seconds)
    results = targets(scores)
    for table in (runs_table(scores), summary_table(scores), calibration_table(scores), benchmarks.table(results)):
        console.print(table)
    return 1 if any(result.reached is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
