"""FitOptions: what can be asked of a fit, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError, whole_number
from dpplearn.fitting.shrinkage import check_shrinkage
from dpplearn.learners.registry import FACTORED, LEARNERS, QUALITY, Learner, learners_of
from dpplearn.learners.starts import INITIALISERS
from dpplearn.tools.threads import thread_count
from dpplearn.tools.words import count

MOST_RESTARTS = 100_000
MODELS = {"mixture": "mixture", "dpp": "auto"}  # each with its usual learner
PAIRS = 96  # of columns of the part that attracts, of a mixture in factors
MOST_DENSE = 300  # items; above, a mixture is learned in factors, unless asked otherwise
MOST_SEGMENTS = 1000
PATIENCE, UNENDING = 10, 10**9  # iterations
RIDGES = ("evidence", "cross-validation")  # how it can be chosen
NOT_OF_QUALITY = ("init", "restarts", "validation", "patience")


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, which explains them, but for what it learns from and who is told.

    Of what was not asked for, all is settled when they are made but what depends on the baskets: the law, how a
    mixture is learned, and what is set aside.
    """

    model: str | None = None
    learner: str | None = None
    init: str | None = None
    segments: int | None = None
    attraction: bool | int = True
    rank: int | None = None
    restarts: int = 1
    tol: float | None = None
    max_iter: int = 1000
    max_seconds: float | None = None
    threads: int | None = None
    shrinkage: float | str | None = None
    validation: float | None = None
    patience: int | None = None
    nonempty: bool | str = "auto"
    progress: bool = False
    features: Any = field(default=None, repr=False, compare=False)
    similarity: Any = field(default=None, repr=False, compare=False)
    ridge: float | str = "evidence"
    how: Learner = field(init=False, repr=False)  # what all this comes to, also where nothing was asked for
    first_start: str = field(init=False, repr=False)
    tolerance: float = field(init=False, repr=False)
    resolved_shrinkage: float | str = field(init=False, repr=False)  # "auto" or a number
    n_segments: int = field(init=False, repr=False)
    n_columns: int = field(init=False, repr=False)  # of the part that repels
    n_pairs: int = field(init=False, repr=False)  # of columns of the part that attracts, in factors

    def __post_init__(self) -> None:
        self._check_numbers()
        how = LEARNERS[self._learner(self._model())]
        self._check_quality(how)
        self._settle(
            how=how,
            first_start=self._start(how),
            tolerance=how.usual_tol if self.tol is None else self.tol,
            resolved_shrinkage=self._shrinkage(how),
            n_segments=how.usual_segments if self.segments is None else self.segments,
            n_columns=how.usual_rank if self.rank is None else self.rank,
            n_pairs=PAIRS * self.attraction if isinstance(self.attraction, bool) else self.attraction,
            nonempty=self.nonempty if isinstance(self.nonempty, str) else bool(self.nonempty),
        )

    def _settle(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _model(self) -> str:
        of_learner = LEARNERS[self.learner].model if self.learner in LEARNERS else None
        asked_for_dpp = any(each is not None for each in (self.learner, self.init, self.shrinkage))
        model = self.model or of_learner or ("dpp" if asked_for_dpp else "mixture")
        if model not in MODELS:
            raise InputError(f"model is {model!r}; expected one of {', '.join(sorted(MODELS))}")
        return model

    def _learner(self, model: str) -> str:
        in_pairs = model == "mixture" and not isinstance(self.attraction, bool)
        learner = self.learner or (FACTORED.name if in_pairs else MODELS[model])
        able = learners_of(model)
        if learner not in able:
            of_model = f" for model {model!r}" if learner in LEARNERS else ""
            raise InputError(f"learner is {learner!r}; expected one of {', '.join(able)}{of_model}")
        if in_pairs and learner != FACTORED.name:
            raise InputError(
                f"attraction is {self.attraction}, a number of columns, which only a mixture in factors has; expected "
                f"True or False, or learner={FACTORED.name!r}"
            )
        return learner

    def _start(self, how: Learner) -> str:
        starts = sorted(INITIALISERS) if how.model == "dpp" else [how.random_start]
        init = self.init or how.usual_start
        if init not in starts:
            raise InputError(f"init is {init!r}; expected one of {', '.join(starts)}")
        return init

    def _check_quality(self, how: Learner) -> None:
        """Refuse what quality has no use for, and what nothing else has."""
        if how is not QUALITY:
            if self.features is not None or self.similarity is not None or self.ridge != RIDGES[0]:
                given = next(name for name in ("features", "similarity", "ridge") if getattr(self, name) is not None)
                raise InputError(
                    f"{given} is for learner={QUALITY.name!r} alone; leave it out, or ask for that learner"
                )
            return
        usual = {each.name: each.default for each in fields(FitOptions)}
        for name in NOT_OF_QUALITY:
            if getattr(self, name) and getattr(self, name) != usual[name]:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, and learner {QUALITY.name!r} has no use for it: its one "
                    "optimum takes seconds from anywhere; leave it out"
                )
        if not (self.shrinkage in (None, "auto") or (isinstance(self.shrinkage, Real) and self.shrinkage == 0)):
            raise InputError(
                f"shrinkage must be 0 (maximum likelihood) or unset (item counts + ½) for learner {QUALITY.name!r}, "
                f"got {self.shrinkage!r}"
            )
        if self.ridge not in RIDGES and not (isinstance(self.ridge, Real) and 0 <= self.ridge < np.inf):
            raise InputError(
                f"ridge is {self.ridge!r}; expected {' or '.join(map(repr, RIDGES))}, or a number, 0 or more"
            )

    @property
    def smooths(self) -> bool:
        """Whether items of quality are learned as if half a basket more had, and half a basket more had not, each."""
        return self.shrinkage is None or self.shrinkage == "auto"

    def _shrinkage(self, how: Learner) -> float | str:
        if how.model == "mixture":
            if self.shrinkage is not None:
                raise InputError(f"shrinkage={self.shrinkage!r} is only valid for model='dpp'")
            return 0.0
        for name, usual in (("segments", None), ("rank", None), ("attraction", True)):
            if getattr(self, name) != usual:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, which a mixture has and a DPP has not; leave it out, or leave "
                    "out model='dpp', learner, init and shrinkage"
                )
        if how is QUALITY:
            return 0.0
        if self.shrinkage is not None:
            return check_shrinkage(self.shrinkage)
        return how.usual_shrinkage if self.max_iter else 0.0  # without iterations the model is the start

    @property
    def aside(self) -> float:
        """The share of the baskets set aside, once it is settled."""
        assert self.validation is not None
        return float(self.validation)

    @property
    def waits(self) -> int:
        """For how many iterations the baskets set aside may become no likelier; where a fit ends by a plan, for all."""
        usual = UNENDING if self.how is FACTORED else PATIENCE
        return usual if self.patience is None else self.patience

    @property
    def given_nonempty(self) -> bool:
        """The law, once it is settled."""
        assert isinstance(self.nonempty, bool)
        return self.nonempty

    def _check_numbers(self) -> None:
        whole_number("restarts", self.restarts, 1, MOST_RESTARTS)
        whole_number("max_iter", self.max_iter, 0)
        whole_number("patience", PATIENCE if self.patience is None else self.patience, 1)
        whole_number("segments", 1 if self.segments is None else self.segments, 1, MOST_SEGMENTS)
        whole_number("rank", 0 if self.rank is None else self.rank, 0)
        self._settle(attraction=_as_attraction(self.attraction))
        thread_count(self.threads)
        for what in ("tol", "max_seconds", "validation"):
            number = getattr(self, what)
            if number is not None and not isinstance(number, Real):
                raise InputError(f"{what} is {number!r}; expected a number")
        if self.tol is not None and not self.tol >= 0:
            raise InputError(f"tol is {self.tol}; expected 0 or more")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise InputError(f"max_seconds is {self.max_seconds}; expected a positive number, or None")
        if self.validation is not None and not 0 <= self.validation < 1:
            raise InputError(f"validation is {self.validation}; expected a share of the baskets, from 0 to less than 1")
        if not isinstance(self.nonempty, bool | np.bool_) and self.nonempty != "auto":
            raise InputError(f"nonempty is {self.nonempty!r}; expected True, False or 'auto'")

    def for_baskets(self, baskets: AnyBaskets) -> FitOptions:
        """With the law settled: by default, sets cannot be empty where none is, if that is not for the paper's learners
        and those published since, which learn P(Y)."""
        if not baskets.total_weight > 0:
            raise InputError(
                f"there is nothing to learn from: {len(baskets)} baskets of total weight {baskets.total_weight:g}"
            )
        if self.learner is None and self.how.name == MODELS["mixture"] and baskets.n_items > MOST_DENSE:
            return replace(self, model="mixture", learner=FACTORED.name).for_baskets(baskets)
        if isinstance(baskets, Parts):
            self._check_parts(baskets)
            if self.resolved_shrinkage == "auto":
                return replace(self, shrinkage=0.0).for_baskets(baskets)
        if self.validation is None:
            share = share_aside(baskets.n_units) if isinstance(baskets, Baskets) and self.how is FACTORED else 0.0
            return replace(self, validation=share).for_baskets(baskets)
        empty = baskets.totals.n_empty
        if self.nonempty == "auto":
            return replace(self, nonempty=self.how.usually_nonempty and not empty)
        if self.nonempty and not self.how.learns_nonempty:
            able = ", ".join(name for name in learners_of(self.how.model) if LEARNERS[name].learns_nonempty)
            raise InputError(
                f"learner {self.how.name!r} cannot learn from sets given that they are not empty; use one of {able}"
            )
        if self.nonempty and empty:
            raise InputError(
                f"{empty} of {len(baskets)} baskets are empty, which given that baskets are not empty is "
                "impossible; leave nonempty (--nonempty) out, or leave them out (baskets.subset(baskets.sizes > 0))"
            )
        return self

    def _check_parts(self, parts: Parts) -> None:
        """Refuse what is no sum over parts."""
        if self.how is QUALITY and self.ridge == "cross-validation":
            raise InputError("ridge is 'cross-validation', for which all baskets must be in one place; use 'evidence'")
        if self.shrinkage == "auto":
            raise InputError(
                "shrinkage (--shrinkage) must be a number between 0 and 1 for baskets in parts, got 'auto': "
                "cross-validation needs all baskets in one place"
            )
        if self.how is FACTORED:
            raise InputError(
                f"a mixture of {count(parts.n_items, 'item')} is learned in factors, for which all baskets must be in "
                f"one place; learn it from all of them together, keep the {MOST_DENSE} most frequent items, or ask for "
                f"model='dpp' (--model dpp) or learner={MODELS['mixture']!r}, which make tables of every two items"
            )


def _as_attraction(attraction: object) -> bool | int:
    if isinstance(attraction, bool | np.bool_):
        return bool(attraction)
    return whole_number("attraction", attraction, 0)


def share_aside(n: int) -> float:
    """Of n baskets, how many are set aside where a fit ends by a plan: enough to tell its steps apart, and few."""
    return min(max(0.02, 200 / n), 0.1, 5000 / n) if n >= 100 else 0.0
