"""Sums over the minors of a matrix that is not symmetric, and over segments, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel

from dpplearn import Baskets, InputError
from dpplearn.distributions.independent import independent
from dpplearn.distributions.segment_statistics import (
    log_minors,
    minor_sums,
    normalisers,
    of_items,
    segment_sums,
)
from dpplearn.distributions.spectral import SpectralDPP

RNG = np.random.default_rng(0)
N = 12
SETS = [sorted(RNG.choice(N, size, replace=False).tolist()) for size in RNG.integers(0, N + 1, 150)]
BASKETS = Baskets.from_lists(SETS, n_items=N).weighted(RNG.uniform(0, 3, len(SETS)))
U, A = RNG.standard_normal((N, 3)), RNG.standard_normal((N, N))
C = np.eye(N) + U @ U.T + A - A.T
LOG_ODDS = RNG.standard_normal((4, N))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_minors_are_those_of_numpy_whatever_the_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpplearn.distributions.passes.WORK_WORTH_A_THREAD", 1)
    logdets = [np.linalg.slogdet(C[np.ix_(each, each)])[1] for each in SETS]
    delta = np.zeros((N, N))
    for each, weight in zip(SETS, BASKETS.weights, strict=True):
        delta[np.ix_(each, each)] += weight * np.linalg.inv(C[np.ix_(each, each)]).T
    found = minor_sums(C, BASKETS, threads)
    np.testing.assert_allclose(found.logdet, BASKETS.weights @ logdets, rtol=1e-12)
    np.testing.assert_allclose(found.delta, delta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_minors(C, BASKETS, threads), logdets, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_segments_are_as_likely_as_their_share_of_the_sum(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpplearn.distributions.passes.WORK_WORTH_A_THREAD", 1)
    bias = np.array([0.3, -1.0, 0.0, 2.0])
    holds = np.array([[i in each for i in range(N)] for each in SETS], dtype=float)
    terms = bias + holds @ LOG_ODDS.T
    log_sums = np.logaddexp.reduce(terms, axis=1)
    r = BASKETS.weights[:, None] * np.exp(terms - log_sums[:, None])
    found = segment_sums(LOG_ODDS, bias, BASKETS, threads)
    assert found.log_sum == pytest.approx(BASKETS.weights @ log_sums, rel=1e-12)
    np.testing.assert_allclose(found.shares, r.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.counts, r.T @ holds, rtol=1e-11)


def test_products_of_pivots_beyond_the_range_of_a_float_are_no_infinity() -> None:
    n = 300
    D = np.diag(np.full(n, 1e3))
    full = Baskets.from_lists([range(n)], n_items=n)
    assert log_minors(D, full)[0] == pytest.approx(n * np.log(1e3), rel=1e-12)
    assert minor_sums(D, full).logdet == pytest.approx(n * np.log(1e3), rel=1e-12)


def test_one_segment_without_attraction_is_the_symmetric_dpp() -> None:
    S, quality = np.eye(N) + U @ U.T, LOG_ODDS[0]
    d = np.exp(quality / 2)
    mixture = MixtureKernel(np.ones(1), quality[None], S[None])
    symmetric = SpectralDPP.from_L(d[:, None] * S * d)
    expected = symmetric_log_prob(symmetric, BASKETS)
    np.testing.assert_allclose(log_prob(mixture, BASKETS), expected, rtol=1e-12, atol=1e-11)


def test_segments_that_are_all_alike_are_one() -> None:
    one = MixtureKernel(np.ones(1), LOG_ODDS[:1], C[None])
    three = MixtureKernel(np.array([0.2, 0.5, 0.3]), np.repeat(LOG_ODDS[:1], 3, axis=0), C[None])
    own = MixtureKernel(three.weights, three.log_odds, np.repeat(C[None], 3, axis=0))
    expected = log_prob(one, BASKETS)
    np.testing.assert_allclose(log_prob(three, BASKETS), expected, rtol=1e-12)
    np.testing.assert_allclose(log_prob(own, BASKETS), expected, rtol=1e-12)


def test_without_interaction_and_segments_items_are_independent() -> None:
    p = independent(BASKETS, smoothing=0.5).eigenvalues
    expected = symmetric_log_prob(independent(BASKETS, smoothing=0.5), BASKETS)
    found = log_prob(MixtureKernel.of_items(np.log(p / (1 - p))), BASKETS)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "log_odds", "interaction", "value"),
    [
        (np.ones(2) / 2, LOG_ODDS[:1], C[None], None),
        (np.ones(1), LOG_ODDS[:1], C, None),
        (np.array([0.7, 0.7]), LOG_ODDS[:2], C[None], r"1\.4"),
        (np.ones(1), np.full((1, N), np.inf), C[None], None),
        (np.ones(1), LOG_ODDS[:1], (C - np.eye(N))[None] * 0.5, None),
    ],
)
def test_what_is_no_mixture_is_refused(
    weights: object, log_odds: object, interaction: object, value: str | None
) -> None:
    with pytest.raises(InputError, match=value):
        MixtureKernel(weights, log_odds, interaction)  # type: ignore[arg-type]


def test_baskets_of_other_items_are_refused() -> None:
    with pytest.raises(InputError, match=r"\b12\b.*\b2\b"):
        log_prob(MixtureKernel(np.ones(1), LOG_ODDS[:1], C[None]), Baskets.from_lists([[0, 1]]))


@pytest.mark.parametrize("n_items", [1, 3, 4, 9, N])
@pytest.mark.parametrize("threads", [1, 3])
def test_normalisers_are_those_of_numpy(n_items: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpplearn.distributions.passes.WORK_WORTH_A_THREAD", 1)
    shared, log_odds = np.ascontiguousarray(C[:n_items, :n_items]), LOG_ODDS[:, :n_items]
    found, weights = normalisers(shared, log_odds, threads), np.arange(1.0, 5.0)
    d = np.exp(log_odds / 2)
    L = d[:, :, None] * shared * d[:, None, :]
    H = np.linalg.inv(np.eye(n_items) + L)
    np.testing.assert_allclose(found.log_Z, np.linalg.slogdet(np.eye(n_items) + L)[1], rtol=1e-12)
    np.testing.assert_allclose(found.marginals, 1 - np.diagonal(H, axis1=1, axis2=2), rtol=1e-11, atol=1e-13)
    total = np.einsum("c,ci,cij,cj->ij", weights, d, H, d)
    np.testing.assert_allclose(found.weighted_sum(weights), total, rtol=1e-10, atol=1e-12)


def test_independent_items_have_the_normalisers_of_no_interaction() -> None:
    found, expected = of_items(LOG_ODDS), normalisers(np.eye(N), LOG_ODDS)
    np.testing.assert_allclose(found.log_Z, expected.log_Z, rtol=1e-13)
    np.testing.assert_allclose(found.marginals, expected.marginals, rtol=1e-13)
