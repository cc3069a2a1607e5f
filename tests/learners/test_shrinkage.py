"""Shrinkage towards independent items: against enumeration, and as cross-validation chooses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Stop
from dpplearn.distributions.independent import before_truncation
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.shrinkage import FREQUENCY_TOL, shrink
from helpers import oracle

# Item 4 never occurs; items 0 and 1 exclude each other.
LISTS = [[0], [0, 2], [1], [1, 2], [1, 2, 3], [0, 3], [2], [1], [0, 2, 3], [1, 3]] * 4
BASKETS = Baskets.from_lists(LISTS, n_items=5)
WITH_EMPTY = Baskets.from_lists([*LISTS, [], []], n_items=5)


def smoothed(baskets: Baskets) -> np.ndarray:
    """m = (count + ½)/(n + 1)."""
    n = baskets.total_weight
    return (baskets.frequencies() * n + 0.5) / (n + 1)


def probabilities(kernel: SpectralDPP, nonempty: bool) -> np.ndarray:
    """P(Y) of every subset by enumeration; given Y ≠ ∅ if wanted."""
    P = oracle.probabilities_from_K(kernel.K)
    if nonempty:
        P[0] = 0
    return P / P.sum()


@pytest.fixture(scope="module", params=[False, True], ids=["any set", "nonempty sets"])
def learned(request: pytest.FixtureRequest) -> tuple[dl.FitResult, Baskets, bool]:
    baskets = BASKETS if request.param else WITH_EMPTY
    return dl.fit_dpp(baskets, shrinkage=0, nonempty=request.param), baskets, request.param


def test_one_gives_independent_items(learned: tuple[dl.FitResult, Baskets, bool]) -> None:
    _, baskets, nonempty = learned
    result = dl.fit_dpp(baskets, shrinkage=1, nonempty=nonempty)
    m = smoothed(baskets)
    p = before_truncation(m) if nonempty else m
    contains = (np.arange(2**5)[:, None] >> np.arange(5)) & 1
    expected = np.prod(np.where(contains, p, 1 - p), axis=1)
    expected[0] = 0 if nonempty else expected[0]
    P = probabilities(result.model.kernel, nonempty)
    np.testing.assert_allclose(P, expected / expected.sum(), atol=1e-12)
    np.testing.assert_allclose(oracle.item_marginals(P), m, rtol=1e-9)
    assert (result.stop, result.n_iter, result.converged) == (Stop.CLOSED_FORM, 0, True)
    assert result.model.caution


@pytest.mark.parametrize("s", [1e-6, 0.3])
def test_all_sets_are_possible_and_items_have_their_frequencies(
    s: float, learned: tuple[dl.FitResult, Baskets, bool]
) -> None:
    result, baskets, nonempty = learned
    kernel = shrink(result.model.kernel, baskets, s, nonempty=nonempty)
    assert 0 < kernel.eigenvalues.min() <= kernel.eigenvalues.max() < 1
    P = probabilities(kernel, nonempty)
    assert np.all(P[1:] > 0)
    # Rescaling stops at FREQUENCY_TOL; the eigendecomposition adds no more than 1e-12 to frequencies above 0.01.
    np.testing.assert_allclose(oracle.item_marginals(P), smoothed(baskets), rtol=1.01 * FREQUENCY_TOL)


def test_rescaling_keeps_the_interactions(learned: tuple[dl.FitResult, Baskets, bool]) -> None:
    """L ← D L D leaves L_ij/√(L_ii L_jj) unchanged."""
    result, baskets, nonempty = learned
    m = smoothed(baskets)
    p = before_truncation(m) if nonempty else m

    def correlation(kernel: SpectralDPP) -> np.ndarray:
        d = np.sqrt(kernel.L.diagonal())
        return kernel.L / np.outer(d, d)

    mixed = SpectralDPP.from_K(0.7 * result.model.kernel.K + 0.3 * np.diag(p))
    found = shrink(result.model.kernel, baskets, 0.3, nonempty=nonempty)
    np.testing.assert_allclose(correlation(found), correlation(mixed), atol=1e-9)


@pytest.mark.parametrize("lists", [[[0]] * 3, [[0], [1]] * 3, [[0], [1], [2]] * 3], ids=len)
@pytest.mark.parametrize("shrinkage", [1e-6, 0.5, "auto"])
def test_baskets_of_one_item(lists: list[list[int]], shrinkage: float | str) -> None:
    """No kernel reaches the smoothed frequencies of one or two items given that a set is not empty."""
    result = dl.fit_dpp(lists, shrinkage=shrinkage, nonempty=True)
    assert 0 < result.model.kernel.eigenvalues.min() <= result.model.kernel.eigenvalues.max() < 1
    n = len(result.model.items)
    expected = smoothed(Baskets.from_lists(lists)) if n > 2 else 1 / n
    np.testing.assert_allclose(result.model.marginals(), expected, rtol=1e-3)


def test_only_the_default_learner_shrinks_by_default() -> None:
    for learner, chosen in (("lbfgs", True), ("em", False), ("adam", False)):
        result = dl.fit_dpp(WITH_EMPTY, learner, max_iter=3)
        assert result.model.learned.shrinkage_chosen == chosen
        assert (result.shrinkage > 0) == chosen


def repulsive(n: int, rng: int) -> Baskets:
    """Sets of a strongly repulsive DPP: ten pairs of near-duplicates."""
    K = np.kron(np.eye(10), [[0.3, 0.29], [0.29, 0.3]])
    drawn = dl.DPP.from_K(K).sample(n, rng=rng)
    return Baskets.from_lists(drawn, n_items=20)


def test_cross_validation_shrinks_few_baskets_more() -> None:
    plenty, few = (dl.fit_dpp(repulsive(n, 1), nonempty=False, rng=0) for n in (3000, 20))
    assert plenty.model.learned.shrinkage_chosen
    assert few.model.learned.shrinkage_chosen
    assert 0 < plenty.shrinkage < 0.05
    assert few.shrinkage > 5 * plenty.shrinkage


def test_cross_validation_returns_independent_items_where_items_are_independent() -> None:
    rng = np.random.default_rng(0)
    baskets = Baskets.from_matrix((rng.random((60, 30)) < 0.1).astype(int))
    assert dl.fit_dpp(baskets, nonempty=False, rng=0).shrinkage > 0.8


def test_a_fit_that_is_stopped_early_is_shrunk_without_cross_validation() -> None:
    """By 8N/(n + 8N)."""
    limits: list[dict[str, Any]] = [{"callback": lambda now: now.iteration == 2}, {"max_seconds": 1e-9}]
    for limit in limits:
        result = dl.fit_dpp(BASKETS, **limit)
        assert not result.model.learned.shrinkage_chosen
        assert result.shrinkage == pytest.approx(8 * 5 / (40 + 8 * 5))
