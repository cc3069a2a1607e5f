"""Compare all learners on all problems: `python -m benchmarks.learners`. Finished runs are kept in a file."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import dpplearn as dl
from benchmarks import __main__ as benchmarks
from benchmarks.learners.contest import CONTESTANTS, Record, compete
from benchmarks.learners.problems import SIZES, Case, problem_names, problem_of, registries, source
from benchmarks.learners.scores import GAP, GAPS, Scores, asked_for, calibration
from benchmarks.measure import Result, best_seconds
from benchmarks.resuming import all_rows, without_tracebacks

FOLDER = Path(__file__).parents[1] / "results"
STARTS = ("moments", "wishart")


def contest(path: Path, seconds: float, large_seconds: float, sizes: tuple[int, ...], fresh: bool) -> Scores:
    """Run every learner on every problem, one after another because they are timed."""

    def run(job: tuple[str, str, str]) -> dict[str, Any]:
        problem = problem_of(job[0])
        return asdict(compete(problem, *job[1:], seconds if problem.is_registry else large_seconds))

    rows = all_rows(
        path,
        list(product(problem_names(sizes), STARTS, CONTESTANTS)),
        run,
        columns=[field.name for field in fields(Record)],
        key=lambda row: (row["problem"], row["start"], row["learner"]),
        fresh=fresh,
        seconds=seconds,
        large_seconds=large_seconds,
    )
    return Scores([Record(**row) for row in rows])


def warm(problem: Case) -> None:
    """Compile and load everything before anything is timed."""
    for learner in CONTESTANTS:
        compete(problem, "wishart", learner, 0.2)


def runs_table(scores: Scores) -> Table:
    heads = (f"to {gap}: ms / evaluations" for gap in GAPS)
    table = Table("problem", "start", "learner", *heads, "end below best", "train", "test", "iterations", "stop")
    for r in scores.records:
        cells = []
        for gap in GAPS:
            taken, evaluations = scores.reached(r, gap)
            cells.append(f"{taken * 1e3:.1f} / {evaluations:g}" if np.isfinite(taken) else "–")
        end = (f"{scores.short(r):.5f}", f"{r.log_likelihood[-1]:.4f}", f"{r.test:.4f}", str(r.n_iter), r.stop.lower())
        table.add_row(r.problem, r.start, r.learner, *cells, *end)
    return table


def summary_table(scores: Scores) -> Table:
    """A line per learner and start: over the registries, how many reached each gap, and the median time of those."""
    heads = (f"to {gap}: reached, median ms / evaluations" for gap in GAPS)
    table = Table("learner", "start", *heads, "end below best, median", "largest", title="the registries")
    for learner in CONTESTANTS:
        for start in STARTS:
            found = [scores.of(learner, problem, start) for problem in scores.registries]
            rows = [record for record in found if record is not None]
            if rows:
                short = [scores.short(record) for record in rows]
                table.add_row(
                    learner,
                    start,
                    *(_reached(scores, rows, gap) for gap in GAPS),
                    f"{np.median(short):.5f}",
                    f"{max(short):.5f}",
                )
    return table


def _reached(scores: Scores, rows: list[Record], gap: float) -> str:
    pairs = [pair for record in rows if np.isfinite((pair := scores.reached(record, gap))[0])]
    if not pairs:
        return f"0 of {len(rows)}"
    times, evaluations = zip(*pairs, strict=True)
    return f"{len(pairs)} of {len(rows)}, {np.median(times) * 1e3:.1f} / {np.median(evaluations):g}"


def wall_time(scores: Scores) -> Result:
    """All the registries by `fit`, each stopped by a callback within 0.003 nats of the best: everything counts."""

    def all_of_them() -> None:
        for problem, train in trains:
            enough = scores.best(problem) - GAP
            fit = dl.fit_dpp(
                train, shrinkage=0, callback=lambda now, enough=enough: now.log_likelihood >= enough, nonempty=False
            )
            assert fit.log_likelihood >= enough, f"{problem}: fit stopped by itself before {GAP} nats"

    trains = [(problem.name, problem.train) for problem in registries()]
    what = f"{len(trains)} categories fitted to {GAP} nats by fit, wall time"
    return Result(what, best_seconds(all_of_them, 3), "s", 1, False, "data already read")


def calibration_table(scores: Scores) -> Table:
    table = Table("learner", "tolerance", "runs", "left / tolerance, median", "largest", title="the stopping rule")
    for learner, by_tol in calibration(scores).items():
        for tol, line in by_tol.items():
            table.add_row(learner, tol, str(line["runs"]), f"{line['median']:.2f}", f"{line['largest']:.2f}")
    return table


def main(
    seconds: Annotated[float, typer.Option(help="Limit of a run on the registries.")] = 5,
    large_seconds: Annotated[float, typer.Option(help="Limit of a run on the synthetic problems.")] = 120,
    sizes: Annotated[str, typer.Option(help="Numbers of items of the synthetic problems.")] = ",".join(map(str, SIZES)),
    fresh: Annotated[bool, typer.Option(help="Discard the runs of earlier calls.")] = False,
    output: Annotated[Path, typer.Option(help="Folder of the results.")] = FOLDER,
) -> None:
    """Run every learner on every problem from both starts; print tables and write a JSON file."""
    console = Console(width=None if Console().is_terminal else 190)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "learners.jsonl"
    warm(next(iter(registries())))
    with without_tracebacks(path):
        scores = contest(path, seconds, large_seconds, tuple(int(size) for size in sizes.split(",") if size), fresh)
    results: list[Result] = [*asked_for(scores), wall_time(scores)]
    for table in (runs_table(scores), summary_table(scores), calibration_table(scores), benchmarks.table(results)):
        console.print(table)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "dpplearn": dl.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "data": source().kind,
        "limits": {"registries": seconds, "synthetic": large_seconds},
        "best": {problem: scores.best(problem) for problem in scores.problems},
        "results": [{**asdict(result), "reached": result.reached} for result in results],
        "calibration": calibration(scores),
        "runs": [
            {
                **{name: getattr(r, name) for name in ("problem", "start", "learner", "n_iter", "stop", "test")},
                "train": r.log_likelihood[-1],
                "below_best": scores.short(r),
                "to_gap": {str(gap): scores.reached(r, gap) for gap in GAPS},
            }
            for r in scores.records
        ],
    }
    text = json.dumps(finite(report), indent=1, allow_nan=False)
    (output / "learners.json").write_text(text + "\n", encoding="utf-8")
    console.print(f"written to {output}: " + ", ".join(sorted(path.name for path in output.iterdir())))
    if any(result.reached is False for result in results):
        raise typer.Exit(1)


def finite(value: Any) -> Any:
    """Infinity, which JSON does not have, as null."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


if __name__ == "__main__":
    typer.run(main)
