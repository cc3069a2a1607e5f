"""dpplearn reproduce: the paper's experiments on the original registries, and a report.

The experiments are slow to load, and are loaded by this command alone.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.options import AsJson, Quiet, check_target
from dpplearn.cli.output import Report, Shown, busy, wants_progress, write
from dpplearn.errors import InputError
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.tables import TextTable
from dpplearn.tools.words import count, shown

if TYPE_CHECKING:
    from dpplearn.experiments.plan import Scale
    from dpplearn.experiments.registries import Source
    from dpplearn.experiments.report.page import Report as Written
    from dpplearn.experiments.results import Results

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
    typer.Option(
        min=1, max=10_000, rich_help_panel=WHAT, help="Trials per category; by default 25, and 3 with --quick."
    ),
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
    int | None, typer.Option(min=1, rich_help_panel=RUNNING, help="How many processes; by default one per core.")
]
Fresh = Annotated[bool, typer.Option("--fresh", rich_help_panel=RUNNING, help="Forget the trials that DIR holds.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="Run nothing; draw the report again from this results.parquet."),
]


def reproduce(
    data: DataFolder = None,
    output: Output = None,
    reference: Reference = None,
    generated: Generated = False,
    categories: Categories = None,
    trials: Trials = None,
    quick: Quick = False,
    seed: Seed = None,
    processes: Processes = None,
    fresh: Fresh = False,
    from_: From = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's experiments on the original registries and write a report. Ctrl-C keeps finished trials."""
    from dpplearn.experiments.report.page import check_installed, write_report

    check_installed()
    asked = Asked(data, reference, generated, categories, trials, quick, seed, processes, fresh)
    folder, results_file, results = obtain(asked, output, from_, wants_progress(quiet))
    with busy("drawing the report", wants_progress(quiet)):
        written = write_report(folder, results)
    write(reproduction_report(written, results, results_file), reproduction_tables, as_json)


class Asked(NamedTuple):
    """The options that say what to run; all are empty where nothing was said."""

    data: Path | None
    reference: Path | None
    generated: bool
    categories: list[str] | None
    trials: int | None
    quick: bool
    seed: int | None
    processes: int | None
    fresh: bool

    def check(self) -> None:
        from dpplearn.experiments.trials.authors import RUNS, TABLES

        for name in ("data", "reference"):
            if self.generated and getattr(self, name) is not None:
                raise UsageError(f"--generated and --{name} exclude each other: one is for the original registries")
        if self.reference is not None and not any((self.reference / name).exists() for name in (TABLES, RUNS)):
            raise InputError(f"--reference {self.reference} has neither {TABLES} nor a folder {RUNS}")

    @property
    def source(self) -> Source:
        from dpplearn.experiments.registries import Source

        data = None if self.generated else self.data or DATA
        reference = self.reference
        if reference is None and data is not None:
            beside = data.resolve().parent.parent / "reference"
            reference = beside if beside.is_dir() else None
        return Source(data, SEED if self.seed is None else self.seed, reference)

    @property
    def scale(self) -> Scale:
        from dpplearn.experiments.plan import FULL, QUICK

        scale = QUICK if self.quick else FULL
        return replace(scale, trials=self.trials or scale.trials)

    def chosen(self, there: Sequence[str]) -> list[str]:
        """The categories named, or those of the quick run, as far as they are there; none stands for all."""
        from dpplearn.experiments.plan import QUICK_CATEGORIES

        names = [name.strip() for each in self.categories or () for name in each.split(",") if name.strip()]
        return names or [name for name in QUICK_CATEGORIES if self.quick and name in there]


def obtain(asked: Asked, output: Path | None, from_: Path | None, progress: bool) -> tuple[Path, Path, Results]:
    """The folder for the report, the file of results, and the results themselves: read, or run for."""
    if from_ is None:
        return _run(asked, output or OUTPUT, progress)
    given = [f"--{name}" for name, value in asked._asdict().items() if value is not None and value is not False]
    if given:
        raise UsageError(f"--from runs nothing, so {', '.join(given)} cannot be given with it")
    return _read(from_, output or from_.parent)


def _read(file: Path, folder: Path) -> tuple[Path, Path, Results]:
    from dpplearn.experiments.report.page import FILES
    from dpplearn.experiments.reproduction import make_folder
    from dpplearn.experiments.results import read_results

    _check_targets(folder, FILES, (file,))
    results = read_results(file)
    make_folder(folder)
    return folder, file, results


def _run(asked: Asked, folder: Path, progress: bool) -> tuple[Path, Path, Results]:
    from dpplearn.experiments.report.page import FILES
    from dpplearn.experiments.reproduction import JOURNAL, RESULTS, reproduce
    from dpplearn.experiments.trials.authors import reference_files

    asked.check()
    source = asked.source
    _check_targets(folder, (*FILES, RESULTS, JOURNAL), (*source.files, *reference_files(source.reference)))
    try:
        with shown_progress(progress) as bars:
            results = reproduce(
                folder,
                source,
                categories=asked.chosen(source.categories),
                scale=asked.scale,
                processes=asked.processes,
                fresh=asked.fresh,
                command=shlex.join(["dpplearn", *sys.argv[1:]]),
                progress=bars,
            )
    except KeyboardInterrupt:
        complain("interrupted", f"the finished trials are kept in {folder}; run the same command again to go on")
        raise typer.Exit(INTERRUPTS.exit_code) from None
    return folder, folder / RESULTS, results


def _check_targets(folder: Path, names: Sequence[str], sources: Sequence[Path]) -> None:
    """In a folder that is still to be made there is nothing to lose."""
    for name in names if folder.is_dir() else ():
        check_target("--output", folder / name, sources)


def reproduction_report(written: Written, results: Results, results_file: Path) -> Report:
    return {
        "report": str(written.path),
        "results": str(results_file),
        "figures": [str(path) for path in written.figures],
        "about": {**asdict(results.about), "finished": results.finished, "trials": len(results.rows)},
        "claims": [asdict(claim) for claim in written.claims],
        "tables": written.tables,
    }


def reproduction_tables(report: Report) -> Iterator[Shown]:
    from dpplearn.experiments.report.sections import GAIN_COLUMNS, gain_lines

    about = report["about"]
    yield TextTable(
        f"The paper's claims on {about['data']} registries ({count(about['trials'], 'trial')}, seed {about['seed']})",
        "What the paper says, and whether it holds here.",
        ["claim~", "verdict"],
        [(each["paper"], each["verdict"]) for each in report["claims"]],
    )
    for name, title in (("wishart", "Wishart start, all data"), ("moments", "Moments start, all data")):
        table = report["tables"][name]
        if table is not None:
            yield TextTable(
                f"{title}: EM's gain over K-Ascent in test log-likelihood, median [quartiles]",
                "Above 0, EM predicts registries that it has not seen better than K-Ascent does.",
                GAIN_COLUMNS[:5],
                [line[:5] for line in gain_lines(table)],
            )
    yield f"report: {shown(report['report'])}, with {len(report['figures'])} figures as files beside it"
    yield f"results: {shown(report['results'])}, one row per trial; --from draws the report again"
