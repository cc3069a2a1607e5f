"""dpplearn export: the matrix of a model as a file that other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Model, check_target, one_of
from dpplearn.cli.output import Report, Shown, write
from dpplearn.models.model_file import as_dpp
from dpplearn.tools.tables import Facts
from dpplearn.tools.words import count, shown

KINDS = ("K", "L")
FEW_DIGITS = (
    "An eigenvalue of K is so near 1 that L is huge along one direction and has few digits left for the others; "
    "--kernel K keeps them all."
)


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
    dpp = as_dpp(dpplearn.load(model), model)
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


def export_tables(report: Report) -> Iterator[Shown]:
    matrix, *beside = report["files"]
    rows = [
        ("model", shown(report["model"])),
        ("matrix", f"{report['kernel']} of {count(report['n_items'], 'item')}, in {shown(matrix)}"),
        *(("items", f"one per line, in {shown(file)}") for file in beside),
    ]
    yield Facts("Exported", rows)
    yield report["note"]
