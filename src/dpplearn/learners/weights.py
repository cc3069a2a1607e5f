"""fit_weights: the mixing weights of given models, a concave problem with one optimum. [KT11b]"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import IndependentItems
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.checkpoint import Callback
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.loop import Step, Stop, never
from dpplearn.learners.problem import Finished, Learner, Problem
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings
from dpplearn.learners.train import fit_task
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture, distribution_over
from dpplearn.models.model import SetModel
from dpplearn.utils.text import count

RIDGE = 1e-12  # on second derivatives, relative to the largest: models may be alike
MAX_HALVINGS = 30


def fit_weights(
    baskets: Baskets | Iterable[Iterable[Any]],
    models: Sequence[DPP | Mixture],
    *,
    k: int | None = None,
    nonempty: bool | str = "auto",
    tol: float = 1e-8,
    max_iter: int = 1000,
    max_seconds: float | None = None,
    threads: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
) -> FitResult[Mixture]:
    """Fit the weights of a mixture of given models by maximum likelihood.

    The log-likelihood is concave in the weights, and the fit ends at its maximum.

    Parameters
    ----------
    baskets : Baskets or list of lists
        Training sets.
    models : list of DPP and Mixture
        The models to mix, over the same items as the baskets.
    k : int, optional
        Number of items of every basket. The weights are then those of the distributions given the size (k-DPPs).
    nonempty : bool or "auto", default "auto"
        Whether the distributions are conditioned on nonempty sets. By default they are if no basket is empty.
    tol : float, default 1e-8
        Stop when no weights are better by more than this, in nats per basket.
    max_iter : int, default 1000
        Maximum number of iterations.
    max_seconds : float, optional
        Time limit, checked after every iteration.
    threads : int, optional
        Number of threads. By default all cores.
    callback : callable or list of callables, optional
        Called with a `FitProgress` after every iteration. A true return value stops the fit.

    Returns
    -------
    FitResult
        A `Mixture` with the given models as segments.

    Raises
    ------
    InputError
        If a basket is impossible under all models, or has not `k` items.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = [["tea", "milk"], ["tea"], ["beer"], ["beer", "milk"]] * 9
    >>> models = [dl.fit_dpp(baskets, shrinkage=s).model for s in (0.1, 1)]
    >>> fit_weights(baskets, models).converged
    True
    """
    settings = Settings(nonempty=nonempty, tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    problem = GivenModels.of(_over_models(baskets, models), models, k, settings)
    learner = Learner("weights", weights_steps, never, at_end=Stop.TOLERANCE)
    return fit_task(settings.task_of(learner, problem, "even"), callback=callback)


@dataclass(frozen=True, eq=False)
class GivenModels(Problem):
    """Baskets, the distributions they may come from, and the condition on every set: none, Y ≠ ∅, or |Y| = k.

    A kernel is the `SetDistribution` of the mixture.
    """

    baskets: Baskets  # over the items of the models
    distributions: tuple[SetDistribution, ...] = ()
    k: int | None = None
    tol: float = 1e-8

    model_type: ClassVar[Any] = Mixture

    @classmethod
    def of(cls, baskets: Baskets, models: Sequence[SetModel], k: int | None, settings: Settings) -> GivenModels:
        """Return the problem, with the condition that the options ask for."""
        each, tol = [distribution_over(model, baskets.catalogue) for model in models], settings.tol or 0.0
        counted = baskets.subset(baskets.weights > 0)
        if k is None:
            nonempty = resolve_nonempty(settings.nonempty, counted)
            each = [one.with_p_empty(0.0) for one in each] if nonempty else each
            return cls(baskets, settings.threads, nonempty, tuple(each), None, tol)
        k = whole_number("k", k, 1, baskets.n_items)
        others = int((counted.sizes != k).sum())
        if others or settings.nonempty is False:
            reason = f"{others} of {count(len(counted), 'basket')} have not" if others else "nonempty=False"
            raise InputError(f"k={k} means that every basket has {count(k, 'item')}, but {reason}")
        each = [_with_size(one, k, number) for number, one in enumerate(each)]
        return cls(baskets, settings.threads, False, tuple(each), k, tol)

    @cached_property
    def log_condition(self) -> Floats:
        """log P_c of the condition on the size, (n_models,)."""
        return np.array([each.log_sizes()[self.k] if self.k is not None else 0.0 for each in self.distributions])

    @cached_property
    def likelihoods(self) -> WeightsProblem:
        columns = [each.log_prob(self.baskets, self.threads) for each in self.distributions]
        found = np.column_stack(columns) - self.log_condition
        impossible = np.flatnonzero(found.max(axis=1) == -np.inf)
        if len(impossible):
            items = self.baskets.catalogue.select(self.baskets.positions(impossible[0]))
            raise InputError(
                f"{count(len(impossible), 'basket')} impossible under all models, such as {list(items)}; leave them "
                "out, or add a model under which every set is possible, such as one of independent items"
            )
        return WeightsProblem.of(found, self.baskets.weights)

    def initial(self, name: str, rng: np.random.Generator) -> Floats:
        """Return equal weights."""
        return np.full(len(self.distributions), 1 / len(self.distributions))

    def distribution(self, kernel: SetDistribution) -> SetDistribution:
        return kernel

    def at(self, w: Floats) -> SetDistribution:
        """Return the mixture in which the models have these weights, given the condition."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(w) - self.log_condition
        shares = np.exp(log_shares - log_shares.max())  # also for sizes that are very unlikely
        return SetDistribution.combined(self.distributions, shares / shares.sum())

    def log_likelihood(self, kernel: SetDistribution) -> float:
        log_condition = 0.0 if self.k is None else float(kernel.log_sizes()[self.k])
        return super().log_likelihood(kernel) - log_condition

    def independent_log_likelihood(self) -> float:
        if self.k is None:
            return super().independent_log_likelihood()
        items = IndependentItems(self.baskets.frequencies())
        return float(items.mean_log_likelihood(self.baskets) - items.log_sizes()[self.k])

    def finished(self, step: Step) -> Finished:
        to_gain = self.likelihoods.excess(step.parameters["weights"])
        return Finished(step.kernel, {"size": self.k, "to_gain": to_gain})

    def memory(self, learner: Learner) -> float:
        """Return the bytes of the likelihoods and of what a step derives from them."""
        return 8.0 * len(self.baskets) * len(self.distributions) * 4


