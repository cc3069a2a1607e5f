"""dpplearn fit-all: fit one model per category of prepared baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.learning import Learn
from dpplearn.cli.options import OUTPUT_FOLDER, Cluster, Force, Seed
from dpplearn.cli.output import Display
from dpplearn.errors import InputError


def fit_all(
    prepared: Annotated[Path, typer.Argument(metavar="PREPARED")],
    output: Annotated[Path, OUTPUT_FOLDER],
    learn: Learn,
    display: Display,
    warm_start: Annotated[bool, typer.Option("--warm-start")] = False,
    seed: Seed = 0,
    processes: Annotated[int | None, typer.Option(min=1)] = None,
    cluster: Cluster = None,
    fresh: Annotated[bool, typer.Option("--fresh")] = False,
    force: Force = False,
) -> None:
    """Fit one model per category of prepared baskets.

    Categories whose data and options have not changed are skipped. An interrupted run continues. The previous models
    stay in place until the run has finished.

    Parameters
    ----------
    prepared
        A folder that dpplearn prepare wrote.
    output
        Folder of the model store to write; an old store is replaced at the end.
    warm_start
        Start from the models in the store.
    processes
        Number of processes; by default one per core.
    fresh
        Fit all categories, also unchanged ones.
    """
    learn.settings()
    store = dpplearn.fit_all(
        prepared,
        output,
        seed=seed,
        processes=processes,
        cluster=cluster,
        fresh=fresh,
        warm_start=warm_start,
        force=force,
        progress=display.progress,
        **learn.given,
    )
    display.write(store, prepared=str(prepared), output=str(output))
    if store.failed:
        some = f"{len(store.failed)} of {len({*store, *store.failed})} categories could not be fitted"
        raise InputError(f"{some}: {'; '.join(f'{slug} ({why})' for slug, why in store.failed.items())}")
