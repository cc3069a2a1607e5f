"""Command line: python -m reproduction [--quick] [--data DIR] [--generated] [-o DIR] [--processes N]."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from dpplearn import InputError
from reproduction.data import CATEGORIES, Source, find_registries
from reproduction.experiments import FULL, QUICK, QUICK_CATEGORIES, Scale
from reproduction.run import Results, reproduce
from reproduction.tables import all_tables

OUTPUT = Path("build/reproduction")
PRINTED = ("Wishart start, all training data", "Moments start, all training data")  # tables on standard output


def main(
    arguments: Sequence[str] | None = None, quick: Scale = QUICK, quick_categories: Sequence[str] = QUICK_CATEGORIES
) -> int:
    """Run the experiments, write tables and figures, and return the exit code."""
    options = parse(arguments)
    try:
        source = Source(None if options.generated else find_registries(options.data))
        scale, categories = (quick, quick_categories) if options.quick else (FULL, CATEGORIES)
        results = reproduce(source, options.output, scale, categories, options.processes)
        report(source, results, options.output)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"interrupted; the same command continues from {options.output}", file=sys.stderr)
        return 130
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the experiments of the paper and compare the results with its numbers. "
        "Finished trials are kept: the same command continues an interrupted run.",
    )
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder with the authors' registries (default: data/registries, then $DPPLEARN_SHARED/data/registries)",
    )
    data.add_argument("--generated", action="store_true", help="use generated registries instead")
    parser.add_argument("--quick", action="store_true", help="four small categories, three trials each")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=OUTPUT, help="results (default: %(default)s)"
    )
    parser.add_argument("--processes", type=int, metavar="N", help="number of processes (default: one per core)")
    return parser.parse_args(arguments)


def report(source: Source, results: Results, output: Path) -> None:
    """Write tables.md and the figures; print the two main tables."""
    from reproduction.figures import write_figures

    tables = all_tables(results)
    title = f"# Results on {source.kind} registries\n\n"
    if source.folder is None:
        title += "The paper's numbers are for the original registries.\n\n"
    elif not results["authors"]:
        title += "No recorded runs of the authors' program were found in reference/authors_runs.\n\n"
    (output / "tables.md").write_text(title + "\n".join(table.markdown for table in tables), encoding="utf-8")
    print(title + "\n".join(table.markdown for table in tables if table.title in PRINTED))
    figures = write_figures(results, output)
    print(f"All {len(tables)} tables: {output / 'tables.md'}")
    print(f"Figures: {', '.join(path.name for path in figures)}")
    print("Results: one file of JSON lines per experiment, with one row per trial")


if __name__ == "__main__":
    sys.exit(main())
