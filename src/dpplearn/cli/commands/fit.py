"""dpplearn fit: learn a model from baskets and save it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import dpplearn
from dpplearn.cli.commands.fit_report import fit_report, fit_tables
from dpplearn.cli.errors import INTERRUPTS, UsageError, complain
from dpplearn.cli.learning import Learning, with_learning
from dpplearn.cli.options import (
    LEARNING,
    AsJson,
    BasketColumn,
    Data,
    Format,
    ItemColumn,
    ModelOutput,
    Quiet,
    Reader,
    Seed,
    Threads,
    WeightColumn,
    check_target,
    some_seed,
)
from dpplearn.cli.output import busy, wants_progress, write
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.fitting.fit import asked_for, fit_with, model_of
from dpplearn.learners.loop import Stop
from dpplearn.models.model import SetModel

Start = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", rich_help_panel=LEARNING, help="Start the first run from this model, not from --init."
    ),
]
Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Save the state of learning to this file as it goes.")
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Go on from this checkpoint, in a call that is otherwise the same; it is kept up to date."
    ),
]
Test = Annotated[str | None, typer.Option(metavar="FILE", help="Baskets to report the log-likelihood of, too.")]
Holdout = Annotated[
    float | None, typer.Option(metavar="FRACTION", help="Hold this share of DATA out of learning, to report on.")
]


@with_learning
def fit(
    data: Data,
    output: ModelOutput,
    learning: Learning,
    start: Start = None,
    seed: Seed = None,
    threads: Threads = None,
    checkpoint: Checkpoint = None,
    resume: Resume = None,
    test: Test = None,
    holdout: Holdout = None,
    format: Format = "auto",
    basket: BasketColumn = "basket",
    item: ItemColumn = "item",
    weight: WeightColumn = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a model from baskets and save it. Ctrl-C or SIGTERM saves the best model so far, if there is one yet."""
    check_holdout(holdout, test, seed, checkpoint or resume)
    check_targets(output, checkpoint, resume, (data, test, start))
    progress = wants_progress(quiet)
    given = dpplearn.load(start) if start is not None else None
    options = asked_for(
        given,
        **learning.checked(start, model_of(given)),
        threads=threads,
        progress=progress,
        checkpoint=checkpoint or resume,
        resume=resume,
    )
    reported = seed if resume else some_seed(seed)  # the random starts of a fit that goes on come from the file
    seed = some_seed(reported)
    with busy(f"reading {data}", progress):
        train, held_out = train_and_test(Reader(format, basket, item, weight), data, test, holdout, seed)
    result = fit_with(options, train, start=given, rng=seed)
    save_model(result.model, output, checkpoint or resume)
    report = fit_report(result, options, train, held_out, model=str(output), data=data, test_data=test, seed=reported)
    write(report, fit_tables, as_json)
    leave_if_interrupted(result.stop, output)


def check_holdout(holdout: float | None, test: str | None, seed: int | None, state: Path | None) -> None:
    if holdout is None:
        return
    if test is not None:
        raise UsageError("--test and --holdout are two ways to say the same; give one of them")
    if not 0 < holdout < 1:
        raise UsageError(f"--holdout is {holdout:g}; expected a number between 0 and 1")
    if state is not None and seed is None:
        raise UsageError("--holdout with --checkpoint or --resume needs --seed: the split must be the same again")


def check_targets(
    output: Path, checkpoint: Path | None, resume: Path | None, sources: Sequence[str | Path | None]
) -> None:
    """A checkpoint that a fit goes on from is kept up to date, unless another is named."""
    check_target("--output", output, (*sources, checkpoint, resume))
    if checkpoint is None:
        check_target("--resume", resume, sources)
    else:
        check_target("--checkpoint", checkpoint, sources)


def train_and_test(
    reader: Reader, data: str, test: str | None, holdout: float | None, seed: int
) -> tuple[Baskets, Baskets | None]:
    baskets = reader.read(data)
    if holdout is not None:
        train, held_out = baskets.split(1 - holdout, rng=seed)
        if not held_out.total_weight > 0:
            raise InputError(f"--holdout {holdout:g} of {len(baskets)} baskets leaves nothing to report on")
        return train, held_out
    if test is None:
        return baskets, None
    return baskets, reader.read_for("--test", test, baskets.catalogue)


def save_model(model: SetModel, output: Path, state: Path | None) -> None:
    """Whatever signal comes. If it fails, as on a full disk, say where else the work of perhaps hours is."""
    try:
        with INTERRUPTS.held():
            model.save(output)
    except InputError as error:
        if state is None or not state.is_file():
            raise
        raise InputError(
            f"{error}; what was learned is kept in {state}: make room, then repeat with --resume"
        ) from None


def leave_if_interrupted(stop: Stop, output: Path) -> None:
    """With the exit code of the signal."""
    if stop is Stop.INTERRUPTED or INTERRUPTS.received is not None:
        complain("interrupted", f"the best model so far was saved to {output}")
        raise typer.Exit(INTERRUPTS.exit_code)
