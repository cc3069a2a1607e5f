"""fit_weights: the mixing weights of given models, a concave problem with one optimum. [KT11b]"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.components import softmax
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import IndependentItems, independent_log_likelihood
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.checkpoint import Callback, as_callbacks, notify, saved_on_exit
from dpplearn.learners.data import checked_baskets, resolve_nonempty, units_of
from dpplearn.learners.loop import Limits, Run, Step, Stop, never, run
from dpplearn.learners.result import FitProgress, FitResult, Restart, provenance
from dpplearn.learners.settings import Settings
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture, distribution_over
from dpplearn.models.model import SetModel
from dpplearn.models.training import Training
from dpplearn.tools.words import count

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
    began = time.perf_counter()
    settings = Settings(nonempty=nonempty, tol=tol, max_iter=max_iter, max_seconds=max_seconds, threads=threads)
    given = _over_models(baskets, models)
    problem = GivenModels.of(given, models, k, settings)
    training, callbacks = Training.of(units_of(given)), as_callbacks(callback)

    def model(now: Run, **more: Any) -> Mixture:
        known = {"nonempty": problem.nonempty, "size": problem.k}
        learned = provenance(now, "weights", "even", training, time.perf_counter() - began, **known, **more)
        record = replace(training, history=now.history)
        return Mixture(problem.at(now.step.parameters["weights"]), given.items, learned=learned, training=record)

    def observe(now: Run) -> bool:
        return notify(callbacks, FitProgress(0, now, partial(model, now)))

    limits = Limits(never, tol, max_iter, max_seconds)
    steps = weights_steps(problem.likelihoods, problem.at, tol)
    with saved_on_exit(callbacks):
        end = run(steps, limits, lambda: time.perf_counter() - began, observe, at_end=Stop.TOLERANCE)
    assert end.stop is not None
    found = model(
        end,
        restarts=1,
        stop=end.stop.name,
        shrinkage=0.0,
        to_gain=problem.likelihoods.excess(end.step.parameters["weights"]),
        log_likelihood=end.entry.log_likelihood,
        independent_log_likelihood=problem.independent_log_likelihood(),
        n_baskets=len(given),
        n_distinct=len(problem.baskets),
    )
    return FitResult(found, end.history, end.stop, (Restart.of(end, "even"),))


@dataclass(frozen=True, eq=False)
class GivenModels:
    """Baskets, the distributions they may come from, and the condition on every set: none, Y ≠ ∅, or |Y| = k."""

    baskets: Baskets  # distinct, over the items of the models
    distributions: tuple[SetDistribution, ...]
    nonempty: bool
    k: int | None
    threads: int | None

    @classmethod
    def of(cls, baskets: Baskets, models: Sequence[SetModel], k: int | None, settings: Settings) -> GivenModels:
        distinct = units_of(baskets).deduplicated()
        each = [distribution_over(model, baskets.catalogue) for model in models]
        if k is None:
            nonempty = resolve_nonempty(settings.nonempty, distinct)
            each = [one.with_p_empty(0.0) for one in each] if nonempty else each
            return cls(distinct, tuple(each), nonempty, None, settings.threads)
        k = whole_number("k", k, 1, baskets.n_items)
        others = int((distinct.sizes != k).sum())
        if others or settings.nonempty is False:
            reason = f"{others} of {count(len(distinct), 'distinct basket')} have not" if others else "nonempty=False"
            raise InputError(f"k={k} means that every basket has {count(k, 'item')}, but {reason}")
        return cls(distinct, tuple(_with_size(one, k, c) for c, one in enumerate(each)), False, k, settings.threads)

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

    def at(self, w: Floats) -> SetDistribution:
        """Return the mixture in which the models have these weights, given the condition."""
        with np.errstate(divide="ignore"):
            log_shares = np.log(w) - self.log_condition
        shares = np.exp(log_shares - log_shares.max())  # also for sizes that are very unlikely
        return SetDistribution.combined(self.distributions, shares / shares.sum())

    def independent_log_likelihood(self) -> float:
        """Return the mean log-likelihood of independent items with the frequencies of the baskets."""
        if self.k is None:
            return independent_log_likelihood(self.baskets, nonempty=self.nonempty)
        law = IndependentItems(self.baskets.frequencies())
        return float(law.mean_log_likelihood(self.baskets) - law.log_sizes()[self.k])


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
    if isinstance(components, SpectralDPP):
        components = components.with_mean_size(k)
    return SetDistribution.mixture(softmax(distribution.log_mass), components)


@dataclass(frozen=True, eq=False)
class WeightsProblem:
    """ℓ(w) = Σ_i s_i log Σ_c w_c P_c(Y_i), s_i the weight of basket i.

    Examples
    --------
    >>> problem = WeightsProblem.of(np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([3.0, 1.0]))
    >>> *_, last = weights_steps(problem, lambda w: w, tol=1e-10)
    >>> last.kernel.round(4).tolist()  # three of four baskets are 9 times as likely under the first
    [0.8125, 0.1875]
    """

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
        """Return ∂ℓ/∂w_c, which is 1 at the optimum where w_c > 0, and no more than 1 elsewhere."""
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


def weights_steps(
    problem: WeightsProblem, kernel_at: Callable[[Floats], SetDistribution], tol: float
) -> Iterator[Step]:
    """Yield steps from equal weights, each an EM step and a Newton step, until at most `tol` is to be gained."""
    n_models = problem.likelihoods.shape[1]
    w = np.full(n_models, 1 / n_models)
    value, step_size, evaluations = problem.log_likelihood(w), 0.0, 1.0
    while True:
        yield Step(partial(kernel_at, w), value, step_size, evaluations, parameters={"weights": w})
        if problem.excess(w) <= tol:
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
