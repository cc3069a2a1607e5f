"""Independent items have the distribution of a diagonal kernel, with probabilities of 0 and 1 too."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn.distributions.components import sets_of
from dpplearn.distributions.independent import IndependentItems
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.kernels import distribution_of
from helpers.oracle import subsets

ALL = sets_of(subsets(4), 4)


@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("p", [[0.2, 0.5, 0.9, 0.01], [0.0, 0.5, 1.0, 0.3], [1.0, 1.0, 0.0, 0.0]])
def test_they_are_those_of_a_diagonal_kernel(p: list[float], nonempty: bool) -> None:
    law = IndependentItems(np.array(p), nonempty)
    full = distribution_of(SpectralDPP(np.array(p), np.eye(4)), nonempty=nonempty)
    np.testing.assert_allclose(law.log_prob(ALL), full.log_prob(ALL), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(law.log_sizes(), full.log_sizes(), rtol=1e-12, atol=1e-14)
    assert np.exp(law.log_prob(ALL)).sum() == pytest.approx(1)
    some = ALL.weighted(np.where(np.isfinite(law.log_prob(ALL)), 2.0, 0.0))
    assert law.mean_log_likelihood(some) == pytest.approx(full.mean_log_likelihood(some))


def test_sizes_of_many_items_add_up_and_have_the_mean_and_variance_of_a_sum_of_coins() -> None:
    p = np.random.default_rng(0).random(3000) ** 2 * 0.1
    sizes = np.exp(IndependentItems(p).log_sizes())
    k = np.arange(3001)
    assert sizes.sum() == pytest.approx(1, abs=1e-12)
    assert sizes @ k == pytest.approx(p.sum(), rel=1e-12)
    assert sizes @ (k - p.sum()) ** 2 == pytest.approx((p * (1 - p)).sum(), rel=1e-10)
