"""The group of options of every command that fits a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import typer

from dpplearn.cli.errors import UsageError
from dpplearn.cli.options import one_of
from dpplearn.errors import InputError
from dpplearn.learners.quality.fit_quality import LEARNER as QUALITY
from dpplearn.learners.settings import MODELS, Settings, settings_of
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.table import LEARNERS


def parse_shrinkage(value: str) -> float | str:
    """Return the value of --shrinkage as `fit_dpp` takes it."""
    return value if value == "auto" else float(value)


@dataclass(frozen=True)
class Learn:
    """Options for fitting a model.

    Parameters
    ----------
    model
        mixture: segments, attraction and repulsion. dpp: repulsion only, as in the paper. By default a mixture, or a
        DPP if --learner, --init or --shrinkage is given.
    segments
        Number of segments of a mixture; by default 10, or 30 with more than 300 items.
    rank
        Rank of the repulsive part of the interaction of a mixture; by default 20, or 8 with more than 300 items.
    learner
        Optimisation method of a DPP; by default lbfgs. quality: the similarity of items is given.
    init
        Initial kernel of a DPP; by default moments.
    shrinkage
        Shrinkage of a DPP towards independent items, from 0 (none) to 1; auto: by cross-validation. By default auto for
        lbfgs, and 0 for other learners.
    restarts
        Number of runs from different starts; the best is kept.
    tol
        Stop when the expected improvement is below this, in nats per basket (em, k-ascent: when the relative change
        is); by default 0.002, and 0.0001 for a DPP.
    max_iter
        Maximum number of iterations of a run.
    validation
        Use this fraction of the baskets as a validation set, and stop when its likelihood has not improved for 10
        iterations.
    nonempty
        Whether to condition the distribution on nonempty baskets. By default if no basket is empty; of the learners of
        a DPP only lbfgs does so by default, and adam can.
    """

    panel: ClassVar[str] = "Learning"
    model: Annotated[str | None, one_of(MODELS)] = None
    segments: int | None = None
    rank: int | None = None
    learner: Annotated[str | None, one_of([*LEARNERS, QUALITY])] = None
    init: Annotated[str | None, one_of(INITIALISERS)] = None
    shrinkage: Annotated[float | None, typer.Option(metavar="auto|NUMBER", parser=parse_shrinkage)] = None
    restarts: int = 1
    tol: float | None = None
    max_iter: int = 1000
    max_seconds: float | None = None
    validation: Annotated[float | None, typer.Option(metavar="FRACTION")] = None
    nonempty: Annotated[bool | None, typer.Option("--nonempty/--may-be-empty")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return {name: value for name, value in asdict(self).items() if value != getattr(Learn, name)}

    def settings(self, **more: Any) -> Settings:
        """Return the settings of the fit."""
        try:
            return settings_of(**{**self.given, **more})
        except InputError as error:
            raise UsageError(str(error)) from None
