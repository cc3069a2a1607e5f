"""Sums over the minors of a matrix that is not symmetric, and over segments, against plain loops."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from dpplearn import Baskets, InputError
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.independent import independent
from dpplearn.distributions.interaction import Dense
from dpplearn.distributions.minors import GENERAL, WORK_WORTH_A_THREAD, Share, over_threads
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.statistics import (
    INVERSE,
    SEGMENT,
    log_minors,
    minor_sums,
    normalisers,
    segment_sums,
    statistics,
)

RNG = np.random.default_rng(0)
N = 12
SETS = [sorted(RNG.choice(N, size, replace=False).tolist()) for size in RNG.integers(0, N + 1, 1600)]
BASKETS = Baskets.from_lists(SETS, n_items=N).weighted(RNG.uniform(0, 3, len(SETS)))
U, A = RNG.standard_normal((N, 3)), RNG.standard_normal((N, N))
C = np.eye(N) + U @ U.T + A - A.T
LOG_ODDS = RNG.standard_normal((4, N))


@pytest.mark.parametrize("threads", [1, 3])
def test_minors_are_those_of_numpy_whatever_the_threads(threads: int) -> None:
    assert GENERAL * BASKETS.blocks.work > 2 * WORK_WORTH_A_THREAD  # so that there are three shares
    logdets = [np.linalg.slogdet(C[np.ix_(each, each)])[1] for each in SETS]
    delta = np.zeros((N, N))
    for each, weight in zip(SETS, BASKETS.weights, strict=True):
        delta[np.ix_(each, each)] += weight * np.linalg.inv(C[np.ix_(each, each)]).T
    found, inverses = minor_sums(C, BASKETS, threads)
    np.testing.assert_allclose(found, BASKETS.weights @ logdets, rtol=1e-12)
    np.testing.assert_allclose(inverses, delta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(log_minors(C, BASKETS, threads), logdets, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_segments_are_as_likely_as_their_share_of_the_sum(threads: int) -> None:
    bias = np.tile([0.3, -1.0, 0.0, 2.0], 20)
    log_odds = RNG.standard_normal((len(bias), N))
    assert SEGMENT * len(BASKETS) * len(bias) > 2 * WORK_WORTH_A_THREAD
    holds = np.array([[i in each for i in range(N)] for each in SETS], dtype=float)
    terms = bias + holds @ log_odds.T
    log_sums = np.logaddexp.reduce(terms, axis=1)
    r = BASKETS.weights[:, None] * np.exp(terms - log_sums[:, None])
    found = segment_sums(log_odds, bias, BASKETS, threads)
    assert found.log_sum == pytest.approx(BASKETS.weights @ log_sums, rel=1e-12)
    np.testing.assert_allclose(found.shares, r.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.counts, r.T @ holds, rtol=1e-11)


def test_products_of_pivots_beyond_the_range_of_a_float_are_no_infinity() -> None:
    n = 300
    D = np.diag(np.full(n, 1e3))
    full = Baskets.from_lists([range(n)], n_items=n)
    assert log_minors(D, full)[0] == pytest.approx(n * np.log(1e3), rel=1e-12)
    assert minor_sums(D, full)[0] == pytest.approx(n * np.log(1e3), rel=1e-12)


def test_malformed_components_and_weights_are_refused_with_the_offending_value() -> None:
    X = (C - np.eye(N))[None]
    for log_odds, interaction, value in (
        (LOG_ODDS[0], X, r"\(m, 12\).*\(12,\)"),
        (LOG_ODDS[:, :5], X, r"12.*\(4, 5\)"),
        (LOG_ODDS[:3], np.repeat(X, 2, axis=0), r"\b3\b.*\b2\b"),
        (np.full((1, N), np.inf), X, "inf"),
        (np.full((1, N), np.nan), X, "nan"),
        (LOG_ODDS, -2 * np.eye(N)[None], None),  # I + X has a negative eigenvalue
        (LOG_ODDS, X[0, :3], None),
    ):
        with pytest.raises(InputError, match=value):
            ScaledDPPs.checked(log_odds, Dense.checked(interaction))
    components = ScaledDPPs.checked(LOG_ODDS[:2], Dense.checked(X))
    for weights in ([0.7, 0.7], [-0.5, 1.5], [1.0]):
        with pytest.raises(InputError, match=re.escape(repr(weights))):
            SetDistribution.mixture(weights, components)
    with pytest.raises(InputError, match=r"1\.5"):
        SetDistribution.mixture([0.5, 0.5], components, p_empty=1.5)
    two_items = Baskets.from_lists([[0, 1]])  # compiled loops check no bounds
    for query in (SetDistribution.mixture([0.5, 0.5], components).log_prob, partial(statistics, independent(BASKETS))):
        with pytest.raises(InputError, match=r"\b12\b.*\b2\b"):
            query(two_items)


@pytest.mark.parametrize(("n_items", "segments", "threads"), [(1, 4, 1), (3, 4, 1), (4, 1, 1), (9, 4, 1), (N, 5000, 3)])
def test_normalisers_are_those_of_numpy(n_items: int, segments: int, threads: int) -> None:
    shared, log_odds = np.ascontiguousarray(C[:n_items, :n_items]), RNG.standard_normal((segments, n_items))
    assert (INVERSE * segments * n_items**3 > 2 * WORK_WORTH_A_THREAD) == (threads > 1)
    found, weights = normalisers(shared, log_odds, threads), np.linspace(1, 2, segments)
    d = np.exp(log_odds / 2)
    L = d[:, :, None] * shared * d[:, None, :]
    H = np.linalg.inv(np.eye(n_items) + L)
    np.testing.assert_allclose(found.log_Z, np.linalg.slogdet(np.eye(n_items) + L)[1], rtol=1e-12)
    np.testing.assert_allclose(found.marginals, 1 - np.diagonal(H, axis1=1, axis2=2), rtol=1e-11, atol=1e-13)
    total = np.einsum("c,ci,cij,cj->ij", weights, d, H, d)
    np.testing.assert_allclose(found.weighted_sum(weights), total, rtol=1e-10, atol=1e-12)


def test_an_error_in_any_share_is_the_caller_s() -> None:
    def part(share: Share) -> None:
        if share.thread == 1:
            raise ValueError("of the second")

    with pytest.raises(ValueError, match="of the second"):
        over_threads(part, 2 * WORK_WORTH_A_THREAD, 3, with_blas=False)
    with pytest.raises(InputError, match=r"threads.*\b0\b"):
        over_threads(part, 0, 0, with_blas=False)
