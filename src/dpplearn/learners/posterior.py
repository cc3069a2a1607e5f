"""posterior: Bayesian inference of the parameters of a kernel from baskets and item features. [AFAT14]"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Seed, central_differences
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.features import Features, as_features
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import sums_under_L
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.data import checked_baskets, resolve_nonempty, units_of
from dpplearn.learners.quality.distribution import QualityDistribution
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.utils.text import Part, Result, TextTable, count, number
from dpplearn.utils.threads import suitable_blas

KernelFunction = Callable[[Floats, Floats], Floats]  # from parameters and features to L

NUGGET = 0.01  # of an RBF kernel: dissimilarity of items with equal features
L_DIFFERENCE = 1e-5  # of parameters for the derivative of L, in standard deviations of the prior
CONSTANT_PRIOR, FEATURE_PRIOR, SHAPE_PRIOR = (-2.0, 2.0), (0.0, 1.0), (0.0, 1.0)  # mean and standard deviation
ASYMMETRY = 1e-8  # of L − Lᵀ relative to L, that rounding may leave

MIN_DRAWS = 100
MAX_PARETO_K = 0.7  # shape of the tail of the weights up to which they are reliable [VSGYG24]
FREEDOM = 7  # degrees of the Student distribution: its tails are heavier than those of a posterior
DIFFERENCE = 1e-3  # of parameters for the curvature, in standard deviations of the prior
MAX_STEPS = 500
MAX_SD = 1.0  # standard deviation of any direction, in those of the prior
WARM_UP = 100  # sweeps that are discarded
# Of the interval that is shrunk, in standard deviations. For normal posteriors a narrow one that steps out takes 10 %
# fewer evaluations; for the wide ones, for which slices are used, it takes many times as many.
WIDTH = 80.0


def posterior(
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    features: Any,
    kernel: str | KernelFunction = "rbf",
    prior: tuple[Sequence[float], Sequence[float]] | None = None,
    draws: int = 2000,
    nonempty: bool | str = "auto",
    rng: Seed = None,
    threads: int | None = None,
) -> Posterior:
    """Sample the posterior of the parameters of a kernel that is a function of item features. [AFAT14]

    Draws from a Student distribution at the mode get importance weights. Where a few of them would have most of the
    weight (`pareto_k` above 0.7), slice sampling is used instead, which needs many more evaluations. Needs the extra
    `bayes`.

    Parameters
    ----------
    baskets : Baskets or list of lists
        Observed sets.
    features : table
        One row per item, as `read_features` takes it.
    kernel : {"rbf", "linear"} or callable, default "rbf"
        "rbf": q_i q_j exp(−|x_i − x_j|²/(2 ℓ²)); "linear": q_i q_j ((1 − w) I + w cos(x_i, x_j)); in both, log q² is
        linear in the features. Or a function from parameters and feature matrix to L.
    prior : pair of lists, optional
        Means and standard deviations of the normal priors. Default for named kernels: −2 and 2 for (all items), 0 and 1
        for the others. Required for a function.
    draws : int, default 2000
        Number of draws, at least 100.
    nonempty : bool or "auto", default "auto"
        Whether the distribution is conditioned on nonempty sets. By default it is if no basket is empty.
    rng : int or numpy.random.Generator, optional
        Seed of the draws.
    threads : int, optional
        Number of threads. By default all cores.

    Returns
    -------
    Posterior
        Weighted draws, intervals and the predictive distribution.

    Raises
    ------
    InputError
        If a basket is impossible at the prior mean, or an argument is invalid.

    Examples
    --------
    >>> baskets = Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
    >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
    >>> found = posterior(baskets, features=table, kernel="linear", draws=100, rng=0)
    >>> found.names
    ('(all items)', 'price', 'logit strength')
    """
    given = as_baskets(baskets)
    checked_baskets(given)
    n = whole_number("draws", draws, MIN_DRAWS)
    parameters = parametric(kernel, as_features(features, given.catalogue), prior)
    data = units_of(given).deduplicated()
    density = Density(parameters, data, resolve_nonempty(nonempty, data), threads)
    rng = np.random.default_rng(rng)
    with suitable_blas(given.n_items, threads):
        mode, A = mode_of(density)

        def standardised(z: Floats) -> float:
            return density(mode + A @ z)

        z, weights, pareto_k = importance_draws(standardised, len(mode), n, rng)
        sampler = "importance"
        if not pareto_k <= MAX_PARETO_K:
            sampler, z, weights = "slice", slice_draws(standardised, len(mode), n, rng), np.full(n, 1 / n)
    found = (mode + z @ A.T, weights, pareto_k, sampler, density.nonempty, given.catalogue, parameters)
    return Posterior(parameters.names, mode, *found)


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """Weighted draws of the parameters of a kernel, given baskets. Printed, it is a table of intervals.

    Examples
    --------
    >>> import dpplearn as dl
    >>> baskets = dl.Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
    >>> found = dl.posterior(baskets, features={"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}, draws=100, rng=0)
    >>> found.names
    ('(all items)', 'price', 'log length')
    >>> found.draws.shape
    (100, 3)
    """

    names: tuple[str, ...]
    mode: Floats  # (n_parameters,)
    draws: Floats  # (n_draws, n_parameters)
    weights: Floats  # (n_draws,) which sum to 1
    pareto_k: float  # of the importance weights, for both samplers
    sampler: str  # "importance" or "slice"
    nonempty: bool
    catalogue: Catalogue
    kernel: ParametricKernel

    @property
    def mean(self) -> Floats:
        """Posterior means."""
        return np.asarray(self.weights @ self.draws)

    @property
    def standard_deviation(self) -> Floats:
        """Posterior standard deviations."""
        return np.sqrt(self.weights @ (self.draws - self.mean) ** 2)

    def quantiles(self, probabilities: Floats | list[float]) -> Floats:
        """Return quantiles of every parameter, one row per probability, (n_probabilities, n_parameters).

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = dl.Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
        >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
        >>> dl.posterior(baskets, features=table, draws=100, rng=0).quantiles([0.25, 0.75]).shape
        (2, 3)
        """
        probabilities = np.asarray(probabilities, dtype=float)
        if probabilities.ndim != 1 or not ((probabilities >= 0) & (probabilities <= 1)).all():
            raise InputError(f"probabilities are {probabilities.tolist()}; expected a list of numbers from 0 to 1")
        return np.quantile(self.draws, probabilities, axis=0, weights=self.weights, method="inverted_cdf")

    def predictive(self, components: int = 50, rng: Seed = None) -> Mixture:
        """Return the posterior predictive distribution: the mean of the distributions of draws.

        Parameters
        ----------
        components
            Number of draws, chosen by their weights.
        rng
            Seed or generator.

        Returns
        -------
        Mixture
            Its segments are draws of the parameters, not customer segments.

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = dl.Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
        >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
        >>> dl.posterior(baskets, features=table, draws=100, rng=0).predictive(20, rng=0).n_segments <= 20
        True
        """
        n = whole_number("components", components, 1)
        rng = np.random.default_rng(rng)
        points = (np.arange(n) + rng.random()) / n  # systematic resampling, so that few draws suffice
        taken = np.minimum(np.searchsorted(np.cumsum(self.weights), points), len(self.weights) - 1)
        distinct, counts = np.unique(taken, return_counts=True)
        kernels = [SpectralDPP.from_L(self.kernel.L(self.draws[row])) for row in distinct]
        return Mixture.of([DPP(each, self.catalogue.labels, nonempty=self.nonempty) for each in kernels], counts)

    @property
    def _rows(self) -> list[tuple[Any, ...]]:
        """Name, mean, 5 % quantile, median and 95 % quantile of each parameter."""
        return list(zip(self.names, self.mean.tolist(), *self.quantiles([0.05, 0.5, 0.95]).tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Return mean, median and 90 % credible interval of each parameter as plain values."""
        rows = [dict(zip(("name", "mean", "low", "median", "high"), row, strict=True)) for row in self._rows]
        return {"parameters": rows, "sampler": self.sampler, "n_draws": len(self.draws), "pareto_k": self.pareto_k}

    def tables(self) -> Iterator[Part]:
        """Yield a table of the parameters, and how far the draws can be trusted."""
        cells = [(name, *(number(value, 3) for value in values)) for name, *values in self._rows]
        meaning = "Posterior of each parameter, with a 90 % credible interval."
        yield TextTable("Posterior", meaning, ["parameter", "mean>", "5%>", "median>", "95%>"], cells)
        trust = "the weights are reliable" if self.pareto_k <= MAX_PARETO_K else "too large for importance weights"
        yield f"{count(len(self.draws), 'draw')} by {self.sampler}; Pareto k {self.pareto_k:.2f}: {trust}."

    def __repr__(self) -> str:
        parameters, draws = count(len(self.names), "parameter"), count(len(self.draws), "draw")
        return f"Posterior({parameters}, {draws} by {self.sampler}, Pareto k {self.pareto_k:.2f})"


class ParametricKernel(NamedTuple):
    """L as a function of parameters with independent normal priors."""

    L: Callable[[Floats], Floats]
    names: tuple[str, ...]
    mean: Floats  # (n_parameters,)
    sd: Floats  # (n_parameters,)


def with_quality(S: Floats, theta: Floats, X: Floats) -> Floats:
    """Return L = D S D with D² = diag(exp(θ_0 + X θ_1..p)), for p features. Further parameters are those of S."""
    d = np.exp(np.clip(theta[0] + X @ theta[1 : 1 + X.shape[1]], -60, 60) / 2)
    return np.asarray(d[:, None] * S * d)


def rbf(theta: Floats, X: Floats) -> Floats:
    """Return L with S_ij = 0.99 exp(−|x_i − x_j|²/(2 ℓ²)) and S_ii = 1. The last parameter is log ℓ. [AFAT14]"""
    squares = (X**2).sum(axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)
    S = (1 - NUGGET) * np.exp(-apart / 2 * np.exp(-2 * np.clip(theta[-1], -20, 20)))
    np.fill_diagonal(S, 1)
    return with_quality(S, theta, X)


def linear(theta: Floats, X: Floats) -> Floats:
    """S = (1 − w) I + w cos(x_i, x_j); the last parameter is logit(w)."""
    unit = X / np.maximum(np.linalg.norm(X, axis=1), 1e-12)[:, None]
    w = 1 / (1 + np.exp(-np.clip(theta[-1], -40, 40)))
    S = w * (unit @ unit.T)
    np.fill_diagonal(S, 1)
    return with_quality(S, theta, X)


NAMED: dict[str, tuple[KernelFunction, str]] = {"rbf": (rbf, "log length"), "linear": (linear, "logit strength")}


def parametric(kernel: str | KernelFunction, features: Features, prior: Any) -> ParametricKernel:
    """Return one of the named kernels, or a function of parameters and features."""
    X = np.asarray(features.matrix)
    names: tuple[str, ...] = ()
    if isinstance(kernel, str) and kernel in NAMED:
        function, shape = NAMED[kernel]
        names = ("(all items)", *features.names, shape)
        default = np.array([CONSTANT_PRIOR, *[FEATURE_PRIOR] * X.shape[1], SHAPE_PRIOR]).T
        prior = default if prior is None else prior
    elif callable(kernel):
        function = kernel
    else:
        raise InputError(f"kernel must be {', '.join(NAMED)} or a function of parameters and features, got {kernel!r}")
    try:
        mean, sd = (np.asarray_chkfinite(each, dtype=float) for each in prior)
        names = names or tuple(f"parameter {row}" for row in range(len(mean)))
        valid = mean.shape == sd.shape == (len(names),) and (sd > 0).all() and len(names) > 0
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise InputError(f"prior must be (means, positive standard deviations), one per parameter, got {prior!r}")
    L = np.asarray(function(mean, X))
    if L.shape != (len(X), len(X)) or np.abs(L - L.T).max() > ASYMMETRY * np.abs(L).max():
        raise InputError(f"kernel must return a symmetric ({len(X)}, {len(X)}) array, got shape {L.shape}")
    return ParametricKernel(lambda theta: function(theta, X), names, mean, sd)


@dataclass(frozen=True, eq=False)
class Density:
    """log p(θ given baskets) = Σ w log det L_Y − n log Z + log p(θ), up to a constant."""

    kernel: ParametricKernel
    baskets: Baskets
    nonempty: bool
    threads: int | None = None

    def __call__(self, theta: Floats) -> float:
        """Return the log-density; −inf where a basket is impossible, or L is not a kernel."""
        return self.with_gradient(theta, value_only=True)[0]

    def with_gradient(self, theta: Floats, *, value_only: bool = False) -> tuple[float, Floats]:
        """Return the log-density and its gradient, from ∂/∂L = Δ − n (L + I)⁻¹/c."""
        kernel, n, gradient = self.kernel, self.baskets.total_weight, np.zeros(len(theta))
        try:
            L = np.asarray_chkfinite(kernel.L(theta), dtype=float, order="C")
            distribution = QualityDistribution.of(L, np.zeros(len(L)), nonempty=self.nonempty)
        except ValueError:  # not finite, or not positive semidefinite
            return -math.inf, gradient
        logdet, delta = sums_under_L(L, self.baskets, self.threads, want_delta=not value_only)
        if not value_only:
            by_L = delta - n * distribution.by_similarity
            by_theta = central_differences(kernel.L, theta, L_DIFFERENCE * kernel.sd)  # without passes over the baskets
            gradient = np.einsum("jik,ik->j", by_theta, by_L) + (kernel.mean - theta) / kernel.sd**2
        log_prior = -float((((theta - kernel.mean) / kernel.sd) ** 2).sum()) / 2
        return logdet - n * distribution.log_normaliser + log_prior, gradient


def mode_of(density: Density) -> tuple[Floats, Floats]:
    """Find the mode by L-BFGS from the prior mean, and A with A Aᵀ = (−H)⁻¹ from the curvature H there.

    In z with θ = mode + A z, the posterior is about standard normal. No direction is wider than the prior.
    """
    from scipy.optimize import minimize

    mean, sd = density.kernel.mean, density.kernel.sd
    if not np.isfinite(density(mean)):
        raise InputError(
            f"the kernel makes some basket impossible at the prior mean {mean.tolist()}; pass another prior"
        )

    def negative(y: Floats) -> tuple[float, Floats]:
        value, gradient = density.with_gradient(mean + sd * y)
        return (-value, -gradient * sd) if np.isfinite(value) else (1e300, np.zeros(len(y)))

    found = minimize(negative, np.zeros(len(mean)), jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    H = central_differences(lambda y: -negative(y)[1], found.x, np.full(len(mean), DIFFERENCE))  # in units of the prior
    values, vectors = np.linalg.eigh(-(H + H.T) / 2)
    return mean + sd * found.x, sd[:, None] * vectors / np.sqrt(np.maximum(values, 1 / MAX_SD**2))


def importance_draws(
    density: Callable[[Floats], float], p: int, n: int, rng: np.random.Generator
) -> tuple[Floats, Floats, float]:
    """Return draws from a Student distribution, (n, p), Pareto-smoothed importance weights, and their shape k.

    The weights sum to 1 and are reliable for k up to 0.7. [VSGYG24]
    """
    try:
        from arviz_stats.base.array import array_stats
    except ImportError as error:
        raise InputError(f'a posterior needs {error.name}: pip install "dpplearn[bayes]"') from None
    normal, chi = rng.standard_normal((n, p)), rng.chisquare(FREEDOM, n)
    z = normal * np.sqrt(FREEDOM / chi)[:, None]
    log_q = -(FREEDOM + p) / 2 * np.log1p((z**2).sum(axis=1) / FREEDOM)
    ratios = np.array([density(each) for each in z]) - log_q
    possible, weights = np.isfinite(ratios), np.zeros(n)
    # The largest weights are replaced by quantiles of a Pareto distribution. `psislw` takes negative log-ratios.
    log_weights, pareto_k = array_stats.psislw(ratios.max() - ratios[possible])
    weights[possible] = np.exp(log_weights - log_weights.max())
    return z, weights / weights.sum(), float(pareto_k)


def slice_draws(density: Callable[[Floats], float], p: int, n: int, rng: np.random.Generator) -> Floats:
    """Return the states after n sweeps over all coordinates, after a warm-up, (n, p). [Neal03]"""
    z, kept = np.zeros(p), np.empty((n, p))
    height = density(z)
    for sweep in range(-WARM_UP, n):
        directions, _ = np.linalg.qr(rng.standard_normal((p, p)))  # random orthogonal
        for direction in directions.T:
            z, height = slice_move(density, z, height, direction, rng)
        if sweep >= 0:
            kept[sweep] = z
    return kept


def slice_move(
    density: Callable[[Floats], float], z: Floats, height: float, direction: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return a point of the slice {density > level} along a line: shrink an interval to rejected points."""
    level = height - rng.exponential()
    # Placed at random, so that it is as likely from any other point of it, which detailed balance needs. [Neal03]
    low = -WIDTH * rng.random()
    high = low + WIDTH
    while True:
        t = rng.uniform(low, high)
        there = z + t * direction
        value = density(there)
        if value > level:
            return there, value
        low, high = (t, high) if t < 0 else (low, t)
