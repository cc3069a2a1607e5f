"""posterior: Bayesian inference of the parameters of a kernel from baskets and item features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.features import as_features
from dpplearn.errors import InputError, whole_number
from dpplearn.learners.data import resolve_nonempty, units_of
from dpplearn.learners.posterior.density import Density
from dpplearn.learners.posterior.kernels import KernelFunction, parametric
from dpplearn.learners.posterior.result import MAX_PARETO_K, Posterior
from dpplearn.learners.posterior.sampling import importance_draws, mode_of, slice_draws
from dpplearn.tools.threads import suitable_blas

MIN_DRAWS = 100  # draws


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
