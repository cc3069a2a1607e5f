"""dpplearn update: fit a model again with new baskets, starting from an old one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit import save_model, split
from dpplearn.cli.options import FILE, OUTPUT, AnySeed, Data, Force, Fraction, Model, Read, check_target, some_seed
from dpplearn.cli.output import Display
from dpplearn.data.readers import read_baskets
from dpplearn.models.model_file import MODEL_FILE


def update(
    model: Model,
    data: Data,
    output: Annotated[Path, OUTPUT],
    read: Read,
    display: Display,
    old: Annotated[str | None, FILE] = None,
    forget: Annotated[float, typer.Option(metavar="FRACTION")] = 0.0,
    half_life: Annotated[str | None, typer.Option(metavar="90d")] = None,
    holdout: Fraction = None,
    max_seconds: float | None = None,
    seed: AnySeed = None,
    force: Force = False,
) -> None:
    """Update a model with new baskets and report what changed.

    Parameters
    ----------
    output
        The model file to write; an old one is replaced.
    old
        The training baskets of MODEL, if available; otherwise sets drawn from it replace them.
    forget
        Fraction of the weight of old baskets to remove.
    half_life
        The weight of a basket halves after this time (h, d or w); needs times.
    """
    check_target("--output", output, (model, data, old), MODEL_FILE, force=force)
    given, seed = dpplearn.load(model), some_seed(seed)
    new, test = split(read.baskets(data, display), holdout, seed)
    past = None if old is None else read_baskets(old, **read.how)
    result = dpplearn.update(
        given,
        new,
        old=past,
        forget=forget,
        half_life=half_life,
        test=test,
        rng=seed,
        max_seconds=max_seconds,
        progress=display.progress,
    )
    save_model(result.model, output, None, force)
    display.write(result, before=str(model), data=data, seed=seed, output=str(output))
