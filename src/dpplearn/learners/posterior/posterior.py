"""posterior: Bayesian inference of the parameters of a kernel from baskets and item features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.features import as_features
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.data import resolve_nonempty, units_of
from dpplearn.learners.posterior.density import Density, KernelFunction, ParametricKernel, parametric
from dpplearn.learners.posterior.sampling import importance_draws, mode_of, slice_draws
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.utils.text import TextTable, as_plain_text, count, number
from dpplearn.utils.threads import suitable_blas

MAX_PARETO_K = 0.7  # shape of the tail of the weights up to which they are reliable

MIN_DRAWS = 100  # draws


class Interval(NamedTuple):
    """Credible interval of a parameter, and its median."""

    name: str
    low: float
    median: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
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
    pareto_k: float  # of the importance weights, whichever sampler was used
    sampler: str  # "importance" or "slice"
    nonempty: bool
    catalogue: Catalogue
    kernel: ParametricKernel = field(repr=False)

    @property
    def mean(self) -> Floats:
        """Posterior means."""
        return np.asarray(self.weights @ self.draws)

    @property
    def standard_deviation(self) -> Floats:
        """Posterior standard deviations."""
        return np.sqrt(self.weights @ (self.draws - self.mean) ** 2)

    @property
    def effective_draws(self) -> float:
        """Effective number of independent draws; for slice sampling, whose draws are dependent, an upper bound."""
        return float(1 / (self.weights**2).sum())

    def quantiles(self, probabilities: Floats | list[float]) -> Floats:
        """Return quantiles of every parameter, one row per probability.

        Parameters
        ----------
        probabilities
            From 0 to 1.

        Returns
        -------
        array of float

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
        found = np.empty((len(probabilities), len(self.names)))
        for row, column in enumerate(self.draws.T):
            order = np.argsort(column, kind="stable")
            below = np.cumsum(self.weights[order]) - self.weights[order] / 2
            found[:, row] = np.interp(probabilities, below, column[order])
        return found

    def interval(self, probability: float = 0.9) -> list[Interval]:
        """Return the central credible interval of every parameter.

        Parameters
        ----------
        probability
            Between 0 and 1.

        Returns
        -------
        list of Interval

        Examples
        --------
        >>> import dpplearn as dl
        >>> baskets = dl.Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
        >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
        >>> every = dl.posterior(baskets, features=table, draws=100, rng=0).interval()
        >>> all(each.low < each.median < each.high for each in every)
        True
        """
        if not isinstance(probability, Real) or not 0 < probability < 1:
            raise InputError(f"probability is {probability!r}; expected a number between 0 and 1")
        rows = self.quantiles([(1 - probability) / 2, 0.5, (1 + probability) / 2]).T.tolist()
        return [Interval(name, *row) for name, row in zip(self.names, rows, strict=True)]

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

    def __repr__(self) -> str:
        return (
            f"Posterior({count(len(self.names), 'parameter')}, {count(len(self.draws), 'draw')} by {self.sampler}, "
            f"Pareto k {self.pareto_k:.2f})"
        )

    def __str__(self) -> str:
        cells = [
            (each.name, number(mean, 3), *(number(value, 3) for value in each[1:]))
            for each, mean in zip(self.interval(), self.mean.tolist(), strict=True)
        ]
        meaning = "Posterior of each parameter, with a 90 % credible interval."
        table = TextTable("Posterior", meaning, ["parameter", "mean>", "5%>", "median>", "95%>"], cells)
        trust = "the weights are reliable" if self.pareto_k <= MAX_PARETO_K else "too large for weights"
        how = f"{count(len(self.draws), 'draw')} by {self.sampler}; Pareto k {self.pareto_k:.2f}: {trust}"
        return "\n".join([*as_plain_text(table), how])


def posterior(
    baskets: Baskets | Iterable[Iterable[Any]],
    *,
    features: Any,
    kernel: str | KernelFunction = "rbf",
    prior: tuple[Sequence[float], Sequence[float]] | None = None,
    names: Sequence[str] | None = None,
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
    names : list of str, optional
        Names of the parameters of a function.
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
    n = whole_number("draws", draws, MIN_DRAWS)
    if not given.total_weight > 0:
        raise InputError("there is nothing to learn from: the baskets have no weight")
    parameters = parametric(kernel, as_features(features, given.catalogue), names, prior)
    data = units_of(given).deduplicated()
    density = Density(parameters, data, resolve_nonempty(nonempty, data), threads)
    rng = np.random.default_rng(rng)
    with suitable_blas(given.n_items, threads):
        around = mode_of(density)
        found = importance_draws(density, around, n, rng)
        sampler, every, weights = "importance", found.draws, found.weights
        if not found.pareto_k <= MAX_PARETO_K:
            sampler, every, weights = "slice", slice_draws(density, around, n, rng), np.full(n, 1 / n)
    return Posterior(
        parameters.names,
        around.mode,
        every,
        weights,
        found.pareto_k,
        sampler,
        density.nonempty,
        given.catalogue,
        parameters,
    )
