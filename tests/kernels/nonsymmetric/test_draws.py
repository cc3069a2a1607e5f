"""Draws from a mixture by counts, with a sampler that forgets the skew part as the control; and its special cases."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.law import MixtureLaw
from dpplearn.kernels.symmetric.law import SymmetricLaw
from scipy.stats import chi2

from dpplearn import Baskets
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP

N, DRAWS = 4, 20_000
SUBSETS = list(chain.from_iterable(combinations(range(N), size) for size in range(N + 1)))
ALL = Baskets.from_lists(SUBSETS, n_items=N)
RNG = np.random.default_rng(0)
U, A = RNG.standard_normal((N, 1)) / 2, RNG.standard_normal((N, N))
SYMMETRIC_PART = np.eye(N) + U @ U.T
C = SYMMETRIC_PART + A - A.T
LOG_ODDS = RNG.standard_normal((2, N)) - 1


def law(interaction: Floats) -> MixtureLaw:
    return MixtureLaw(MixtureKernel(np.array([0.3, 0.7]), LOG_ODDS, interaction[None]))


def distance(drawn: MixtureLaw, expected: MixtureLaw, k: int | None) -> float:
    """χ² of the counts of sets drawn from one law against another."""
    P = np.exp(expected.log_prob(ALL))
    if k is not None:
        P = np.where(ALL.sizes == k, P, 0) / P[ALL.sizes == k].sum()
    counts = np.zeros(len(SUBSETS))
    for each in drawn.sample(DRAWS, k, 1):
        counts[SUBSETS.index(tuple(each.tolist()))] += 1
    possible = P > 0
    return float(((counts - DRAWS * P)[possible] ** 2 / (DRAWS * P[possible])).sum())


@pytest.mark.parametrize("k", [None, 1, 2, 3])
def test_draws_are_as_frequent_as_they_are_likely_and_a_law_without_its_skew_part_is_told(k: int | None) -> None:
    bound = chi2.isf(1e-6, len(SUBSETS))
    assert distance(law(C), law(C), k) < bound
    if k != 1:  # the skew part has no say in single items
        assert distance(law(SYMMETRIC_PART), law(C), k) > 2 * bound


@pytest.mark.parametrize("k", [0, N])
def test_all_items_and_none_are_drawn_where_asked_for(k: int) -> None:
    assert [each.tolist() for each in law(C).sample(3, k, 0)] == [list(range(k))] * 3


def test_one_segment_without_attraction_answers_as_the_symmetric_dpp_does() -> None:
    d = np.exp(LOG_ODDS[0] / 2)
    one = MixtureLaw(MixtureKernel(np.ones(1), LOG_ODDS[:1], SYMMETRIC_PART[None]))
    same = SymmetricLaw(SpectralDPP.from_L(d[:, None] * SYMMETRIC_PART * d))
    np.testing.assert_allclose(one.marginals(), same.marginals(), rtol=1e-12)
    off_diagonal = ~np.eye(N, dtype=bool)
    np.testing.assert_allclose(one.pairs()[off_diagonal], same.pairs()[off_diagonal], rtol=1e-11)
    np.testing.assert_allclose(one.log_sizes(), same.log_sizes(), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(one.next_item(np.array([1])), same.next_item(np.array([1])), rtol=1e-11)


def test_without_interaction_items_are_independent() -> None:
    items = MixtureLaw(MixtureKernel.of_items(LOG_ODDS[0]))
    p = 1 / (1 + np.exp(-LOG_ODDS[0]))
    np.testing.assert_allclose(items.marginals(), p, rtol=1e-13)
    np.testing.assert_allclose(items.next_item(np.array([0]))[1][1:], p[1:], rtol=1e-12)
    assert items.inclusion(np.array([0, 2])) == pytest.approx(p[0] * p[2], rel=1e-12)
