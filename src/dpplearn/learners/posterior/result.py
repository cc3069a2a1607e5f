"""Posterior: weighted draws of the parameters of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np

from dpplearn.arrays import Floats, Seed
from dpplearn.data.catalogue import Catalogue
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.posterior.kernels import ParametricKernel
from dpplearn.models.dpp import DPP
from dpplearn.models.mixture import Mixture
from dpplearn.tools.tables import TextTable, as_plain_text
from dpplearn.tools.words import count, number

MAX_PARETO_K = 0.7  # shape of the tail of the weights up to which they are reliable


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
