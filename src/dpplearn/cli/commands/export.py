"""dpplearn export: the matrix of a model as a file that other programs read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import dpplearn
from dpplearn.cli.options import AsJson, Model, Quiet, check_target, one_of
from dpplearn.cli.output import Report, Shown, write
from dpplearn.tools.tables import Facts
from dpplearn.tools.words import count, shown

KINDS = ("K", "L")
FEW_DIGITS = (
    "An eigenvalue of K is so near 1 that L is huge along one direction and has few digits left for the others; "
    "--kernel K keeps them all."
)
LAW = (
    "The model speaks of sets given that they are not empty, which the matrix does not tell: to make the model of it "
    "again, dpplearn import --nonempty."
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
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the matrix K or L of a model, with its items, for other programs."""
    from dpplearn.models.kernel_file import files_of

    for target in files_of(output):
        check_target("--output", target, (model,))
    dpp: Any = dpplearn.load(model)
    files = dpplearn.write_kernel(dpp, output, kernel)  # which refuses what is no DPP
    few_digits = FEW_DIGITS if kernel == "L" and dpp.kernel.near_one.any() else ""
    report = {
        "model": str(model),
        "kernel": kernel,
        "n_items": len(dpp.items),
        "files": [str(file) for file in files],
        "nonempty": dpp.nonempty,
        "note": " ".join(note for note in (few_digits, LAW if dpp.nonempty else "") if note),
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
