"""dpplearn update: fit a model again with new baskets, starting from an old one."""

from __future__ import annotations

from typing import Annotated

import dpplearn
from dpplearn.cli.commands.fit import Holdout, HoldoutShare, leave_interrupted, save_model
from dpplearn.cli.errors import INTERRUPTS
from dpplearn.cli.learning import MaxSeconds
from dpplearn.cli.options import Data, Display, Force, Model, ModelOutput, Read, Seed, check_target, option, some_seed
from dpplearn.cli.output import busy, write
from dpplearn.data.readers import read_baskets
from dpplearn.models.model_file import MODEL_FILE


def update(
    model: Model,
    data: Data,
    output: ModelOutput,
    read: Read,
    display: Display,
    old: Annotated[
        str | None,
        option(
            "The training baskets of MODEL, if available; otherwise sets drawn from it replace them.", metavar="FILE"
        ),
    ] = None,
    forget: Annotated[
        float, option("Fraction of the weight of old baskets to remove.", min=0, max=1, metavar="FRACTION")
    ] = 0.0,
    half_life: Annotated[
        str | None, option("The weight of a basket halves after this time (h, d or w); needs times.", metavar="90d")
    ] = None,
    holdout: HoldoutShare = None,
    max_seconds: MaxSeconds = None,
    seed: Seed = None,
    force: Force = False,
) -> None:
    """Update a model with new baskets and report what changed."""
    part = Holdout(holdout)
    part.check((), force)
    check_target("--output", output, (model, data, old), MODEL_FILE, force=force)
    given, seed = dpplearn.load(model), some_seed(seed)
    with busy(f"reading {data}", display):
        new, test = part.split(read.baskets(data), seed)
        past = None if old is None else read_baskets(old, **read.named, format=read.format)
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
    write(result, display, before=str(model), data=data, seed=seed, output=str(output))
    if INTERRUPTS.received is not None:  # while the model was saved
        leave_interrupted(output)
