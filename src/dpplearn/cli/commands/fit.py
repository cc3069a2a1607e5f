"""The options of `dpplearn fit`, and what must hold of them before an hour of learning begins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import Reader, one_of
from dpplearn.cli.targets import check_target
from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError
from dpplearn.fitting.prior import STRONGEST, as_strength
from dpplearn.learners import LEARNERS
from dpplearn.learners.starts import INITIALISERS
from dpplearn.models.dpp import DPP

LEARNING = "Learning"
REGULARISING = "Little data"


def prior_strength(value: str) -> float | str:
    """What `fit` takes as a prior."""
    if value == "auto":
        return value
    try:
        return as_strength(float(value))
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither auto, nor a number from 0 to {STRONGEST:g}, nor inf") from None


def positive(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="FILE", help="The model file to write; an old one is replaced.")
]
Learner = Annotated[
    str,
    typer.Option(
        metavar="|".join(LEARNERS),
        callback=one_of(LEARNERS),
        rich_help_panel=LEARNING,
        help="How the model is learned.",
    ),
]
Init = Annotated[
    str,
    typer.Option(
        metavar="|".join(INITIALISERS), callback=one_of(INITIALISERS), rich_help_panel=LEARNING, help="Where it starts."
    ),
]
Restarts = Annotated[
    int,
    typer.Option(
        min=1, rich_help_panel=LEARNING, help="How many runs, each from a start of its own; the best is kept."
    ),
]
Start = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", rich_help_panel=LEARNING, help="Start the first run from this model, not from --init."
    ),
]
Tolerance = Annotated[
    float,
    typer.Option(
        "--tol",
        min=0,
        rich_help_panel=LEARNING,
        help="Stop when no more is still to be gained, in nats a basket (em, k-ascent: on a smaller relative change).",
    ),
]
MaxIter = Annotated[int, typer.Option(min=0, rich_help_panel=LEARNING, help="Limit on the iterations of a run.")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        callback=positive,
        rich_help_panel=LEARNING,
        help="Limit on the time of the whole fit; the best model so far is saved.",
    ),
]
Threads = Annotated[
    int | None, typer.Option(min=1, rich_help_panel=LEARNING, help="How many threads; by default all cores.")
]
Prior = Annotated[
    float | None,
    typer.Option(
        metavar="auto|STRENGTH",
        parser=prior_strength,
        rich_help_panel=REGULARISING,
        help="How much independent items count beside the data: 0 not at all, inf alone, auto as cross-validation has "
        "it. By default auto for the learner auto, and 0 for the others.",
    ),
]
ValidationShare = Annotated[
    float,
    typer.Option(
        "--validation",
        metavar="SHARE",
        min=0,
        max=0.99,
        rich_help_panel=REGULARISING,
        help="Set this share of the baskets aside, and stop when they become no likelier.",
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        min=1,
        rich_help_panel=REGULARISING,
        help="For how many iterations the baskets set aside may become no likelier.",
    ),
]
Nonempty = Annotated[
    bool,
    typer.Option(
        "--nonempty",
        rich_help_panel=LEARNING,
        help="Learn P(Y given Y is not empty), for data that cannot have empty baskets (auto, lbfgs, adam).",
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
    try:
        return baskets, reader.read(test).over(baskets.catalogue)
    except InputError as error:
        raise InputError(f"--test {test}: {error}") from None


def save_model(dpp: DPP, output: Path, state: Path | None) -> None:
    """If that fails, as on a full disk, say where else the work of perhaps hours is."""
    try:
        dpp.save(output)
    except InputError as error:
        if state is None or not state.is_file():
            raise
        raise InputError(
            f"{error}; what was learned is kept in {state}: make room, then repeat with --resume"
        ) from None
