"""posterior: from baskets and features of items to what is likely of the parameters of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpplearn.arrays import Seed
from dpplearn.data.baskets import Baskets, as_baskets
from dpplearn.data.features import as_features
from dpplearn.errors import InputError, whole_number
from dpplearn.fitting.data import units_of
from dpplearn.tools.progress import shown_progress
from dpplearn.tools.threads import suitable_blas
from dpplearn.learners.posterior.density import Density
from dpplearn.learners.posterior.laplace import importance_draws, mode_of
from dpplearn.learners.posterior.kernels import KernelFunction, parametric
from dpplearn.learners.posterior.result import TRUSTED, Posterior
from dpplearn.learners.posterior.slices import slice_draws

FEWEST = 100  # draws


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
    progress: bool = False,
) -> Posterior:
    """What baskets say of the parameters of a kernel that is a function of features. [AFAT14]

    Draws of a Student law at the mode are given the weights that make them draws of the posterior. Where a few of them
    would have most of the weight (`pareto_k` above 0.7), slice sampling takes over, which needs many more evaluations.
    Needs the extra `bayes`.

    Parameters
    ----------
    baskets
        `Baskets`, or a list of lists as `Baskets.from_lists` takes it.
    features
        A table with one row per item, or what `read_features` made of it.
    kernel
        "rbf", q_i q_j exp(−|x_i − x_j|²/(2 ℓ²)), or "linear", q_i q_j ((1 − w) I + w cos(x_i, x_j)); in both, log q²
        is linear in the features. Or a function that takes the parameters and the matrix of features and returns L.
    prior
        The means and the standard deviations of the parameters beforehand, which are normal. By default those of the
        kernels with names: −2 and 2 of (all items), 0 and 1 of the others.
    names
        Of the parameters of a function.
    draws
        How many.
    nonempty
        Whether baskets cannot be empty; by default, where none is.
    rng
        Seed or generator.
    threads
        How many threads (default: all cores).
    progress
        Show a progress bar on standard error.

    Returns
    -------
    Posterior
        With `draws`, `interval()`, `pareto_k` and `predictive()`.

    Examples
    --------
    >>> baskets = Baskets.from_lists([["cot"], ["bib"], ["bib", "mug"], []] * 20)
    >>> table = {"item": ["bib", "cot", "mug"], "price": [3, 90, 9]}
    >>> found = posterior(baskets, features=table, kernel="linear", draws=100, rng=0)
    >>> found.names
    ('(all items)', 'price', 'logit strength')
    """
    baskets = as_baskets(baskets)
    n = whole_number("draws", draws, FEWEST)
    encoded = as_features(features, baskets.catalogue)
    asked = parametric(kernel, encoded, names, prior)
    data = units_of(baskets).deduplicated()
    density = Density(asked, data, _law(data, nonempty), threads)
    rng = np.random.default_rng(rng)
    with suitable_blas(baskets.n_items, threads), shown_progress(progress) as shown:
        around = mode_of(density)
        found = importance_draws(density, around, n, rng, shown)
        sampler, every, weights = "importance", found.draws, found.weights
        if not found.pareto_k <= TRUSTED:
            every = slice_draws(density, around, n, rng, shown)
            sampler, weights = "slice", np.full(n, 1 / n)
    law = density.nonempty
    return Posterior(asked.names, around.mode, every, weights, found.pareto_k, sampler, law, baskets.catalogue, asked)


def _law(baskets: Baskets, nonempty: bool | str) -> bool:
    if not baskets.total_weight > 0:
        raise InputError("there is nothing to learn from: the baskets have no weight")
    if not isinstance(nonempty, bool | np.bool_) and nonempty != "auto":
        raise InputError(f"nonempty is {nonempty!r}; expected True, False or 'auto'")
    empty = baskets.totals.n_empty
    if nonempty is True and empty:
        raise InputError(
            f"{empty} baskets are empty, which given that baskets are not is impossible; leave nonempty out"
        )
    return not empty if nonempty == "auto" else bool(nonempty)
