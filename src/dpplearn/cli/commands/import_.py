"""dpplearn import: a model of a matrix that another program wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.export import KINDS
from dpplearn.cli.options import AsJson, ModelOutput, Quiet, check_target, one_of
from dpplearn.cli.output import Report, Shown, write
from dpplearn.models.dpp import DPP
from dpplearn.tools.tables import Facts
from dpplearn.tools.words import count, number, shown


def import_(
    kernel_file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A square matrix, as .npy or as .csv with or without names.")
    ],
    output: ModelOutput,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="K|L", callback=one_of(KINDS), help="What the matrix is; needed unless the corner of a .csv says."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The items, one per line; by default those that the file names, or that stand beside it.",
        ),
    ] = None,
    nonempty: Annotated[
        bool, typer.Option("--nonempty", help="The model is to speak of sets given that they are not empty.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a model of a matrix K or L that another program wrote."""
    from dpplearn.models.kernel_file import files_of, read_items

    check_target("--output", output, (*files_of(kernel_file), items))
    dpp = dpplearn.read_kernel(kernel_file, kernel, read_items(items) if items is not None else None)
    dpp = DPP(dpp.kernel, dpp.items, nonempty=nonempty)
    dpp.save(output)
    report = {
        "file": str(kernel_file),
        "n_items": len(dpp.items),
        "named": dpp.catalogue.named,
        "rank": dpp.kernel.rank,
        "nonempty": dpp.nonempty,
        "expected_size": dpp.expected_size,
        "model": str(output),
    }
    write(report, import_tables, as_json)


def import_tables(report: Report) -> Iterator[Shown]:
    given = ", given that it is not empty" if report["nonempty"] else ""
    rows = [
        ("matrix", shown(report["file"])),
        ("items", f"{count(report['n_items'])}, {'named' if report['named'] else 'numbered'}"),
        ("rank", f"{count(report['rank'])} (the size of the largest possible set)"),
        ("expected size", f"{number(report['expected_size'], 2)} items{given}"),
        ("model", shown(report["model"])),
    ]
    yield Facts("Imported", rows)
