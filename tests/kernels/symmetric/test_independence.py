"""Zero by a bound: items that are exactly alike are never together, items that are almost alike are, everywhere."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dpplearn.kernels.symmetric.conditioning import conditioned, inclusion_probability, next_item
from dpplearn.kernels.symmetric.selection import greedy_map

from dpplearn import Baskets
from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import log_determinants, statistics

EPSILON = np.finfo(float).eps
MAKERS = {"factor": SpectralDPP.from_factor, "L": lambda X: SpectralDPP.from_L(X @ X.T)}
NEAR_ONE = {"away from 1": [], "near 1": [1 - 1e-7, 1 - 1e-12], "at 1": [1.0, 1.0]}
NONE = np.zeros(0, dtype=np.int64)

every_maker = pytest.mark.parametrize("maker", MAKERS)
every_border = pytest.mark.parametrize("border", NEAR_ONE)


def with_doubles(n_items: int, apart: float, maker: str, border: str, seed: int = 0) -> SpectralDPP:
    """The last quarter are the first again, or this far from them: the pivot of the second, relative to its L_ii."""
    rng = np.random.default_rng(seed)
    n_doubles = n_items // 4
    X = rng.standard_normal((n_items, 2 * n_items)) / math.sqrt(2 * n_items)
    step = rng.standard_normal((n_doubles, 2 * n_items)) / math.sqrt(2 * n_items)
    X[-n_doubles:] = X[:n_doubles] + math.sqrt(apart) * step
    kernel = MAKERS[maker](X)
    lam = kernel.eigenvalues.copy()
    lam[np.argsort(lam)[n_items - len(NEAR_ONE[border]) :]] = NEAR_ONE[border]
    return SpectralDPP(lam, kernel.eigenvectors)


def sets_with_a_double(n_items: int, k: int, n: int = 25) -> list[Ints]:
    rng, quarter = np.random.default_rng(1), n_items // 4
    others = np.arange(quarter, n_items - quarter)
    pairs = [(i % quarter, n_items - quarter + i % quarter) for i in range(n)]
    return [np.sort([*pair, *rng.choice(others, k - 2, replace=False)]) for pair in pairs]


@every_border
@every_maker
@pytest.mark.parametrize("n_items", [20, 100])
@pytest.mark.parametrize("k", [3, 10])
def test_sets_with_doubles_are_impossible_and_with_items_almost_alike_possible(
    n_items: int, k: int, maker: str, border: str
) -> None:
    sets = sets_with_a_double(n_items, k)
    baskets = Baskets.from_lists(sets, n_items=n_items)
    for apart, possible in ((0.0, False), (1e-13, True), (1e-6, True)):
        kernel = with_doubles(n_items, apart, maker, border)
        assert np.all(np.isfinite(log_determinants(kernel, baskets)) == possible)
        assert statistics(kernel, baskets).impossible == (0 if possible else len(sets))
        for Y in sets[:5]:
            assert (inclusion_probability(kernel, Y) > 0) == possible
            score, probability = next_item(kernel, Y[:-1])  # the last item is the double
            assert (score[Y[-1]] > 0) == (probability[Y[-1]] > 0) == possible
            rest, left = conditioned(kernel, Y[:-1], NONE)
            assert (rest.K.diagonal()[left == Y[-1]] > 0) == possible


@every_border
def test_greedy_selection_takes_all_items_but_the_doubles(border: str) -> None:
    for apart, n_found in ((0.0, 15), (1e-13, 20), (1e-6, 20)):
        kernel = with_doubles(20, apart, "factor", border)
        assert len(greedy_map(kernel, 20).positions) == n_found
        assert len(greedy_map(kernel, 20, np.array([3, 7, 11])).positions) == n_found


def relative(values: Floats, expected: Floats) -> float:
    return float(np.abs(values / expected - 1).max())


@every_maker
def test_determinants_and_inverses_of_items_almost_alike_keep_their_digits(maker: str) -> None:
    """L_Y = [[1, c], [c, 1]] with 1 − c² = δ: log det is log δ and the inverse has entries ±1/δ."""
    for apart in (1e-10, 1e-13):
        angle = math.sqrt(apart)
        X = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        kernel = MAKERS[maker](X)
        stats = statistics(kernel, Baskets.from_lists([[0, 1]], n_items=2))
        pivot = math.sin(angle) ** 2
        digits = 1e-9 if maker == "factor" else 8 * EPSILON / apart  # what L holds of the pivot
        assert stats.logdet == pytest.approx(math.log(pivot), abs=digits)
        assert relative(stats.delta * pivot, X @ X.T * [[1, -1], [-1, 1]]) < max(digits, math.sqrt(EPSILON) / angle)


@pytest.mark.parametrize("order", list(itertools.permutations([0, 4, 5])), ids=str)
@every_border
def test_items_that_together_depend_are_impossible_in_every_order(order: tuple[int, ...], border: str) -> None:
    """X₅ = X₀ + 1e-6·X₄: of the three any two are possible, and none follows from the other two."""
    X = np.random.default_rng(0).standard_normal((30, 60)) / 8
    X[order[2]] = X[order[0]] + 1e-6 * X[order[1]]
    found = SpectralDPP.from_factor(X)
    ones = NEAR_ONE[border]
    kernel = SpectralDPP(np.concatenate([ones, found.eigenvalues[len(ones) :]]), found.eigenvectors)
    three = Baskets.from_lists([[0, 4, 5], [0, 4, 5, 9]], n_items=30)
    assert np.all(np.isneginf(log_determinants(kernel, three)))
    for third in (0, 4, 5):
        pair = np.array([item for item in (0, 4, 5) if item != third])
        score, probability = next_item(kernel, pair)
        rest, left = conditioned(kernel, pair, NONE)
        assert probability[third] == 0
        assert score[third] == 0 or np.isnan(score[third])  # too few items, where two eigenvalues are 1
        np.testing.assert_allclose(rest.K.diagonal(), probability[left], rtol=1e-5)
        assert np.count_nonzero(probability[left]) == 27


def test_next_items_and_conditioning_agree_beside_items_almost_alike() -> None:
    """Given {0, 5}, which are 1e-6 apart, K has lost twelve of its sixteen digits; both come from the factor."""
    X = np.random.default_rng(0).standard_normal((30, 60)) / 8
    X[5] = X[0] + 1e-6 * X[4]
    X[4] += 0.1 * X[7]
    kernel = SpectralDPP.from_factor(X)
    _, probability = next_item(kernel, np.array([0, 5]))
    rest, left = conditioned(kernel, np.array([0, 5]), NONE)
    np.testing.assert_allclose(rest.K.diagonal(), probability[left], rtol=1e-5)
    assert 1e-3 < probability[4] < 1e-2


def test_an_item_left_with_little_by_the_others_is_still_chosen() -> None:
    """Beside an exact double, of which nothing is left, an item of which 1e-14 is left comes next and then no more."""
    X = np.eye(6)
    X[3] = X[0]
    X[4] = X[1] + 1e-7 * X[4]
    found = greedy_map(SpectralDPP.from_factor(2 * X), 6)
    assert len(found.positions) == 5
    assert set(found.positions[:4] % 3) == {0, 1, 2}
    assert found.gains[4] == pytest.approx(4e-14, rel=1e-6)
