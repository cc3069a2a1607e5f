"""The group of options of every command that fits a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import LEARNING, check_exclusive, option
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

MIXTURE, DPPS = "Learning a mixture", "Learning a DPP"


def positive(value: float | None) -> float | None:
    """Check that a number is above 0."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def parse_shrinkage(value: str) -> float | str:
    """Return the value of --shrinkage as `fit_dpp` takes it."""
    try:
        return check_shrinkage(value if value == "auto" else float(value))
    except ValueError:  # an `InputError` is one
        raise typer.BadParameter(f"expected auto or a number between 0 and 1, got {value!r}") from None


MaxSeconds = Annotated[
    float | None,
    option("Time limit of the whole fit; the best model so far is saved.", callback=positive, panel=LEARNING),
]


@dataclass(frozen=True)
class Learn:
    """Options for fitting a model."""

    model: Annotated[
        str | None,
        option(
            "mixture: segments, attraction and repulsion. dpp: repulsion only, as in the paper. By default a mixture, "
            "or a DPP if --learner, --init or --shrinkage is given.",
            known=MODELS,
            panel=LEARNING,
        ),
    ] = None
    segments: Annotated[
        int | None,
        option(
            f"Number of segments; by default {DENSE_SEGMENTS}, or {LOW_RANK_SEGMENTS} with more than "
            f"{MAX_DENSE_ITEMS:,} items.",
            min=1,
            max=MAX_SEGMENTS,
            panel=MIXTURE,
        ),
    ] = None
    rank: Annotated[
        int | None,
        option(
            f"Rank of the repulsive part of the interaction; by default {DENSE_RANK}, or {LOW_RANK_RANK} with more "
            f"than {MAX_DENSE_ITEMS:,} items.",
            min=0,
            panel=MIXTURE,
        ),
    ] = None
    learner: Annotated[
        str | None,
        option(
            "Optimisation method; by default lbfgs. quality: the similarity of items is given.",
            known=[*LEARNERS, QUALITY],
            panel=DPPS,
        ),
    ] = None
    init: Annotated[str | None, option("Initial kernel; by default moments.", known=INITIALISERS, panel=DPPS)] = None
    shrinkage: Annotated[
        float | None,
        option(
            "Shrinkage towards independent items, from 0 (none) to 1; auto: by cross-validation. By default auto for "
            "lbfgs, and 0 for other learners.",
            metavar="auto|NUMBER",
            parser=parse_shrinkage,
            panel=DPPS,
        ),
    ] = None
    restarts: Annotated[
        int, option("Number of runs from different starts; the best is kept.", min=1, max=MAX_RESTARTS, panel=LEARNING)
    ] = 1
    tol: Annotated[
        float | None,
        option(
            "Stop when the expected improvement is below this, in nats per basket (em, k-ascent: when the relative "
            f"change is); by default {DENSE.tol:g}, and {LEARNERS['lbfgs'].tol:g} for a DPP.",
            min=0,
            panel=LEARNING,
        ),
    ] = None
    max_iter: Annotated[int, option("Maximum number of iterations of a run.", min=0, panel=LEARNING)] = 1000
    max_seconds: MaxSeconds = None
    validation: Annotated[
        float | None,
        option(
            "Use this fraction of the baskets as a validation set, and stop when its likelihood has not improved for "
            "10 iterations.",
            metavar="FRACTION",
            min=0,
            max=0.99,
            panel=LEARNING,
        ),
    ] = None
    nonempty: Annotated[
        bool | None,
        option(
            "Whether to condition the distribution on nonempty baskets. By default if no basket is empty; of the "
            "learners of a DPP only lbfgs does so by default, and adam can.",
            "--nonempty/--may-be-empty",
            panel=LEARNING,
        ),
    ] = None

    @property
    def kind(self) -> str | None:
        """The model that the options ask for; None if they are valid for all."""
        if self.model is not None:
            return self.model
        if (self.learner, self.init, self.shrinkage) != (None, None, None):
            return "dpp"
        return None if (self.segments, self.rank) == (None, None) else "mixture"

    def checked(self) -> dict[str, Any]:
        """Return the options for `settings_of`, after checking that they fit together."""
        of_dpp = {"--learner": self.learner, "--init": self.init, "--shrinkage": self.shrinkage}
        if self.model == "mixture":
            check_exclusive(of_dpp, "is only valid for a DPP, not with --model mixture")
        if self.kind == "dpp":
            why = "--model dpp" if self.model else next(name for name, value in of_dpp.items() if value is not None)
            of_mixture = {"--segments": self.segments, "--rank": self.rank}
            check_exclusive(of_mixture, f"is only valid for a mixture, not with {why}")
        if self.learner in LEARNERS and self.nonempty and not LEARNERS[self.learner].can_condition:
            able = [name for name, each in LEARNERS.items() if each.can_condition]
            raise UsageError(f"--nonempty is not valid with --learner {self.learner}; use one of {', '.join(able)}")
        return {**asdict(self), "nonempty": "auto" if self.nonempty is None else self.nonempty}
