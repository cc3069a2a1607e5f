"""Settings: the options of `fit` and `fit_dpp`, checked once, and the `Task` that they mean for given baskets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.data import resolve_nonempty
from dpplearn.learners.loop import Limits, Stop, never, remaining_gain
from dpplearn.learners.low_rank import LowRankProblem, columns_of, low_rank
from dpplearn.learners.mixture import MixtureProblem, mixture
from dpplearn.learners.problem import Learner, Problem, Task
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.utils.threads import thread_count

MAX_RESTARTS = 100_000
MAX_SEGMENTS = 1000
MAX_DENSE_ITEMS = 300  # above, a mixture is low-rank

# Segments, rank and pairs of attracting columns by default, of the dense and of the low-rank mixture.
DENSE_SEGMENTS, DENSE_RANK = 10, 20
LOW_RANK_SEGMENTS, LOW_RANK_RANK, LOW_RANK_PAIRS = 30, 8, 96

DENSE = Learner(
    "mixture",
    mixture,
    partial(remaining_gain, min_steps=30),  # the first steps after the segments have been learned are slow
    tol=2e-3,
    can_be_nonempty=True,
    nonempty_by_default=True,
)
LOW_RANK = Learner("low-rank", low_rank, never, can_be_nonempty=True, nonempty_by_default=True, at_end=Stop.PLANNED)


@dataclass(frozen=True)
class Settings:
    """Options that all models share, in the order of the parameters of `fit` and `fit_dpp`."""

    model_type: ClassVar[type[DPP | Mixture]]
    restarts: int = 1
    validation: float | None = None
    nonempty: bool | str = "auto"
    tol: float | None = None
    max_iter: int = 1000
    max_seconds: float | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        whole_number("restarts", self.restarts, 1, MAX_RESTARTS)
        whole_number("max_iter", self.max_iter, 0)
        thread_count(self.threads)
        check_number("tol", self.tol, "0 or more", lambda x: x >= 0)
        check_number("max_seconds", self.max_seconds, "positive", lambda x: x > 0)
        check_number("validation", self.validation, "a fraction from 0 to less than 1", lambda x: 0 <= x < 1)

    def like(self, start: Any) -> Settings:
        """Return the settings with what was not given taken from a model to start from."""
        return self

    def task(self, baskets: AnyBaskets) -> Task:
        """Return what the settings mean for these baskets."""
        raise NotImplementedError

    def task_of(self, learner: Learner, problem: Problem, init: str, shrinkage: float | str = 0.0) -> Task:
        """Return the task of a learner and its problem, with the other settings."""
        tol = learner.tol if self.tol is None else self.tol
        limits = Limits(learner.rule, tol, self.max_iter, self.max_seconds or math.inf)
        return Task(learner, problem, limits, init, self.restarts, float(self.validation or 0), shrinkage)


@dataclass(frozen=True)
class DPPSettings(Settings):
    """The options of `fit_dpp`."""

    model_type: ClassVar[type[DPP | Mixture]] = DPP
    learner: str = "lbfgs"
    init: str = "moments"
    shrinkage: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice("learner", self.learner, LEARNERS)
        _check_choice("init", self.init, INITIALISERS)
        if self.shrinkage != "auto":
            check_number("shrinkage", self.shrinkage, "'auto' or a number between 0 and 1", lambda s: 0 <= s <= 1)

    def task(self, baskets: AnyBaskets) -> Task:
        learner, shrinkage = LEARNERS[self.learner], self.shrinkage
        in_parts = isinstance(baskets, Parts)
        if shrinkage == "auto" and in_parts:
            raise InputError("shrinkage='auto' (--shrinkage) is not valid for baskets in parts; pass a number")
        if shrinkage is None:  # without iterations the model is the start
            shrinkage = 0.0 if in_parts or not self.max_iter else learner.shrinkage
        problem = SymmetricProblem(baskets, self.threads, resolve_nonempty(self.nonempty, baskets, learner))
        return self.task_of(learner, problem, self.init, shrinkage)


@dataclass(frozen=True)
class MixtureSettings(Settings):
    """The options of `fit`."""

    model_type: ClassVar[type[DPP | Mixture]] = Mixture
    segments: int | None = None
    rank: int | None = None
    attraction: bool | int = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("segments", 1 if self.segments is None else self.segments, 1, MAX_SEGMENTS)
        whole_number("rank", 0 if self.rank is None else self.rank, 0)
        if not isinstance(self.attraction, bool | np.bool_):
            whole_number("attraction", self.attraction, 0)

    def like(self, start: Any) -> MixtureSettings:
        """Return the settings with the segments, and the columns of a low-rank model, of the start."""
        if start is None:
            return self
        segments = start.n_segments if self.segments is None else self.segments
        columns = columns_of(start) if self.rank is None and self.attraction is True else None
        rank, attraction = columns or (self.rank, self.attraction)
        return replace(self, segments=segments, rank=rank, attraction=attraction)

    def task(self, baskets: AnyBaskets) -> Task:
        """Return the task of a dense mixture; of a low-rank one with many items, or if the pairs are given."""
        attraction = self.attraction
        pairs = int(attraction)
        if isinstance(attraction, bool | np.bool_):
            if baskets.n_items <= MAX_DENSE_ITEMS:
                rank = DENSE_RANK if self.rank is None else self.rank
                shape = self.segments or DENSE_SEGMENTS, rank, bool(attraction)
                dense = MixtureProblem(baskets, self.threads, resolve_nonempty(self.nonempty, baskets, DENSE), *shape)
                return self.task_of(DENSE, dense, dense.random_start)
            pairs = LOW_RANK_PAIRS if attraction else 0
        if not isinstance(baskets, Baskets):
            raise InputError(
                f"a mixture of more than {MAX_DENSE_ITEMS} items, or with attraction= as a number, needs all baskets "
                f"in one place, got parts with {baskets.n_items} items; fit a DPP, or keep the most frequent items"
            )
        if self.validation is None:
            return replace(self, validation=validation_fraction(baskets.n_units)).task(baskets)
        columns = LOW_RANK_RANK if self.rank is None else self.rank, pairs
        nonempty, segments = resolve_nonempty(self.nonempty, baskets, LOW_RANK), self.segments or LOW_RANK_SEGMENTS
        problem = LowRankProblem(baskets, self.threads, nonempty, segments, *columns)
        return self.task_of(LOW_RANK, problem, problem.random_start)


def validation_fraction(n: int) -> float:
    """Return the fraction of n baskets that a low-rank fit holds out: enough to tell steps apart, at most 5,000."""
    return min(max(0.02, 200 / n), 0.1, 5000 / n) if n >= 100 else 0.0


def check_number(name: str, value: Any, expected: str, valid: Callable[[float], bool]) -> None:
    """Raise an error unless a value is None or a valid number."""
    if value is not None and not (isinstance(value, Real) and not isinstance(value, bool) and valid(float(value))):
        raise InputError(f"{name} must be {expected}, got {value!r}")


def _check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    if value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}")


MODELS: dict[str, type[Settings]] = {each.model_type.kind: each for each in (MixtureSettings, DPPSettings)}


def settings_of(model: str | None = None, **options: Any) -> Settings:
    """Return the settings of `fit` or of `fit_dpp`, for callers that take the options of both.

    By default the model is a mixture, or a DPP if an option that only a DPP has is given. An option that is None counts
    as not given.
    """
    given = {name: value for name, value in options.items() if value is not None}
    known = {kind: {each.name for each in fields(cls)} for kind, cls in MODELS.items()}
    if model is None:
        model = "dpp" if given.keys() & (known["dpp"] - known["mixture"]) else "mixture"
    _check_choice("model", model, MODELS)
    for name in given.keys() - known[model]:
        raise InputError(f"{name!r} is not an option of a {model}; it takes {', '.join(sorted(known[model]))}")
    return MODELS[model](**given)
