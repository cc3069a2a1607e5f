"""dpplearn export and import: the matrix of a model as a file that other programs read, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit import Output
from dpplearn.cli.options import AsJson, Model, one_of
from dpplearn.cli.output import Report, write
from dpplearn.cli.targets import check_target

if TYPE_CHECKING:
    from rich.console import RenderableType

KINDS = ("K", "L")


def _kind(value: str | None) -> str | None:
    return None if value is None else one_of(KINDS)(value)


def export(
    model: Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .csv file, or a .npy file with the items in a text file beside it.",
        ),
    ],
    kernel: Annotated[
        str,
        typer.Option(metavar="K|L", callback=one_of(KINDS), help="K, the marginal kernel; or L, where P(Y) ~ det L_Y."),
    ] = "K",
    as_json: AsJson = False,
) -> None:
    """Write the matrix K or L of a model, with its items, for other programs."""
    from dpplearn.models.kernel_file import files_of

    for target in files_of(output):
        check_target("--output", target, (model,))
    dpp = dpplearn.load(model)
    files = dpplearn.write_kernel(dpp, output, kernel)
    few_digits = kernel == "L" and dpp.kernel.near_one.any()
    report = {
        "model": str(model),
        "kernel": kernel,
        "n_items": len(dpp.items),
        "files": [str(file) for file in files],
        "note": FEW_DIGITS if few_digits else "",
    }
    write(report, export_tables, as_json)


FEW_DIGITS = (
    "An eigenvalue of K is so near 1 that L is huge along one direction and has few digits left for the others; "
    "--kernel K keeps them all."
)


def import_(
    kernel_file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A square matrix, as .npy or as .csv with or without names.")
    ],
    output: Output,
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="K|L", callback=_kind, help="What the matrix is; needed unless the corner of a .csv says."
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The items, one a line; by default those that the file names, or that stand beside it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a model of a matrix K or L that another program wrote."""
    from dpplearn.models.kernel_file import files_of, read_items

    check_target("--output", output, (*files_of(kernel_file), items))
    dpp = dpplearn.read_kernel(kernel_file, kernel, read_items(items) if items is not None else None)
    dpp.save(output)
    report = {
        "file": str(kernel_file),
        "n_items": len(dpp.items),
        "named": dpp.catalogue.named,
        "rank": dpp.kernel.rank,
        "expected_size": dpp.expected_size,
        "model": str(output),
    }
    write(report, import_tables, as_json)


def export_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.cli.tables import facts, notes, shown

    matrix, *beside = report["files"]
    rows = [
        ("model", shown(report["model"])),
        ("matrix", f"{report['kernel']} of {report['n_items']:,} items, in {shown(matrix)}"),
        *(("items", f"one a line, in {shown(file)}") for file in beside),
    ]
    yield facts("Exported", rows)
    yield from notes(report["note"])


def import_tables(report: Report) -> Iterator[RenderableType]:
    from dpplearn.cli.tables import facts, shown

    rows = [
        ("matrix", shown(report["file"])),
        ("items", f"{report['n_items']:,}, {'named' if report['named'] else 'numbered'}"),
        ("rank", f"{report['rank']:,} (the size of the largest possible set)"),
        ("expected size", f"{report['expected_size']:.2f} items"),
        ("model", shown(report["model"])),
    ]
    yield facts("Imported", rows)
