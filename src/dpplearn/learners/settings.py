"""Settings: the options of `fit` and `fit_dpp`, checked once; and Task, what they mean for given baskets."""

from __future__ import annotations

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
from dpplearn.learners.problem import Learner, Problem
from dpplearn.learners.starts import INITIALISERS
from dpplearn.learners.symmetric.problem import SymmetricProblem
from dpplearn.learners.symmetric.table import LEARNERS
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.models.model import SetModel
from dpplearn.utils.memory import check_memory
from dpplearn.utils.text import count
from dpplearn.utils.threads import thread_count

MAX_RESTARTS = 100_000
MAX_SEGMENTS = 1000
MAX_DENSE_ITEMS = 300  # above, a mixture is low-rank
FOLDS = 5  # of the cross-validation that chooses the shrinkage, learned at the same time

# Segments, rank and pairs of attracting columns by default, of the dense and of the low-rank mixture.
DENSE_SEGMENTS, DENSE_RANK = 10, 20
LOW_RANK_SEGMENTS, LOW_RANK_RANK, LOW_RANK_PAIRS = 30, 8, 96

DENSE = Learner(
    "mixture",
    mixture,
    partial(remaining_gain, min_steps=30),  # the first steps after the segments have been learned are slow
    tol=2e-3,
    matrices=30,
    can_condition=True,
    conditions=True,
)
LOW_RANK = Learner("low-rank", low_rank, never, tol=5e-3, can_condition=True, conditions=True, at_end=Stop.PLANNED)


