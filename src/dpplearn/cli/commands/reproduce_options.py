"""The options of `dpplearn reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

WHAT, RUNNING = "What is run", "How it is run"
DATA, OUTPUT, SEED = Path("registries"), Path("report"), 0

DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        rich_help_panel=WHAT,
        help=f"The folder of the original registries, 1_100_100_100_<category>_regs.csv and _item_names.txt; by "
        f"default {DATA}.",
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
    typer.Option(min=1, max=10_000, rich_help_panel=WHAT, help="Trials a category; by default 25, and 3 with --quick."),
]
Quick = Annotated[
    bool,
    typer.Option("--quick", rich_help_panel=WHAT, help="Four small categories, 3 trials, small synthetic kernels."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        min=0, rich_help_panel=WHAT, help=f"Seed of the splits, the starts and the kernels; by default {SEED}."
    ),
]
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
