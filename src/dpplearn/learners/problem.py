"""Learner, an entry of the tables of learners; Problem, what it is given to solve; and Task, both with their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import independent_log_likelihood
from dpplearn.learners.kernels import Kernel, distribution_of
from dpplearn.learners.loop import Arrays, Limits, Rule, Step, Stop
from dpplearn.utils.memory import check_memory
from dpplearn.utils.text import count
from dpplearn.utils.threads import thread_count

MATRICES = 37  # N×N matrices at the peak of `lbfgs`, which has the most; by its resident memory at N = 300 to 700
FOLDS = 5  # of the cross-validation that chooses the shrinkage, learned at the same time


@dataclass(frozen=True)
class Learner:
    """A generator of steps, its stopping rule, and its defaults."""

    name: str
    steps: Callable[[Any, Any], Iterator[Step]]  # from a start and a problem
    rule: Rule
    tol: float = 1e-4  # nats per basket; for `relative_change`, relative
    as_published: bool = False  # follows the authors' program step by step, and ends where that ends
    can_be_nonempty: bool = False  # whether it can maximise P(Y | Y ≠ ∅)
    nonempty_by_default: bool = False  # whether it does so with nonempty="auto" if no basket is empty
    shrinkage: float | str = 0.0
    at_end: Stop = Stop.NO_ASCENT  # why a run stops that ends by itself


@dataclass(frozen=True, eq=False)
class Problem:
    """Baskets, the distribution to maximise, and the conversions between models and what a learner optimises.

    A learner takes a start: what `initial`, `start_from` or `resumed` return. If `nonempty` is true, its own objective
    must be conditional on Y ≠ ∅, too.
    """

    baskets: AnyBaskets
    threads: int | None = None  # None: all cores
    nonempty: bool = False  # whether the distribution is P(Y given Y ≠ ∅)

    model_type: ClassVar[Any]
    random_start: ClassVar[str] = "random"  # name of the random starts of further runs
    blends: ClassVar[bool] = False  # whether item-to-item is mixed into the ranking of the model

    def distribution(self, kernel: Any) -> SetDistribution:
        """Return the distribution of a kernel."""
        return distribution_of(kernel, nonempty=self.nonempty)

    def log_likelihood(self, kernel: Any) -> float:
        """Return the mean log-likelihood per basket."""
        return self.distribution(kernel).mean_log_likelihood(self.baskets, self.threads)

    def independent_log_likelihood(self) -> float:
        """Return the mean log-likelihood of independent items with the frequencies of the baskets."""
        return independent_log_likelihood(self.baskets, nonempty=self.nonempty)

    def objective(self, kernel: Any) -> float | None:
        """Return what learning maximises, at a kernel; None where that is the log-likelihood."""
        return None

    def baseline(self) -> Any:
        """Return independent items, at least as likely as which a result must be; None where that is not promised."""
        return None

    def initial(self, name: str, rng: np.random.Generator) -> Any:
        """Return the start called `name`."""
        raise NotImplementedError

    def adapted(self, model: Any, rng: np.random.Generator) -> Kernel:
        """Return the kernel of a model over the items of the baskets, matched by label."""
        raise NotImplementedError

    def start_from(self, kernel: Any) -> Any:
        """Return a start that begins at the kernel."""
        return kernel

    def resumed(self, schedule: Arrays) -> Any:
        """Return the start that continues the schedule of a checkpoint, or None if that is of another problem."""
        return None

    def finished(self, step: Step) -> tuple[Any, Any]:
        """Return the kernel of the last step, and the `QualityWeights` of `fit_quality`."""
        return step.kernel, None

    def facts(self, step: Step) -> dict[str, Any]:
        """Return entries of the training record that describe the model of a step."""
        return {}

    def memory(self) -> float:
        """Return the bytes that learning needs at its peak."""
        return 8.0 * self.baskets.n_items**2 * MATRICES


@dataclass(frozen=True, eq=False)
class Task:
    """A learner, its problem, and how to run it."""

    learner: Learner
    problem: Problem  # with all baskets; a fit replaces them by the deduplicated training set
    limits: Limits
    init: str
    restarts: int = 1
    validation: float = 0.0
    shrinkage: float | str = 0.0

    def check_memory(self) -> None:
        """Raise an error if the fit needs more memory than there is."""
        folds = min(thread_count(self.problem.threads), FOLDS) if self.shrinkage == "auto" else 1
        what = f"learning {count(self.problem.baskets.n_items, 'item')} with {self.learner.name!r}"
        check_memory(folds * self.problem.memory(), what, "keep only the most frequent items")