@dataclass(frozen=True, eq=False)
class Task:
    """A learner and its problem, and the settings that depend on the baskets."""

    learner: Learner
    problem: Problem  # with all baskets; a fit replaces them by the deduplicated training set
    limits: Limits
    init: str
    restarts: int = 1
    validation: float = 0.0
    shrinkage: float | str = 0.0

    def check_memory(self, at_once: int = 1) -> None:
        """Raise an error if so many fits at a time need more memory than there is."""
        folds = min(thread_count(self.problem.threads), FOLDS) if self.shrinkage == "auto" else 1
        what = f"learning {count(self.problem.baskets.n_items, 'item')} with {self.learner.name!r}"
        needed = at_once * folds * self.problem.memory(self.learner)
        check_memory(needed, what, "keep only the most frequent items")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options that all models share."""

    kind: ClassVar[str]
    model_type: ClassVar[type[SetModel]]
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
        for name in ("tol", "max_seconds", "validation"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, Real) or isinstance(value, bool)):
                raise InputError(f"{name} must be a number, got {value!r}")
        if self.tol is not None and not self.tol >= 0:
            raise InputError(f"tol must be 0 or more, got {self.tol}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise InputError(f"max_seconds must be positive, got {self.max_seconds}")
        if self.validation is not None and not 0 <= self.validation < 1:
            raise InputError(f"validation must be a fraction from 0 to less than 1, got {self.validation}")

    def like(self, start: Any) -> Settings:
        """Return the settings with what was not given taken from a model to start from."""
        return self

    def task(self, baskets: AnyBaskets) -> Task:
        """Return what the settings mean for these baskets."""
        raise NotImplementedError

    def limits(self, learner: Learner) -> Limits:
        """Return when a run of the learner stops."""
        tol = learner.tol if self.tol is None else self.tol
        return Limits(learner.rule, tol, self.max_iter, self.max_seconds)

    def _distribution(self, learner: Learner, baskets: AnyBaskets) -> tuple[int | None, bool]:
        """Return the threads, and whether the distribution is P(Y given Y ≠ ∅)."""
        nonempty = resolve_nonempty(self.nonempty, baskets, learner.conditions)
        if nonempty and not learner.can_condition:
            able = ", ".join(name for name, each in LEARNERS.items() if each.can_condition)
            raise InputError(f"learner {learner.name!r} cannot condition on nonempty sets; use one of {able}")
        return self.threads, nonempty


@dataclass(frozen=True, kw_only=True)
class DPPSettings(Settings):
    """The options of `fit_dpp`."""

    kind: ClassVar[str] = "dpp"
    model_type: ClassVar[type[SetModel]] = DPP
    learner: str = "lbfgs"
    init: str = "moments"
    shrinkage: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, known in (("learner", self.learner, LEARNERS), ("init", self.init, INITIALISERS)):
            if value not in known:
                raise InputError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if self.shrinkage is not None:
            check_shrinkage(self.shrinkage)

    def task(self, baskets: AnyBaskets) -> Task:
        learner = LEARNERS[self.learner]
        problem = SymmetricProblem(baskets, *self._distribution(learner, baskets))
        validation, shrinkage = float(self.validation or 0), self._shrinkage(learner, baskets)
        return Task(learner, problem, self.limits(learner), self.init, self.restarts, validation, shrinkage)

    def _shrinkage(self, learner: Learner, baskets: AnyBaskets) -> float | str:
        in_parts = isinstance(baskets, Parts)
        if self.shrinkage == "auto" and in_parts:
            raise InputError(
                "shrinkage (--shrinkage) must be a number between 0 and 1 for baskets in parts, got 'auto': "
                "cross-validation needs all baskets in one place"
            )
        if self.shrinkage is not None:
            return self.shrinkage
        # without iterations the model is the start
        return 0.0 if in_parts or not self.max_iter else learner.shrinkage


@dataclass(frozen=True, kw_only=True)
class MixtureSettings(Settings):
    """The options of `fit`."""

    kind: ClassVar[str] = "mixture"
    model_type: ClassVar[type[SetModel]] = Mixture
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
        settings = self if self.segments is not None else replace(self, segments=start.n_segments)
        columns = columns_of(start)
        if columns is None or self.rank is not None or self.attraction is not True:
            return settings
        return replace(settings, rank=columns[0], attraction=columns[1])

    def is_low_rank(self, n_items: int) -> bool:
        """Return whether the interaction is low-rank: with many items, or if the number of pairs is given."""
        return n_items > MAX_DENSE_ITEMS or not isinstance(self.attraction, bool | np.bool_)

    def shape(self, n_items: int) -> tuple[int, int, bool | int]:
        """Return the numbers of segments and of repelling columns, and whether (low-rank: by how many pairs of columns)
        items attract."""
        if not self.is_low_rank(n_items):
            rank = DENSE_RANK if self.rank is None else self.rank
            return self.segments or DENSE_SEGMENTS, min(rank, n_items), bool(self.attraction)
        pairs = self.attraction
        if isinstance(pairs, bool | np.bool_):
            pairs = LOW_RANK_PAIRS if pairs else 0
        return self.segments or LOW_RANK_SEGMENTS, LOW_RANK_RANK if self.rank is None else self.rank, int(pairs)

    def task(self, baskets: AnyBaskets) -> Task:
        shape = self.shape(baskets.n_items)
        if not self.is_low_rank(baskets.n_items):
            distribution = self._distribution(DENSE, baskets)
            problem: Problem = MixtureProblem(baskets, *distribution, shape[0], shape[1], bool(shape[2]))
            limits, validation = self.limits(DENSE), float(self.validation or 0)
            return Task(DENSE, problem, limits, problem.random_start, self.restarts, validation)
        if not isinstance(baskets, Baskets):
            raise InputError(
                f"a mixture of {count(baskets.n_items, 'item')} is low-rank, for which all baskets must be in one "
                f"place; fit it to all of them together, keep the {MAX_DENSE_ITEMS} most frequent items, or fit a DPP"
            )
        problem = LowRankProblem(baskets, *self._distribution(LOW_RANK, baskets), *shape)
        validation = validation_fraction(baskets.n_units) if self.validation is None else float(self.validation)
        return Task(LOW_RANK, problem, self.limits(LOW_RANK), problem.random_start, self.restarts, validation)


def validation_fraction(n: int) -> float:
    """Return the fraction of n baskets that a low-rank fit holds out: enough to tell steps apart, at most 5,000."""
    return min(max(0.02, 200 / n), 0.1, 5000 / n) if n >= 100 else 0.0


def check_shrinkage(shrinkage: Any) -> float | str:
    """Return `shrinkage` if it is "auto" or a number in [0, 1]."""
    if isinstance(shrinkage, str) and shrinkage == "auto":
        return shrinkage
    if isinstance(shrinkage, Real) and not isinstance(shrinkage, bool) and 0 <= float(shrinkage) <= 1:
        return float(shrinkage)
    raise InputError(f"shrinkage must be 'auto' or a number between 0 and 1, got {shrinkage!r}")


MODELS: dict[str, type[Settings]] = {each.kind: each for each in (MixtureSettings, DPPSettings)}


def settings_of(model: str | None = None, **options: Any) -> Settings:
    """Return the settings of `fit` or of `fit_dpp`, for callers that take the options of both.

    By default the model is a mixture, or a DPP if an option that only a DPP has is given. An option that is None, or
    the default of its function, counts as not given.
    """
    if model is not None and model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    given = {name: value for name, value in options.items() if value is not None}
    names = {kind: {each.name: each.default for each in fields(cls)} for kind, cls in MODELS.items()}
    of_dpp = any(name in names["dpp"] and name not in names["mixture"] for name in given)
    model = model or ("dpp" if of_dpp else "mixture")
    known, others = names[model], {**names["mixture"], **names["dpp"]}
    wrong = [name for name in given if name not in known and (name not in others or given[name] != others[name])]
    if wrong:
        raise InputError(f"{wrong[0]!r} is not an option of a {model}; it takes {', '.join(known)}")
    return MODELS[model](**{name: value for name, value in given.items() if name in known})
