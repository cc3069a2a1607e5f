"""The group of options of every command that fits a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import LEARNING, one_of
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.settings import (
    DENSE,
    DENSE_RANK,
    DENSE_SEGMENTS,
    LOW_RANK_RANK,
    LOW_RANK_SEGMENTS,
    MAX_DENSE_ITEMS,
    MAX_RESTARTS,
    MAX_SEGMENTS,
    MODELS,
    check_shrinkage,
)
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.utils.text import listed

MIXTURE, DPPS, REGULARISING = "Learning a mixture", "Learning a DPP", "Little data"
NAMES = {"mixture": "a mixture", "dpp": "a DPP"}
Given = Mapping[str, object]  # options and their values, None where they were not given


def positive(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def parse_shrinkage(value: str) -> float | str:
    """Return the value of --shrinkage as `fit` takes it."""
    try:
        return check_shrinkage(value if value == "auto" else float(value))
    except ValueError:  # an `InputError` is one
        raise typer.BadParameter(f"expected auto or a number between 0 and 1, got {value!r}") from None


Kind = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="|".join(MODELS),
        callback=one_of(MODELS),
        rich_help_panel=LEARNING,
        help="mixture: segments, attraction and repulsion between items; it predicts best. dpp: repulsion only, as in "
        "the paper. By default a mixture, or a dpp with --learner, --init, --shrinkage or a DPP to start from.",
    ),
]
Segments = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MAX_SEGMENTS,
        rich_help_panel=MIXTURE,
        help=f"Number of segments; by default {DENSE_SEGMENTS}, and {LOW_RANK_SEGMENTS} with more than "
        f"{MAX_DENSE_ITEMS:,} items.",
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        min=0,
        rich_help_panel=MIXTURE,
        help=f"Rank of the repulsive (symmetric) part of the interaction; by default {DENSE_RANK}, and "
        f"{LOW_RANK_RANK} with more than {MAX_DENSE_ITEMS:,} items.",
    ),
]
NoAttraction = Annotated[
    bool,
    typer.Option("--no-attraction", rich_help_panel=MIXTURE, help="Items of a segment do not attract each other."),
]
DPP_LEARNERS = [*LEARNERS, QUALITY]
Learner = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(DPP_LEARNERS),
        callback=one_of(DPP_LEARNERS),
        rich_help_panel=DPPS,
        help="Optimisation method of a DPP; by default lbfgs. quality: the similarity of items is given.",
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(INITIALISERS),
        callback=one_of(INITIALISERS),
        rich_help_panel=DPPS,
        help="Where a DPP starts; by default moments.",
    ),
]
Restarts = Annotated[
    int,
    typer.Option(
        min=1,
        max=MAX_RESTARTS,
        rich_help_panel=LEARNING,
        help="How many runs, each from a start of its own; the best is kept.",
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        "--tol",
        min=0,
        rich_help_panel=LEARNING,
        help="Stop when no more than this is still to be gained, in nats per basket (em, k-ascent: when the relative "
        f"change is smaller); by default {DENSE.tol:g}, and {LEARNERS['lbfgs'].tol:g} for a DPP.",
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
Shrinkage = Annotated[
    float | None,
    typer.Option(
        metavar="auto|NUMBER",
        parser=parse_shrinkage,
        rich_help_panel=DPPS,
        help="Shrink the learned DPP towards independent items: 0 not at all, 1 independent items, auto: by "
        "cross-validation. By default auto for lbfgs, and 0 for the others.",
    ),
]
ValidationShare = Annotated[
    float | None,
    typer.Option(
        "--validation",
        metavar="SHARE",
        min=0,
        max=0.99,
        rich_help_panel=REGULARISING,
        help="Hold out this fraction of the baskets, and stop when they do not become more likely for 10 iterations.",
    ),
]
Nonempty = Annotated[
    bool | None,
    typer.Option(
        "--nonempty/--may-be-empty",
        rich_help_panel=LEARNING,
        help="Whether the distribution is conditioned on nonempty baskets. By default it is if no basket is empty; of "
        "the learners of a DPP only lbfgs does so by default, and adam can.",
    ),
]


@dataclass(frozen=True)
class Learning:
    """Options for fitting a model."""

    model: Kind = None
    segments: Segments = None
    rank: Rank = None
    no_attraction: NoAttraction = False
    learner: Learner = None
    init: Init = None
    restarts: Restarts = 1
    tol: Tolerance = None
    max_iter: MaxIter = 1000
    max_seconds: MaxSeconds = None
    shrinkage: Shrinkage = None
    validation: ValidationShare = None
    nonempty: Nonempty = None

    def checked(self, start: Path | None = None, of_start: str | None = None) -> dict[str, Any]:
        """Return the options for `fit`, after checking that they fit together and to the model to start from."""
        of_mixture = {"--segments": self.segments, "--rank": self.rank, "--no-attraction": self.no_attraction or None}
        of_dpp = {"--learner": self.learner, "--init": self.init, "--shrinkage": self.shrinkage}
        check_kind(self.model, start, of_mixture, of_dpp, of_start)
        check_nonempty(self.learner, self.nonempty)
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        given["attraction"] = not given.pop("no_attraction")
        return {**given, "nonempty": "auto" if self.nonempty is None else self.nonempty}


def check_kind(model: str | None, start: Path | None, of_mixture: Given, of_dpp: Given, of_start: str | None) -> None:
    """Raise an error that names the options if they ask for different kinds of model."""
    asked = {f"--model {model}": model, **dict.fromkeys(_given(of_dpp), "dpp"), f"--start {start}": of_start}
    wanted = {option: kind for option, kind in asked.items() if kind is not None}
    kind = next(iter(wanted.values()), "mixture")
    others = [option for option, other in wanted.items() if other != kind]
    others += _given(of_mixture) if kind == "dpp" else []
    if others:
        one, other = (NAMES[kind], NAMES["mixture" if kind == "dpp" else "dpp"])
        verb = "is" if len(others) == 1 else "are"
        raise UsageError(f"{listed(others)} {verb} for {other}, and {next(iter(wanted))} for {one}; leave out either")


def _given(options: Given) -> list[str]:
    return [name for name, value in options.items() if value is not None]


def check_nonempty(learner: str | None, nonempty: bool | None) -> None:
    if learner in LEARNERS and nonempty and not LEARNERS[learner].can_condition:
        able = [name for name, each in LEARNERS.items() if each.can_condition]
        raise UsageError(f"--nonempty is not for --learner {learner}; use one of {', '.join(able)}")
