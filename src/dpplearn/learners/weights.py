"""fit_weights: the mixing weights of given models, a concave problem with one optimum. [KT11b]"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.distributions.components import relative, softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import IndependentItems
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.checkpoint import Callbacks
from dpplearn.learners.data import checked_baskets, resolve_nonempty
from dpplearn.learners.fit import fit_task
from dpplearn.learners.loop import Step, Stop, never
from dpplearn.learners.problem import Learner, Problem
from dpplearn.learners.result import FitResult
from dpplearn.learners.settings import Settings
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture, distribution_over
from dpplearn.models.model import SetModel
from dpplearn.utils.text import count

RIDGE = 1e-12  # on second derivatives, relative to the largest: models may be alike


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
    callback: Callbacks = None,
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
    if not isinstance(models, Sequence) or not models or not all(isinstance(each, SetModel) for each in models):
        raise InputError("models must be a list of one or more DPPs and Mixtures")
    given = as_baskets(baskets).over(models[0].catalogue)
    checked_baskets(given)
    distributions = [distribution_over(model, given.catalogue) for model in models]
    if k is None:
        of_nonempty = resolve_nonempty(nonempty, given)
        distributions = [each.with_p_empty(0.0) if of_nonempty else each for each in distributions]
    else:
        k, of_nonempty = whole_number("k", k, 1, given.n_items), False
        others = int((given.sizes[given.weights > 0] != k).sum())
        if others:
            raise InputError(f"k={k}, but {others} of {count(len(given), 'basket')} have not {count(k, 'item')}")
        distributions = [_with_size(each, k, number) for number, each in enumerate(distributions)]
    problem = GivenModels(given, threads, of_nonempty, tuple(distributions), k, tol)
    learner = Learner("weights", weights_steps, never, at_end=Stop.TOLERANCE)
    return fit_task(settings.task_of(learner, problem, "even"), callback=callback)


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
class GivenModels(Problem):
    """Baskets, the distributions they may come from, and the size k of every set, if that is given.

    A learner starts from weights, and a kernel is the `SetDistribution` of a mixture.
    """

    baskets: Baskets  # over the items of the models
    distributions: tuple[SetDistribution, ...] = ()
    k: int | None = None
    tol: float = 1e-8

    model_type: ClassVar[Any] = Mixture

    @cached_property
    def log_condition(self) -> Floats:
        """log P_c of the condition on the size, (n_models,)."""
        return np.array([0.0 if self.k is None else each.log_sizes()[self.k] for each in self.distributions])

    @cached_property
    def likelihoods(self) -> WeightsProblem:
        columns = [each.log_prob(self.baskets, self.threads) for each in self.distributions]
        found = np.column_stack(columns) - self.log_condition
        impossible = np.flatnonzero(np.isneginf(found).all(axis=1))
        if len(impossible):
            items = self.baskets.catalogue.select(self.baskets.positions(impossible[0]))
            raise InputError(
                f"{count(len(impossible), 'basket')} impossible under all models, such as {list(items)}; leave them "
                "out, or add a model under which every set is possible, such as one of independent items"
            )
        largest, likelihoods = relative(found)
        return WeightsProblem(likelihoods, largest, self.baskets.weights / self.baskets.total_weight)

    def initial(self, name: str, rng: np.random.Generator) -> Floats:
        """Return equal weights."""
        return np.full(len(self.distributions), 1 / len(self.distributions))

    def distribution(self, kernel: SetDistribution) -> SetDistribution:
        return kernel

    def at(self, w: Floats) -> SetDistribution:
        """Return the mixture in which the models have these weights, given the condition."""
        with np.errstate(divide="ignore"):
            return SetDistribution.combined(self.distributions, softmax(np.log(w) - self.log_condition))

    def log_likelihood(self, kernel: SetDistribution) -> float:
        found = super().log_likelihood(kernel)
        return found if self.k is None else found - float(kernel.log_sizes()[self.k])

    def independent_log_likelihood(self) -> float:
        if self.k is None:
            return super().independent_log_likelihood()
        items = IndependentItems(self.baskets.frequencies())
        return float(items.mean_log_likelihood(self.baskets) - items.log_sizes()[self.k])

    def facts(self, step: Step) -> dict[str, Any]:
        return {"size": self.k, "to_gain": self.likelihoods.excess(step.parameters["weights"])}

    def memory(self) -> float:
        """Return the bytes of the likelihoods and of what a step derives from them."""
        return 8.0 * len(self.baskets) * len(self.distributions) * 4


@dataclass(frozen=True, eq=False)
class WeightsProblem:
    """ℓ(w) = Σ_i s_i log Σ_c w_c P_c(Y_i), s_i the weight of basket i."""

    likelihoods: Floats  # (n_baskets, n_models), over the largest of each row
    log_largest: Floats  # (n_baskets,)
    shares: Floats  # (n_baskets,)

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
        try:
            found, _ = nnls(R, np.linalg.solve(R.T, 2 * self.gradient(w) - 1))
        except RuntimeError:  # too many iterations
            return w
        return np.asarray(found / found.sum()) if found.sum() > 0 else w


def weights_steps(w: Floats, given: GivenModels) -> Iterator[Step]:
    """Yield steps from weights w, until at most `tol` is to be gained.

    Each is an EM step, which cannot fall, and Newton's step from there, unless that falls by more than rounding.
    """
    problem = given.likelihoods
    value, step_size, evaluations = problem.log_likelihood(w), 0.0, 1.0
    while True:
        yield Step(partial(given.at, w), value, step_size, evaluations, parameters={"weights": w})
        if problem.excess(w) <= given.tol:
            return
        em = w * problem.gradient(w)
        w, step_size, evaluations = em / em.sum(), 0.0, 2.0
        value = problem.log_likelihood(w)
        newton = problem.newton(w)
        with np.errstate(divide="ignore"):
            there = problem.log_likelihood(newton)
        if there >= value - 16 * EPSILON * max(1.0, abs(value)):
            w, value, step_size = newton, there, 1.0
