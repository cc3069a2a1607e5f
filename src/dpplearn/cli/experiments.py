"""What the options of `dpplearn reproduce` come to. Imported by that command alone: it loads all of the experiments."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import typer

from dpplearn.cli.errors import UsageError, complain
from dpplearn.cli.output import Report
from dpplearn.cli.process import INTERRUPTS
from dpplearn.cli.reproduction import DATA, OUTPUT, SEED
from dpplearn.cli.targets import check_target
from dpplearn.errors import InputError
from dpplearn.experiments.plan import FULL, QUICK, QUICK_CATEGORIES, Scale
from dpplearn.experiments.registries import Source
from dpplearn.experiments.report.page import FILES
from dpplearn.experiments.report.page import Report as Written
from dpplearn.experiments.reproduction import JOURNAL, RESULTS, make_folder, reproduce
from dpplearn.experiments.results import Results, read_results
from dpplearn.experiments.trials.authors import RUNS, TABLES, reference_files
from dpplearn.tools.progress import shown_progress


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
        for name in ("data", "reference"):
            if self.generated and getattr(self, name) is not None:
                raise UsageError(f"--generated and --{name} exclude each other: one is for the original registries")
        if self.reference is not None and not any((self.reference / name).exists() for name in (TABLES, RUNS)):
            raise InputError(f"--reference {self.reference} has neither {TABLES} nor a folder {RUNS}")

    @property
    def source(self) -> Source:
        data = None if self.generated else self.data or DATA
        reference = self.reference
        if reference is None and data is not None:
            beside = data.resolve().parent.parent / "reference"
            reference = beside if beside.is_dir() else None
        return Source(data, SEED if self.seed is None else self.seed, reference)

    @property
    def scale(self) -> Scale:
        scale = QUICK if self.quick else FULL
        return replace(scale, trials=self.trials or scale.trials)

    def chosen(self, there: Sequence[str]) -> list[str]:
        """The categories named, or those of the quick run, as far as they are there; none stands for all."""
        names = [name.strip() for each in self.categories or () for name in each.split(",") if name.strip()]
        return names or [name for name in QUICK_CATEGORIES if self.quick and name in there]


def obtain(asked: Asked, output: Path | None, from_: Path | None, show: bool) -> tuple[Path, Path, Results]:
    """The folder for the report, the file of results, and the results themselves: read, or run for."""
    if from_ is not None:
        given = [f"--{name}" for name, value in asked._asdict().items() if value is not None and value is not False]
        if given:
            raise UsageError(f"--from runs nothing, so {', '.join(given)} cannot be given with it")
        folder = output or from_.parent
        _check_targets(folder, FILES, (from_,))
        results = read_results(from_)
        make_folder(folder)
        return folder, from_, results
    asked.check()
    folder, source = output or OUTPUT, asked.source
    _check_targets(folder, (*FILES, RESULTS, JOURNAL), (*source.files, *reference_files(source.reference)))
    try:
        with shown_progress(show) as progress:
            results = reproduce(
                folder,
                source,
                categories=asked.chosen(source.categories),
                scale=asked.scale,
                processes=asked.processes,
                fresh=asked.fresh,
                command=shlex.join(["dpplearn", *sys.argv[1:]]),
                progress=progress,
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
