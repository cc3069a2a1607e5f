"""dpplearn fit-all: fit one model per category of prepared baskets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.learning import Learn
from dpplearn.cli.options import LEARNING, Cluster, Display, FixedSeed, Force, option
from dpplearn.cli.output import write
from dpplearn.errors import InputError
from dpplearn.utils.threads import MOST_THREADS


def fit_all(
    prepared: Annotated[Path, typer.Argument(metavar="PREPARED", help="A folder that dpplearn prepare wrote.")],
    output: Annotated[
        Path, option("Model store to write; an old store is replaced at the end.", "--output", "-o", metavar="FOLDER")
    ],
    learn: Learn,
    display: Display,
    warm_start: Annotated[bool, option("Start from the models in the store.", "--warm-start", panel=LEARNING)] = False,
    seed: FixedSeed = 0,
    processes: Annotated[
        int | None, option("Number of processes; by default one per core.", min=1, max=MOST_THREADS)
    ] = None,
    cluster: Cluster = None,
    fresh: Annotated[bool, option("Fit all categories, also unchanged ones.", "--fresh")] = False,
    force: Force = False,
) -> None:
    """Fit one model per category of prepared baskets.

    Categories whose data and options have not changed are skipped. An interrupted run continues. The previous models
    stay in place until the run has finished.
    """
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
        **learn.checked(),
    )
    write(store, display, prepared=str(prepared), output=str(output))
    if store.failed:
        some = f"{len(store.failed)} of {len({*store, *store.failed})} categories could not be fitted"
        raise InputError(f"{some}: {'; '.join(f'{slug} ({why})' for slug, why in store.failed.items())}")
