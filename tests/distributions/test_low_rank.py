"""Low-rank components of large catalogues: sizes, draws and pruned rankings, which do not use dense matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import chi2

from distributions.contract import LEVEL, p_value
from distributions.examples import N, dense
from dpplearn import InputError
from dpplearn.arrays import NO_ITEMS, Floats, Ints
from dpplearn.distributions.components import Stack, sets_of
from dpplearn.distributions.distribution import SetDistribution
from dpplearn.distributions.interaction import LowRank, repelling_and_attracting
from dpplearn.distributions.sampling import DenseSampler
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.kernels import distribution_of
from helpers.catalogues import catalogue, dense_form
from helpers.oracle import membership, subsets

N_DRAWS = 1000
RARE = -14.0  # added to all log-odds, this makes P(Y ≠ ∅) about 1e-6


def raised(components: ScaledDPPs, log_odds: float) -> ScaledDPPs:
    return ScaledDPPs(components.log_odds + np.float32(log_odds), components.interaction)


@pytest.mark.parametrize(
    ("n_items", "each", "log_odds"),
    [(160, False, 0), (160, True, 0), (160, False, 4), (400, False, 3), (400, False, 8)],
)
def test_sizes_are_those_of_dense_components(n_items: int, each: bool, log_odds: float) -> None:
    """With a few items per set and with most items in a set. The transform has an absolute error of 1e-14."""
    components = raised(catalogue(n_items, each=each).components, log_odds)
    found, expected = components.log_sizes(), dense_form(components).log_sizes()
    np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1, rtol=1e-12)
    for k in (1, 30, n_items - 1) if n_items == 160 else ():
        np.testing.assert_allclose(components.log_rare_size(k), expected[:, k], rtol=1e-9)


def test_all_items_and_none_are_possible_and_one_more_is_refused() -> None:
    distribution = distribution_of(catalogue(160))
    for k in (0, 160):
        assert [each.tolist() for each in distribution.sample(2, k, 0)] == [list(range(k))] * 2
    with pytest.raises(InputError, match=r"\b0\b.*\b160\b.*\b161\b"):
        distribution.sample(1, 161)


def few_of(n_items: int, log_odds: float, *, skew: bool = True) -> ScaledDPPs:
    """Items after the first five have odds of e⁻⁶⁰ and are never drawn; they select the sampler for many items."""
    rng = np.random.default_rng(2)
    Z = np.zeros((n_items, 3))
    Z[: N - 1] = 1.5 * rng.standard_normal((N - 1, 3))
    x = np.full((2, n_items), -60.0)
    x[:, :N] = rng.normal(-1, 0.5, (2, N)) + log_odds
    core = repelling_and_attracting(1, 1)
    return ScaledDPPs.checked(x.astype(np.float32), LowRank.checked(Z, (core if skew else (core + core.T) / 2)[None]))


def stack(log_odds: float) -> SetDistribution:
    """Components of every kind."""
    B = np.random.default_rng(0).standard_normal((N, N)) / 2
    parts = (SpectralDPP.from_L(np.exp(log_odds) * B @ B.T), raised(dense(2, 1), log_odds - 0.5), few_of(N, log_odds))
    return SetDistribution.mixture([0.2, 0.1, 0.2, 0.3, 0.2], Stack(parts))


def many_items(log_odds: float) -> SetDistribution:
    return SetDistribution.mixture([0.4, 0.6], few_of(200, log_odds))


def table_of(distribution: SetDistribution, sizes: range) -> Floats:
    """P(Y | |Y| in sizes) of the subsets of the first five items."""
    P = np.exp(distribution.log_prob(sets_of(subsets(N), distribution.n_items)))
    P[~np.isin(membership(N).sum(axis=1), sizes)] = 0
    return np.asarray(P / P.sum())


@pytest.mark.parametrize("of", [stack, many_items])
def test_nonempty_draws_have_their_probabilities_where_almost_every_set_is_empty(
    of: Callable[[float], SetDistribution],
) -> None:
    rare, common = of(RARE), of(-1.0)
    assert 1e-8 < 1 - rare.p_empty < 1e-4
    for distribution in (rare, common):
        drawn = distribution.with_p_empty(0.0).sample(N_DRAWS, None, 2)
        assert p_value(drawn, table_of(distribution, range(1, N + 1))) > LEVEL
    rng = np.random.default_rng(0)  # the control replaces empty sets by a random item
    wrong = [each if len(each) else rng.integers(N, size=1) for each in common.sample(N_DRAWS, None, 1)]
    assert p_value(wrong, table_of(common, range(1, N + 1))) < LEVEL
    n_empty = sum(not len(each) for each in rare.with_p_empty(0.25).sample(N_DRAWS, None, 3))
    assert abs(n_empty - N_DRAWS / 4) < 5 * np.sqrt(N_DRAWS * 0.25 * 0.75)


@pytest.mark.parametrize("k", [None, 1, 2, 4])
def test_draws_have_their_probabilities_and_those_of_a_symmetric_core_have_not(k: int | None) -> None:
    sizes = range(N + 1) if k is None else range(k, k + 1)
    P = table_of(many_items(0.5), sizes)
    for skew in (True, False):
        drawn = SetDistribution.mixture([0.4, 0.6], few_of(200, 0.5, skew=skew)).sample(N_DRAWS, k, 1)
        if skew:
            assert p_value(drawn, P) > LEVEL
        elif k != 1:  # single items do not depend on the skew part
            assert p_value(drawn, P) < LEVEL


def test_draws_from_blocks_of_many_items_have_their_probabilities() -> None:
    """So many components of rank 41 leave memory for four blocks of about 200 items, which are halved twice."""
    interaction = catalogue(1000, repelling=1, attracting=20).components.interaction
    log_odds = np.random.default_rng(0).normal(-6.5, 0.3, (5000, 1000)).astype(np.float32)
    components, n = ScaledDPPs(log_odds, interaction), 1500
    one, every = components.take(np.zeros(1, np.int64)), np.arange(1000)
    drawn, p = components.sample(np.zeros(n, np.int64), np.random.default_rng(0)), one.marginals()[0]
    pairs = one.pair_marginals(np.ones(1), every, every)
    strong = np.argwhere(np.triu(pairs > 1.8 * np.outer(p, p), 1))[:3000]  # pairs that attract each other
    groups = np.argsort(-one.p[0] * (interaction.Z**2).sum(axis=1)).reshape(50, 20)  # by strength, as blocks are

    def distance(sets: list[Ints]) -> float:
        """The χ² of the items of groups or of the strong pairs, relative to its bound; the larger one."""
        held = np.array([np.isin(every, each) for each in sets])
        counts = np.column_stack([held[:, groups].sum(axis=2), held[:, strong].all(axis=2).sum(axis=1)])
        expected = np.append(p[groups].sum(axis=1), pairs[*strong.T].sum())
        squares = (counts.mean(axis=0) - expected) ** 2 / counts.var(axis=0) * n
        return float(max(squares[:-1].sum() / chi2.isf(LEVEL, 50), squares[-1] / chi2.isf(LEVEL, 1)))

    assert distance(drawn) < 1
    rng = np.random.default_rng(0)
    assert distance([np.flatnonzero(rng.random(1000) < p) for _ in range(n)]) > 2
    few = [components.sample(np.zeros(70, np.int64), np.random.default_rng(1), threads=t) for t in (1, 2)]
    assert [each.tolist() for each in few[0]] == [each.tolist() for each in few[1]]


@pytest.mark.parametrize("each", [False, True])
def test_the_pruned_best_items_are_those_of_scoring_all(each: bool) -> None:
    n = 4000
    distribution = distribution_of(catalogue(n, each=each))
    sets = [[], [0], [3, 1000], [1, 7, 50, 200, 3999], list(range(0, 40, 2))]
    baskets, candidate = sets_of(sets, n), np.random.default_rng(0).random(n) < 0.3
    score, probability = distribution.next_items(baskets)
    for k, among in ((1, None), (10, None), (10, candidate), (700, None), (700, candidate)):
        found = distribution.top_next(baskets, k, among)
        possible = score if among is None else np.where(among, score, 0)
        expected = np.argsort(-possible, axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(found.items, expected)
        np.testing.assert_allclose(found.scores, np.take_along_axis(score, expected, axis=1), rtol=1e-11)
        np.testing.assert_allclose(found.probabilities, np.take_along_axis(probability, expected, axis=1), rtol=1e-9)


def test_equal_scores_are_ordered_by_position() -> None:
    Z = np.zeros((1200, 2), np.float32)
    Z[[40, 1100]] = np.eye(2)
    components = ScaledDPPs(np.full((1, 1200), -3.0), LowRank(Z, 3 * repelling_and_attracting(0, 1)[None]))
    distribution = SetDistribution.mixture([1.0], components)
    for k, expected in ((1, [0]), (3, [0, 1, 2])):
        found = distribution.top_next(sets_of([NO_ITEMS], 1200), k)
        assert found.items[0].tolist() == expected
        np.testing.assert_allclose(found.scores, np.exp(-3), rtol=1e-12)


def test_odds_beyond_single_precision_keep_their_order() -> None:
    log_odds = np.append([-120.0, -110.0, 95.0, 100.0], np.full(1200, -130.0))
    components = ScaledDPPs(log_odds[None], LowRank(np.zeros((1204, 0), np.float32), np.zeros((1, 0, 0))))
    found = SetDistribution.mixture([1.0], components).top_next(sets_of([NO_ITEMS], 1204), 4)
    assert found.items[0].tolist() == [3, 2, 1, 0]


def test_a_draw_ends_where_rounding_leaves_no_item_with_a_probability() -> None:
    assert DenseSampler(np.zeros((3, 3)), 1e-300).draw(np.random.default_rng(0), nonempty=True).tolist() == []
