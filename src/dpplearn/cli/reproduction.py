"""The options of `dpplearn reproduce`, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpplearn.cli.errors import INTERRUPTED, UsageError, complain
from dpplearn.cli.output import Report
from dpplearn.errors import InputError

if TYPE_CHECKING:
    from dpplearn.experiments.report import Report as Written
    from dpplearn.experiments.results import Results

WHAT, RUNNING = "What is run", "How it is run"
DATA, OUTPUT = Path("registries"), Path("report")

DataFolder = Annotated[
    Path,
    typer.Option(
        "--data",
        metavar="DIR",
        rich_help_panel=WHAT,
        help="The folder of the original registries, 1_100_100_100_<category>_regs.csv and _item_names.txt.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        rich_help_panel=WHAT,
        help="A folder with the paper's tables, paper_tables.json, and the authors' own runs, authors_runs/; by "
        "default ../../reference as seen from --data, if it is there.",
    ),
]
Generated = Annotated[
    bool, typer.Option("--generated", rich_help_panel=WHAT, help="Run on generated registries instead of --data.")
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        rich_help_panel=WHAT,
        help="Categories, separated by commas; by default all that the paper has.",
    ),
]
Trials = Annotated[
    int | None,
    typer.Option(min=1, rich_help_panel=WHAT, help="Trials a category; by default 25, and 3 with --quick."),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", rich_help_panel=WHAT, help="Four small categories, 3 trials, small synthetic kernels."),
]
Seed = Annotated[int, typer.Option(min=0, rich_help_panel=WHAT, help="Seed of the splits, the starts and the kernels.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="The folder for the report; by default report, or with --from that of the file. Finished trials that it "
        "holds are not run again.",
    ),
]
Processes = Annotated[
    int | None, typer.Option(min=1, rich_help_panel=RUNNING, help="How many processes; by default one a core.")
]
Fresh = Annotated[bool, typer.Option("--fresh", rich_help_panel=RUNNING, help="Forget the trials that DIR holds.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="Run nothing; draw the report again from this results.parquet."),
]


def check_drawing_only(**given: object) -> None:
    """With --from nothing is run, so that an option which says what to run is a mistake."""
    names = [f"--{name}" for name, value in given.items() if value]
    if names:
        raise UsageError(f"--from runs nothing, so {', '.join(names)} cannot be given with it")


def run_experiments(
    folder: Path,
    data: Path | None,
    reference: Path | None,
    categories: Sequence[str],
    trials: int | None,
    quick: bool,
    seed: int,
    processes: int | None,
    fresh: bool,
    show: bool,
) -> Results:
    """`data` None stands for generated registries."""
    from dpplearn.experiments.plan import FULL, QUICK, QUICK_CATEGORIES
    from dpplearn.experiments.registries import Source
    from dpplearn.experiments.reproduction import reproduce
    from dpplearn.progress import grouped_progress

    scale = QUICK if quick else FULL
    names = [name.strip() for each in categories for name in each.split(",") if name.strip()]
    try:
        return reproduce(
            folder,
            Source(data, seed, _reference(reference, data)),
            categories=names or (QUICK_CATEGORIES if quick else ()),
            scale=replace(scale, trials=trials or scale.trials),
            processes=processes,
            fresh=fresh,
            progress=grouped_progress if show else None,
        )
    except KeyboardInterrupt:
        complain("interrupted", f"the finished trials are kept in {folder}; run the same command again to go on")
        raise typer.Exit(INTERRUPTED) from None


def _reference(given: Path | None, data: Path | None) -> Path | None:
    if given is not None:
        if data is None:
            raise UsageError("--reference compares with runs on the original registries; it cannot go with --generated")
        if not given.is_dir():
            raise InputError(f"--reference {given} is not a folder")
        return given
    if data is None:
        return None
    beside = data.resolve().parent.parent / "reference"
    return beside if beside.is_dir() else None


def reproduction_report(written: Written, results: Results, results_file: Path) -> Report:
    return {
        "report": str(written.path),
        "results": str(results_file),
        "figures": [str(path) for path in written.figures],
        "about": {**asdict(results.about), "finished": results.finished, "trials": len(results.rows)},
        "claims": [asdict(claim) for claim in written.claims],
        "tables": written.tables,
    }