def _over_models(baskets: AnyBaskets | Iterable[Iterable[Any]], models: Any) -> Baskets:
    """Return the baskets over the items of the models."""
    if not isinstance(models, Sequence) or not models or not all(isinstance(each, SetModel) for each in models):
        raise InputError("models must be a list of one or more DPPs and Mixtures")
    found = checked_baskets(baskets)
    if not isinstance(found, Baskets):
        raise InputError("the weights of given models need all baskets in one place, and these are in parts")
    return found.over(models[0].catalogue)


def _with_size(distribution: SetDistribution, k: int, number: int) -> SetDistribution:
    """Return a distribution with the same sets of k items; of a DPP the one with mean size k."""
    sizes, components = distribution.size_range, distribution.components
    if k not in sizes:
        raise InputError(
            f"k={k}, but sets of model {number} have {sizes[0]} to {sizes[-1]} items; leave that model out"
        )
    tilted = getattr(components, "with_mean_size", None)  # of a symmetric DPP
    return SetDistribution.mixture(softmax(distribution.log_mass), tilted(k) if tilted else components)


@dataclass(frozen=True, eq=False)
class WeightsProblem:
    """ℓ(w) = Σ_i s_i log Σ_c w_c P_c(Y_i), s_i the weight of basket i."""

    likelihoods: Floats  # (n_baskets, n_models), over the largest of each row
    log_largest: Floats  # (n_baskets,)
    shares: Floats  # (n_baskets,)

    @classmethod
    def of(cls, log_probabilities: Floats, weights: Floats) -> WeightsProblem:
        """Return the problem of log P_c(Y_i), (n_baskets, n_models), finite for at least one model."""
        largest = log_probabilities.max(axis=1)
        return cls(np.exp(log_probabilities - largest[:, None]), largest, weights / weights.sum())

    def log_likelihood(self, w: Floats) -> float:
        return float(self.shares @ (np.log(self.likelihoods @ w) + self.log_largest))

    def gradient(self, w: Floats) -> Floats:
        """Return ∂ℓ/∂w_c, which is 1 at the optimum where w_c > 0, and at most 1 elsewhere."""
        return np.asarray(self.likelihoods.T @ (self.shares / (self.likelihoods @ w)))

    def excess(self, w: Floats) -> float:
        """Return max_c ∂ℓ/∂w_c − 1: ℓ is concave, so no weights gain more than this, in nats per basket."""
        return max(float(self.gradient(w).max()) - 1, 0.0)

    def newton(self, w: Floats) -> Floats:
        """Return the maximum over w ≥ 0 of the quadratic model of ℓ(w) − Σ w, scaled to sum to 1.

        With r_i = Σ_c w'_c P_ic/P_i it is −½ Σ s_i (r_i − 2)² − Σ w' and a constant: nonnegative least squares.
        """
        from scipy.optimize import nnls

        ratio = self.likelihoods / (self.likelihoods @ w)[:, None]
        H = ratio.T @ (self.shares[:, None] * ratio)
        R = np.linalg.cholesky(H + RIDGE * H.diagonal().max() * np.eye(len(w))).T
        found, _ = nnls(R, np.linalg.solve(R.T, 2 * self.gradient(w) - 1))
        return np.asarray(found / found.sum()) if found.sum() > 0 else w


def weights_steps(w: Floats, given: GivenModels) -> Iterator[Step]:
    """Yield steps from weights w, each an EM step and a Newton step, until at most `tol` is to be gained."""
    problem = given.likelihoods
    value, step_size, evaluations = problem.log_likelihood(w), 0.0, 1.0
    while True:
        yield Step(partial(given.at, w), value, step_size, evaluations, parameters={"weights": w})
        if problem.excess(w) <= given.tol:
            return
        em = w * problem.gradient(w)
        w, step_size = _newton_step(problem, em / em.sum())
        value, evaluations = problem.log_likelihood(w), 2.0


def _newton_step(problem: WeightsProblem, w: Floats) -> tuple[Floats, float]:
    """Go along Newton's step as far as ℓ rises, or near the maximum, where rounding hides that, as the excess falls."""
    try:
        direction = problem.newton(w) - w
    except (RuntimeError, np.linalg.LinAlgError):
        return w, 0.0
    value, excess = problem.log_likelihood(w), problem.excess(w)
    rounding = 16 * EPSILON * max(1.0, abs(value))
    for halving in range(MAX_HALVINGS):
        there = np.maximum(w + 0.5**halving * direction, 0)
        with np.errstate(divide="ignore"):
            gain = problem.log_likelihood(there) - value
        if gain > rounding or (gain > -rounding and problem.excess(there) < excess):
            return there / there.sum(), 0.5**halving
    return w, 0.0
