"""dpplearn update: fit a model again with new baskets, starting from an old one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit import leave_interrupted, save_model
from dpplearn.cli.commands.fit_data import HeldOut
from dpplearn.cli.errors import INTERRUPTS
from dpplearn.cli.learning import MaxSeconds
from dpplearn.cli.options import (
    Data,
    Display,
    Force,
    Model,
    ModelOutput,
    Reading,
    Seed,
    check_target,
    some_seed,
)
from dpplearn.cli.output import Report, Shown, busy, show, write_json
from dpplearn.lifecycle.update import Update
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.utils.text import Facts, shown

PAST = "Old baskets"

Old = Annotated[
    str | None,
    typer.Option(
        "--old",
        metavar="FILE",
        rich_help_panel=PAST,
        help="The training baskets of MODEL, if available; otherwise sets drawn from it replace them.",
    ),
]
Forget = Annotated[
    float,
    typer.Option(
        min=0,
        max=1,
        metavar="SHARE",
        rich_help_panel=PAST,
        help="Fraction of the weight of old baskets to remove, from 0 to 1.",
    ),
]
HalfLife = Annotated[
    str | None,
    typer.Option(
        metavar="90d",
        rich_help_panel=PAST,
        help="With --time: the weight of a basket halves after this time; h, d or w.",
    ),
]


def update(
    model: Model,
    data: Data,
    output: ModelOutput,
    held_out: HeldOut,
    reading: Reading,
    display: Display,
    old: Old = None,
    forget: Forget = 0.0,
    half_life: HalfLife = None,
    seed: Seed = None,
    max_seconds: MaxSeconds = None,
    force: Force = False,
) -> None:
    """Update a model with new baskets and report what changed."""
    held_out.check(seed, None, in_parts=False)
    read = (model, data, old, held_out.test)
    check_target("--output", output, read, MODEL_FILE, force=force)
    held_out.check_file((*read, output), force)
    given, seed = dpplearn.load(model), some_seed(seed)
    reader = reading.reader()
    others = reader._replace(since=None, before=None)
    with busy(f"reading {data}", display.progress):
        new = reader.read(data)
        past = None if old is None else others.read(old)
        test = None if held_out.test is None else others.read(held_out.test)
    if held_out.holdout is not None:
        new, test = held_out.split(new, seed)
    found = dpplearn.update(
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
    save_model(found.model, output, None, force)
    held_out.write(test, reading)
    files = {"before": str(model), "data": data, "model": str(output), "seed": seed}
    if display.as_json:
        write_json({**files, **found.changes.to_dict(), "n_items": len(found.model.items)})
    else:
        show(_shown(files, found))
    if INTERRUPTS.received is not None:  # while the model was saved
        leave_interrupted(output)


def _shown(files: Report, found: Update) -> Iterator[Shown]:
    yield Facts("Updated", [(name, shown(value)) for name, value in files.items()])
    yield from found.changes.sentences
    if found.changes.moved:
        yield found.changes.table
