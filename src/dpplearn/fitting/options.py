"""FitOptions: what can be asked of a fit, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from os import PathLike

from dpplearn.data.baskets import Baskets
from dpplearn.errors import InputError, whole_number
from dpplearn.fitting.prior import as_strength
from dpplearn.learners.registry import LEARNERS, Learner
from dpplearn.learners.starts import INITIALISERS
from dpplearn.tools.threads import thread_count

MOST_RESTARTS = 100_000
USUAL_PRIOR: dict[str, float | str] = {"auto": "auto"}  # of the other learners, none


@dataclass(frozen=True)
class FitOptions:
    """The options of `fit`, which explains them, but for what it learns from and who is told."""

    learner: str = "auto"
    init: str = "moments"
    restarts: int = 1
    tol: float = 1e-4
    max_iter: int = 1000
    max_seconds: float | None = None
    threads: int | None = None
    prior: float | str | None = None
    validation: float = 0.0
    patience: int = 10
    nonempty: bool = False
    progress: bool = False
    checkpoint: str | PathLike[str] | None = None
    checkpoint_seconds: float = 10.0
    resume: str | PathLike[str] | None = None
    strength: float | str = field(init=False)  # of the prior, "auto" or a number, also where none was asked for

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_numbers()
        prior = USUAL_PRIOR.get(self.learner, 0.0) if self.prior is None else self.prior
        is_auto = isinstance(prior, str) and prior == "auto"
        object.__setattr__(self, "strength", "auto" if is_auto else as_strength(prior))
        object.__setattr__(self, "validation", float(self.validation))
        object.__setattr__(self, "nonempty", bool(self.nonempty))

    @property
    def how(self) -> Learner:
        """The learner itself."""
        return LEARNERS[self.learner]

    def _check_choices(self) -> None:
        for what, name, known in (("learner", self.learner, LEARNERS), ("init", self.init, INITIALISERS)):
            if name not in known:
                raise InputError(f"{what} is {name!r}; expected one of {', '.join(sorted(known))}")
        if self.nonempty and not self.how.learns_nonempty:
            able = ", ".join(sorted(name for name, each in LEARNERS.items() if each.learns_nonempty))
            raise InputError(
                f"learner {self.learner!r} cannot learn from sets given that they are not empty; use one of {able}"
            )

    def _check_numbers(self) -> None:
        whole_number("restarts", self.restarts, 1, MOST_RESTARTS)
        whole_number("max_iter", self.max_iter, 0)
        whole_number("patience", self.patience, 1)
        thread_count(self.threads)
        for what in ("tol", "max_seconds", "checkpoint_seconds", "validation"):
            number = getattr(self, what)
            if not isinstance(number, Real) and not (number is None and what == "max_seconds"):
                raise InputError(f"{what} is {number!r}; expected a number")
        for what in ("tol", "checkpoint_seconds"):
            if not getattr(self, what) >= 0:
                raise InputError(f"{what} is {getattr(self, what)}; expected 0 or more")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise InputError(f"max_seconds is {self.max_seconds}; expected a positive number, or None")
        if not 0 <= self.validation < 1:
            raise InputError(f"validation is {self.validation}; expected a share of the baskets, from 0 to less than 1")

    def check_baskets(self, baskets: Baskets) -> None:
        """Refuse what nothing can be learned from, or nothing under the law asked for."""
        if not baskets.total_weight > 0:
            raise InputError(
                f"there is nothing to learn from: {len(baskets)} baskets of total weight {baskets.total_weight:g}"
            )
        empty = int(((baskets.weights > 0) & (baskets.sizes == 0)).sum())
        if self.nonempty and empty:
            raise InputError(
                f"{empty} of {len(baskets)} baskets are empty, which given that baskets are not empty is "
                "impossible; leave nonempty out, or leave them out (baskets.subset(baskets.sizes > 0))"
            )
