"""FitOptions: what can be asked of a fit, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Real
from os import PathLike

import numpy as np

from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, whole_number
from dpplearn.fitting.prior import as_strength
from dpplearn.learners.registry import LEARNERS, Learner, learners_of
from dpplearn.learners.starts import INITIALISERS
from dpplearn.tools.threads import thread_count

MOST_RESTARTS = 100_000
MODELS = {"mixture": "mixture", "dpp": "auto"}  # each with its usual learner
SEGMENTS, RANK = 10, 20  # of a mixture, unless others are asked for
MOST_SEGMENTS = 1000


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, which explains them, but for what it learns from and who is told.

    Of what was not asked for, all is settled when they are made but the law, which depends on the baskets.
    """

    model: str | None = None
    learner: str | None = None
    init: str | None = None
    segments: int | None = None
    attraction: bool = True
    rank: int | None = None
    restarts: int = 1
    tol: float | None = None
    max_iter: int = 1000
    max_seconds: float | None = None
    threads: int | None = None
    prior: float | str | None = None
    validation: float = 0.0
    patience: int = 10
    nonempty: bool | str = "auto"
    progress: bool = False
    checkpoint: str | PathLike[str] | None = None
    checkpoint_seconds: float = 10.0
    resume: str | PathLike[str] | None = None
    how: Learner = field(init=False, repr=False)  # what all this comes to, also where nothing was asked for
    first_start: str = field(init=False, repr=False)
    tolerance: float = field(init=False, repr=False)
    strength: float | str = field(init=False, repr=False)  # of the prior, "auto" or a number
    n_segments: int = field(init=False, repr=False)
    n_columns: int = field(init=False, repr=False)  # of U

    def __post_init__(self) -> None:
        self._check_numbers()
        how = LEARNERS[self._learner(self._model())]
        self._settle(
            how=how,
            first_start=self._start(how),
            tolerance=how.usual_tol if self.tol is None else self.tol,
            strength=self._strength(how),
            n_segments=SEGMENTS if self.segments is None else self.segments,
            n_columns=RANK if self.rank is None else self.rank,
            validation=float(self.validation),
            nonempty=self.nonempty if isinstance(self.nonempty, str) else bool(self.nonempty),
        )

    def _settle(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _model(self) -> str:
        of_learner = LEARNERS[self.learner].model if self.learner in LEARNERS else None
        asked_for_dpp = any(each is not None for each in (self.learner, self.init, self.prior))
        model = self.model or of_learner or ("dpp" if asked_for_dpp else "mixture")
        if model not in MODELS:
            raise InputError(f"model is {model!r}; expected one of {', '.join(sorted(MODELS))}")
        return model

    def _learner(self, model: str) -> str:
        learner = self.learner or MODELS[model]
        able = learners_of(model)
        if learner not in able:
            of_model = f" for model {model!r}" if learner in LEARNERS else ""
            raise InputError(f"learner is {learner!r}; expected one of {', '.join(able)}{of_model}")
        return learner

    def _start(self, how: Learner) -> str:
        starts = sorted(INITIALISERS) if how.model == "dpp" else [how.random_start]
        init = self.init or how.usual_start
        if init not in starts:
            raise InputError(f"init is {init!r}; expected one of {', '.join(starts)}")
        return init

    def _strength(self, how: Learner) -> float | str:
        if how.model == "mixture":
            if self.prior is not None:
                raise InputError(
                    f"prior is {self.prior!r}, and a mixture has none; leave it out, or ask for model='dpp'"
                )
            return 0.0
        for name, usual in (("segments", None), ("rank", None), ("attraction", True)):
            if getattr(self, name) != usual:
                raise InputError(
                    f"{name} is {getattr(self, name)!r}, which a mixture has and a DPP has not; leave it out, or leave "
                    "out model='dpp', learner, init and prior"
                )
        prior = how.usual_prior if self.prior is None else self.prior
        return "auto" if isinstance(prior, str) and prior == "auto" else as_strength(prior)

    @property
    def given_nonempty(self) -> bool:
        """The law, once it is settled."""
        assert isinstance(self.nonempty, bool)
        return self.nonempty

    def _check_numbers(self) -> None:
        whole_number("restarts", self.restarts, 1, MOST_RESTARTS)
        whole_number("max_iter", self.max_iter, 0)
        whole_number("patience", self.patience, 1)
        whole_number("segments", SEGMENTS if self.segments is None else self.segments, 1, MOST_SEGMENTS)
        whole_number("rank", RANK if self.rank is None else self.rank, 0)
        thread_count(self.threads)
        for what in ("tol", "max_seconds", "checkpoint_seconds", "validation"):
            number = getattr(self, what)
            if not isinstance(number, Real) and not (number is None and what in ("max_seconds", "tol")):
                raise InputError(f"{what} is {number!r}; expected a number")
        for what in ("tol", "checkpoint_seconds"):
            number = getattr(self, what)
            if number is not None and not number >= 0:
                raise InputError(f"{what} is {number}; expected 0 or more")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise InputError(f"max_seconds is {self.max_seconds}; expected a positive number, or None")
        if not 0 <= self.validation < 1:
            raise InputError(f"validation is {self.validation}; expected a share of the baskets, from 0 to less than 1")
        if not isinstance(self.nonempty, bool | np.bool_) and self.nonempty != "auto":
            raise InputError(f"nonempty is {self.nonempty!r}; expected True, False or 'auto'")

    def for_baskets(self, baskets: Baskets) -> FitOptions:
        """With the law settled: by default, sets cannot be empty where none is, if that is not for the paper's learners
        and those published since, which learn P(Y)."""
        if not baskets.total_weight > 0:
            raise InputError(
                f"there is nothing to learn from: {len(baskets)} baskets of total weight {baskets.total_weight:g}"
            )
        empty = int(((baskets.weights > 0) & (baskets.sizes == 0)).sum())
        if self.nonempty == "auto":
            return replace(self, nonempty=self.how.usually_nonempty and not empty)
        if self.nonempty and not self.how.learns_nonempty:
            able = ", ".join(sorted(name for name, each in LEARNERS.items() if each.learns_nonempty))
            raise InputError(
                f"learner {self.how.name!r} cannot learn from sets given that they are not empty; use one of {able}"
            )
        if self.nonempty and empty:
            raise InputError(
                f"{empty} of {len(baskets)} baskets are empty, which given that baskets are not empty is "
                "impossible; leave nonempty (--nonempty) out, or leave them out (baskets.subset(baskets.sizes > 0))"
            )
        return self
