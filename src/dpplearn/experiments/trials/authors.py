"""The paper's tables and the authors' own runs, read from a folder where they are there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dpplearn.errors import InputError
from dpplearn.experiments.registries import Source
from dpplearn.experiments.textbook import raise_capped
from dpplearn.experiments.trials.trial import Job, Row, both
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.models.dpp import DPP

TABLES, RUNS = "paper_tables.json", "authors_runs"


def read_paper(reference: Path | None) -> Mapping[str, Any] | None:
    """The paper's figures, or None where they are not there."""
    if reference is None or not (reference / TABLES).is_file():
        return None
    try:
        found = json.loads((reference / TABLES).read_text(encoding="utf-8"))
        return {key: found[key] for key in ("source", "categories", "averages", "runtime_ratio_KA_over_EM_average")}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{reference / TABLES} does not hold the paper's tables: {error}") from None


def reference_files(reference: Path | None) -> list[Path]:
    """What of the folder is read."""
    return [] if reference is None else [reference / TABLES, *sorted((reference / RUNS).glob("*"))]


def run_names(reference: Path | None) -> list[str]:
    """<category>_<start>_<number> of every run that is there."""
    return [] if reference is None else sorted(path.stem for path in (reference / RUNS).glob("*_*_*.npz"))


def authors_run(job: Job, source: Source) -> Row:
    """Both learners on the split and from the start of one of the authors' runs, beside what their program found.

    After its last iteration their EM raises capped eigenvalues to 1, so that is done here, too, before testing.
    """
    assert source.reference is not None
    with np.load(source.reference / RUNS / f"{job.category}.npz") as run:
        theirs = {name: run[name] for name in ("train_rows", "test_rows", "K_start", "em_test", "ka_test")}
        lengths = {f"{name}_iterations": len(run[f"{name}_objective"]) - 1 for name in ("em", "ka")}
    registries = source.load(job.category.split("_")[0])
    train, test = (registries.subset(theirs[rows]) for rows in ("train_rows", "test_rows"))
    fits = both(train, Kernel.from_K(theirs["K_start"]))
    em = fits["em"].kernel
    ours = {"em": Kernel(raise_capped(em.eigenvalues), em.eigenvectors), "ka": fits["ka"].kernel}
    row: Row = {"n_items": train.n_items, "n_train": len(train), "n_test": len(test)}
    for name, kernel in ours.items():
        row |= {
            f"{name}_test": DPP(kernel, train.items).log_likelihood(test),
            f"{name}_iterations": fits[name].n_iter,
            f"authors_{name}_test": float(theirs[f"{name}_test"]),
            f"authors_{name}_iterations": lengths[f"{name}_iterations"],
        }
    return row
