"""dpplearn update: learn on from a model with new baskets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit import leave_interrupted, save_model
from dpplearn.cli.commands.fit_data import check_holdout
from dpplearn.cli.errors import INTERRUPTS
from dpplearn.cli.learning import MaxSeconds
from dpplearn.cli.options import (
    AsJson,
    BasketColumn,
    Before,
    Data,
    Force,
    Format,
    ItemColumn,
    Model,
    ModelOutput,
    Quiet,
    Reader,
    Seed,
    Since,
    Threads,
    TimeColumn,
    WeightColumn,
    check_target,
    some_seed,
)
from dpplearn.cli.output import Report, Shown, busy, show, wants_progress, write_json
from dpplearn.errors import InputError
from dpplearn.models.model_file import MODEL_FILE
from dpplearn.tools.tables import Facts
from dpplearn.tools.words import shown
from dpplearn.upkeep.update import Update

PAST = "What came before"

Old = Annotated[
    str | None,
    typer.Option(
        "--with",
        metavar="FILE",
        rich_help_panel=PAST,
        help="The baskets that MODEL was learned from, if they are at hand; else sets drawn from it stand in for them.",
    ),
]
Forget = Annotated[
    float,
    typer.Option(
        min=0, max=1, metavar="SHARE", rich_help_panel=PAST, help="How much of the past no longer counts, from 0 to 1."
    ),
]
HalfLife = Annotated[
    str | None,
    typer.Option(
        metavar="90d", rich_help_panel=PAST, help="With --time: after this time a basket counts half; h, d or w."
    ),
]
Test = Annotated[
    str | None, typer.Option(metavar="FILE", help="Baskets to compare the model before and the one after on.")
]
Holdout = Annotated[
    float | None, typer.Option(metavar="FRACTION", help="Hold this share of DATA out of learning, to compare them on.")
]


def update(
    model: Model,
    data: Data,
    output: ModelOutput,
    old: Old = None,
    forget: Forget = 0.0,
    half_life: HalfLife = None,
    test: Test = None,
    holdout: Holdout = None,
    seed: Seed = None,
    threads: Threads = None,
    max_seconds: MaxSeconds = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    time: TimeColumn = None,
    since: Since = None,
    before: Before = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Update a model with new baskets and report what changed."""
    check_holdout(holdout, test, seed, None, in_parts=False)
    check_target("--output", output, (model, data, old, test), MODEL_FILE, force=force)
    given, progress, seed = dpplearn.load(model), wants_progress(quiet), some_seed(seed)
    reader = Reader(format, basket, item, weight, time=time, since=since, before=before)
    others = Reader(format, basket, item, weight, time=time)  # of any time
    with busy(f"reading {data}", progress):
        new = reader.read(data)
        past = None if old is None else others.read(old)
        judged = None if test is None else others.read(test)
    if holdout is not None:
        new, judged = new.split(1 - holdout, rng=seed)
        if not judged.total_weight > 0:
            raise InputError(f"--holdout {holdout:g} of {len(new)} baskets leaves nothing to compare on")
    found = dpplearn.update(
        given,
        new,
        old=past,
        forget=forget,
        half_life=half_life,
        test=judged,
        rng=seed,
        threads=threads,
        max_seconds=max_seconds,
        progress=progress,
    )
    save_model(found.model, output, None, force)
    files = {"before": str(model), "data": data, "model": str(output), "seed": seed}
    if as_json:
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
