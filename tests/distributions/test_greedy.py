"""Greedy search, compared with the same search over enumerated probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from distributions.examples import EXAMPLES, N
from dpplearn import InputError
from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import SPECTRA, Exact, exact


def greedy(dpp: SpectralDPP, k: int | None, include: tuple[int, ...] = ()) -> tuple[Ints, Floats, float]:
    return SetDistribution.mixture([1.0], dpp).greedy(k, np.array(include, dtype=np.int64))


def enumerated(P: Floats, k: int | None, include: tuple[int, ...]) -> tuple[list[int], list[float]]:
    """Add the item with the largest P(A ∪ i), or if all are 0 the most probable item given A ⊆ Y."""
    n, A = len(P).bit_length() - 1, list(include)
    before = [P[oracle.index(A[:size])] for size in range(len(A))]
    gains = [P[oracle.index(A[: size + 1])] / p if p else math.nan for size, p in enumerate(before)]
    while len(A) < (n if k is None else k):
        p, others = P[oracle.index(A)], [i for i in range(n) if i not in A]
        for value in (lambda i: P[oracle.index([*A, i])], lambda i: oracle.marginal(P, [*A, i])):
            best = max(others, key=value)
            if value(best) > 0:
                break
        else:
            break
        gain = P[oracle.index([*A, best])] / p if p else math.nan
        if k is None and gain <= 1:
            break
        A.append(best)
        gains.append(gain)
    return A, gains


@pytest.mark.parametrize("name", [*SPECTRA, *EXAMPLES])
def test_greedy_search_is_the_enumerated_one(name: str) -> None:
    """Under a spectrum, sets with fewer items than eigenvalues near 1 have few digits of their probability."""
    if name in SPECTRA:
        truth = exact(name)
        distribution, P, n_near = SetDistribution.mixture([1.0], truth.kernel), truth.P, truth.n_near
    else:
        distribution = EXAMPLES[name](2)
        P, n_near = np.exp(distribution.log_prob(sets_of(oracle.subsets(N), N))), 0
    digits = np.where(np.arange(distribution.n_items) < n_near, 1e-2, 1e-9)
    for include in ((), (3,), (4, 0), (2, 1, 4)):
        if oracle.marginal(P, include) == 0:
            continue
        for k in (None, *range(len(include), distribution.n_items + 1)):
            items, gains, log_prob = distribution.greedy(k, np.array(include, np.int64))
            expected, expected_gains = enumerated(P, k, include)
            assert items.tolist() == expected
            assert math.exp(log_prob) == pytest.approx(P[oracle.index(expected)], rel=1e-8, abs=0)
            np.testing.assert_array_equal(np.isnan(gains), np.isnan(expected_gains))
            known = ~np.isnan(gains)
            errors = np.abs(gains[known] / np.array(expected_gains)[known] - 1)
            assert np.all(errors < digits[: len(gains)][known])


def test_small_gains_next_to_an_eigenvalue_near_one_are_not_taken_for_zero() -> None:
    """In L the odds of 1e12 leave nothing of gains below 1e-4."""
    truth = Exact([1e-9, 1e-6, 0.3, 0.5, 0.9, 1 - 1e-12])
    items, gains, _ = greedy(truth.kernel, 6)
    expected, expected_gains = enumerated(truth.P, 6, ())
    assert items.tolist() == expected
    np.testing.assert_allclose(gains, expected_gains, rtol=1e-6)


def test_all_items_are_taken_but_exact_duplicates() -> None:
    """Next to an exact duplicate, of which nothing is left, an item of which 1e-14 is left comes last."""
    X = np.eye(6)
    X[3] = X[0]
    X[4] = X[1] + 1e-7 * X[4]
    items, gains, _ = greedy(SpectralDPP.from_factor(2 * X), 6)
    assert len(items) == 5
    assert set(items[:4] % 3) == {0, 1, 2}
    assert gains[4] == pytest.approx(4e-14, rel=1e-6)


def test_items_that_cannot_be_together_are_refused() -> None:
    X = np.random.default_rng(0).standard_normal((31, 40))
    X[30] = X[0]
    distribution = SetDistribution.mixture([1.0], SpectralDPP.from_L(X @ X.T))
    for call in (distribution.greedy, lambda _, A: distribution.condition(A, NO_ITEMS)):
        with pytest.raises(InputError):
            call(9, np.array([4, 11, 0, 30]))
    with pytest.raises(InputError):
        greedy(exact("three at 1, three at 0").kernel, 6, tuple(range(6)))
