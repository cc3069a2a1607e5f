"""Statistics of baskets in parts are the sums of the statistics of each part."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpplearn import Baskets
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import (
    mean_log_likelihood,
    statistics,
    sums_under_L,
)
from dpplearn.learners.kernels import distribution_of
from helpers.parts import in_parts
from helpers.problems import N_ITEMS, PROBLEMS, random_kernel, random_low_rank, random_mixture

KERNEL = random_kernel(np.random.default_rng(0))
CERTAIN = SpectralDPP(np.append(KERNEL.eigenvalues[:-1], 1.0), KERNEL.eigenvectors)  # with an eigenvalue at 1: bordered
MIXTURE, FACTORED = random_mixture(3), random_low_rank(3)


def answers(baskets: AnyBaskets) -> list[Any]:
    """Statistics and mean log-likelihoods under kernels of every kind."""
    stats, nonempty = statistics(CERTAIN, baskets), distribution_of(KERNEL, nonempty=True)
    distributions = (nonempty, *map(distribution_of, (MIXTURE, FACTORED)))
    means = [each.mean_log_likelihood(baskets) for each in distributions]
    return [*vars(stats).values(), mean_log_likelihood(CERTAIN, baskets), *means]


def test_the_sum_over_parts_is_that_of_the_whole() -> None:
    for problem in (baskets for baskets in PROBLEMS.values() if baskets.n_items == N_ITEMS):
        for found, expected in zip(answers(in_parts(problem)), answers(problem), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_basket_of_probability_zero_in_one_part_makes_the_sum_minus_infinity() -> None:
    rank_one = SpectralDPP.from_factor(np.ones((N_ITEMS, 1)))
    parts = in_parts(Baskets.from_lists([[0], [1], [2], [3], [0, 1]], n_items=N_ITEMS))
    found = statistics(rank_one, parts)
    assert (found.logdet, found.weight) == (-np.inf, 5.0)
    assert mean_log_likelihood(rank_one, parts) == sums_under_L(rank_one.L, parts)[0] == -np.inf
