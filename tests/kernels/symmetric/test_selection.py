"""Greedy search against the same search with determinants computed anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dpplearn.kernels.symmetric.selection import greedy, greedy_map

from dpplearn import DPP, InputError
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import SPECTRA, Exact, every_spectrum, exact, rotation

WITHOUT_ONES = [spectrum for spectrum, lam in SPECTRA.items() if 1 not in lam]
WITH_ONES = [spectrum for spectrum, lam in SPECTRA.items() if 1 in lam]


def positions(items: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(items, dtype=np.int64)


def naive(P: Floats, k: int | None, include: tuple[int, ...] = ()) -> tuple[list[int], list[float]]:
    """Greedy search over enumerated probabilities."""
    Y: list[int] = []
    gains: list[float] = []
    n_items = len(P).bit_length() - 1
    while k is None or len(Y) < k:
        left = [include[len(Y)]] if len(Y) < len(include) else [i for i in range(n_items) if i not in Y]
        if not left:
            break
        best = max(left, key=lambda i: P[oracle.index([*Y, i])])
        gain = P[oracle.index([*Y, best])] / P[oracle.index(Y)]
        if gain == 0 or (k is None and len(Y) >= len(include) and gain <= 1):
            break
        Y.append(best)
        gains.append(gain)
    return Y, gains


def naive_by_determinants(L: Floats, k: int) -> tuple[list[int], list[float]]:
    Y: list[int] = []
    logdets = [0.0]
    for _ in range(k):
        tried = {i: np.linalg.slogdet(L[np.ix_([*Y, i], [*Y, i])])[1] for i in range(len(L)) if i not in Y}
        best = max(tried, key=lambda i: tried[i])
        Y.append(best)
        logdets.append(tried[best])
    return Y, np.exp(np.diff(logdets)).tolist()


@pytest.mark.parametrize("spectrum", WITHOUT_ONES)
@pytest.mark.parametrize("k", [None, 0, 1, 2, 3, 4, 5, 6, 9])
def test_greedy_search_is_the_enumerated_one(spectrum: str, k: int | None) -> None:
    truth = exact(spectrum)
    found = greedy_map(truth.kernel, k)
    items, gains = naive(truth.P, k)
    assert found.positions.tolist() == items
    np.testing.assert_allclose(found.gains, gains, rtol=1e-9)


@pytest.mark.parametrize("spectrum", WITHOUT_ONES)
@pytest.mark.parametrize("include", [(3,), (5, 0), (2, 1, 4)])
def test_greedy_search_from_a_basket_is_the_enumerated_one(spectrum: str, include: tuple[int, ...]) -> None:
    truth = exact(spectrum)
    for k in (None, len(include), len(include) + 1, 6):
        found = greedy_map(truth.kernel, k, positions(list(include)))
        items, gains = naive(truth.P, k, include)
        assert found.positions.tolist() == items
        np.testing.assert_allclose(found.gains, gains, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_greedy_search_among_sixty_items_is_that_by_determinants(seed: int) -> None:
    X = np.random.default_rng(seed).standard_normal((60, 80))
    L = X @ X.T / 20
    items, gains = naive_by_determinants(L, 30)
    for found in (greedy(L, 60, 30), greedy_map(SpectralDPP.from_L(L), 30)):
        assert found.positions.tolist() == items
        np.testing.assert_allclose(found.gains, gains, rtol=1e-9)


def test_without_k_it_stops_where_no_item_raises_the_probability() -> None:
    X = np.random.default_rng(0).standard_normal((30, 40))
    dpp = DPP.from_L(X @ X.T / 40)
    found = dpp.greedy_map()
    assert 3 < len(found) < 30
    assert min(found.gains) > 1
    assert found.note == ""
    assert found.log_prob == pytest.approx(dpp.log_prob([]) + math.fsum(map(math.log, found.gains)), rel=1e-12)
    others = set(range(30)) - set(found)
    assert max(dpp.log_prob([*found, i]) for i in others) <= found.log_prob
    assert len(DPP.from_L(np.diag([0.5, 0.9, 1.0])).greedy_map()) == 0


@pytest.mark.parametrize("spectrum", ["one at 1", "two at 1", "one at 1, two at 0", "three at 1, three at 0"])
@pytest.mark.parametrize("k", [None, 1, 2, 3, 4, 5, 6])
def test_with_eigenvalues_at_one_it_is_the_limit_from_below(spectrum: str, k: int | None) -> None:
    truth = exact(spectrum)
    below = Exact([1 - 1e-9 if x == 1 else x for x in SPECTRA[spectrum]])
    found = greedy_map(truth.kernel, k)
    items, gains = naive(below.P, k)
    assert found.positions.tolist() == items
    n_ones = SPECTRA[spectrum].count(1)
    np.testing.assert_allclose(found.gains[n_ones:], gains[n_ones:], rtol=1e-6)


@pytest.mark.parametrize("spectrum", WITH_ONES)
def test_with_eigenvalues_at_one_each_further_gain_is_a_ratio_of_probabilities(spectrum: str) -> None:
    truth = exact(spectrum)
    found = greedy_map(truth.kernel, 6)
    assert len(found.positions) == truth.kernel.rank
    n_ones = SPECTRA[spectrum].count(1)
    P = [truth.P[oracle.index(found.positions[:size])] for size in range(len(found.positions) + 1)]
    assert not any(P[:n_ones])
    for size in range(n_ones, len(found.positions)):
        if P[size] > 1e-9:
            gain = P[size + 1] / P[size]  # up to the odds of an eigenvalue near 1, which is known to 4N·eps
            assert found.gains[size] == pytest.approx(gain, rel=1e-9 + 24 * np.finfo(float).eps * gain)
            others = set(range(6)) - set(found.positions[:size].tolist())
            best = max(truth.P[oracle.index([*found.positions[:size], i])] for i in others)
            assert P[size + 1] == pytest.approx(best, rel=1e-9)


@every_spectrum
def test_a_basket_is_completed_to_every_size_that_can_be(spectrum: str) -> None:
    truth = exact(spectrum)
    for A in [(), *truth.subsets[1::3], truth.subsets[-1]]:  # of every size
        if oracle.marginal(truth.P, A) == 0:
            with pytest.raises(InputError):
                truth.dpp.complete(A, 6)
            continue
        for k in range(len(A), 7):
            found = truth.dpp.complete(A, k)
            assert found.items[: len(A)] == A
            assert len(set(found.items)) == len(found) == min(k, truth.kernel.rank)
            p = truth.P[oracle.index(found.items)]  # type: ignore[arg-type]
            if p == 0 or p > 1e-16:
                assert (found.log_prob == -np.inf) == (p == 0)
                assert ("probability zero under this model" in found.note) == (p == 0)
                assert ("stopped at" in found.note) == (k > truth.kernel.rank)


@pytest.mark.parametrize("n_ones", [0, 2])
@pytest.mark.parametrize(("n_items", "rank"), [(8, 3), (100, 5), (100, 20)])
def test_it_stops_at_the_rank_and_says_so(n_items: int, rank: int, n_ones: int) -> None:
    lam = np.where(np.arange(n_items) < rank, 0.5, 0)
    lam[:n_ones] = 1
    dpp = DPP(SpectralDPP(lam, rotation(n_items)))
    found = dpp.greedy_map(rank + 4)
    assert len(found) == rank
    assert found.note.startswith(f"stopped at {rank} of {rank + 4} items: no further item can be added")
    assert f"the rank of the kernel is {rank}" in found.note
    assert np.isfinite(found.log_prob)
    assert dpp.greedy_map(rank).note == ""
    with pytest.raises(InputError):
        dpp.complete(range(rank + 1), rank + 1)


def test_small_gains_beside_an_eigenvalue_near_one_are_not_taken_for_zero() -> None:
    """In L the odds of 1e12 leave nothing of gains below 1e-4."""
    truth = Exact([1e-9, 1e-6, 0.3, 0.5, 0.9, 1 - 1e-12])
    found = greedy_map(truth.kernel, 6)
    items, gains = naive(truth.P, 6)
    assert found.positions.tolist() == items
    np.testing.assert_allclose(found.gains, gains, rtol=1e-6)


def test_doubles_are_not_taken_together() -> None:
    X = np.random.default_rng(0).standard_normal((20, 40))
    X[10:] = X[:10]
    found = DPP.from_L(X @ X.T).greedy_map(15)
    assert len({item % 10 for item in found}) == len(found) == 10  # type: ignore[operator]
    assert "stopped at 10 of 15" in found.note


def test_a_set_without_what_every_set_has_is_said_to_be_impossible() -> None:
    found = exact("two at 1").dpp.greedy_map(1)
    assert found.log_prob == -np.inf
    assert found.note == "this set has probability zero under this model, where a set has 2 to 6 items"
    certain = DPP.from_K(np.diag([1.0, 0.5, 0.5])).complete([1], 1)
    assert certain.note == "this set has probability zero under this model"


def test_starting_from_items_that_cannot_be_together_is_refused() -> None:
    X = np.random.default_rng(0).standard_normal((31, 40))
    X[30] = X[0]
    dpp = DPP.from_L(X @ X.T)
    for seed in range(20):
        others = np.random.default_rng(seed).choice(np.arange(1, 30), 5, replace=False)
        with pytest.raises(InputError):
            dpp.complete([*others, 0, 30], 9)
    with pytest.raises(InputError):
        exact("three at 1, three at 0").dpp.complete(range(6), 6)


def test_every_item_at_once_is_a_completion_of_itself() -> None:
    for spectrum in ("inside", "two at 1", "one at 1 - 1e-12"):
        found = exact(spectrum).dpp.complete([3, 1, 0, 2, 5, 4], 6)
        assert found.items == (3, 1, 0, 2, 5, 4)
        assert found.log_prob == pytest.approx(math.log(exact(spectrum).P[-1]), rel=1e-12)
