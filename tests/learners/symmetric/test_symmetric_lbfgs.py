"""The default learner ends where EM would have got to, and in the better of two basins."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets
from dpplearn.learners.symmetric.factor import factor_likelihood
from dpplearn.learners.symmetric.problem import SymmetricProblem
from helpers.problems import random_kernel, sampled, shopping

fit_dpp = partial(dl.fit_dpp, shrinkage=0)


@pytest.mark.parametrize(("seed", "init"), [(0, "moments"), (6, "moments"), (6, "wishart")])
def test_it_ends_where_em_gets_to_and_finds_nothing_to_gain(seed: int, init: str) -> None:
    baskets = sampled(seed, n=400, n_items=5)
    em = fit_dpp(baskets, "em", init="wishart", rng=0, tol=1e-8, max_iter=5000).log_likelihood
    found = fit_dpp(baskets, init=init, rng=0, tol=1e-7, nonempty=False)
    assert em - 1e-4 <= found.log_likelihood <= em + 1e-3
    assert fit_dpp(baskets, "em", start=found, tol=0, max_iter=100).log_likelihood <= found.log_likelihood + 1e-6


@pytest.mark.parametrize("init", ["moments", "wishart"])
def test_the_basin_of_an_eigenvalue_at_one_is_avoided_where_another_is_better(init: str) -> None:
    result = fit_dpp(shopping(), init=init, rng=0, nonempty=False)
    assert result.log_likelihood > result.independent_log_likelihood + 0.02
    assert result.model.kernel.eigenvalues.max() < 0.99


@pytest.mark.parametrize("n_zeros", [0, 4])
def test_a_basket_above_the_rank_is_impossible(n_zeros: int) -> None:
    B = np.hstack([random_kernel(np.random.default_rng(0)).L[:, :2], np.zeros((6, n_zeros))])
    problem = SymmetricProblem(Baskets.from_lists([[0, 1, 2], [1]], n_items=6), 1)
    assert factor_likelihood(problem, B)[0] == -np.inf
