"""Every query of a distribution of every kind, compared with an enumeration of all subsets."""

from __future__ import annotations

import numpy as np
import pytest

from distributions.contract import LEVEL, N_DRAWS, p_value
from distributions.examples import EXAMPLES, N
from dpplearn import InputError
from dpplearn.arrays import Floats
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.distribution import SetDistribution
from helpers.oracle import index, membership, subsets

SUBSETS, HOLDS = subsets(N), membership(N)  # (2^N, N)
ALL, OF_THREE = (sets_of(subsets(n), n) for n in (N, 3))

every_example = pytest.mark.parametrize("name", EXAMPLES)
SEED = 2  # of dense and low-rank examples with three components and an interaction each


def example(name: str, seed: int = SEED) -> tuple[SetDistribution, Floats]:
    """The distribution and the probabilities of all subsets."""
    found = EXAMPLES[name](seed)
    return found, np.exp(found.log_prob(ALL))


@every_example
def test_probabilities_add_up_and_the_mean_is_theirs(name: str) -> None:
    found, P = example(name)
    assert found.n_items == N
    assert P.sum() == pytest.approx(1, rel=1e-12)
    weights = np.where(P > 0, np.arange(1.0, len(P) + 1), 0)
    expected = weights[P > 0] @ np.log(P[P > 0]) / weights.sum()
    assert found.mean_log_likelihood(ALL.weighted(weights)) == pytest.approx(expected, rel=1e-12)
    assert found.p_empty == pytest.approx(P[0], rel=1e-12)
    assert found.mean_log_likelihood(ALL) == (-np.inf if not P[0] else pytest.approx(np.log(P).mean(), rel=1e-12))
    again = SetDistribution.from_arrays(found.arrays())
    np.testing.assert_allclose(again.log_prob(ALL, 1), found.log_prob(ALL, 1), rtol=1e-12)
    assert again.size_range == found.size_range


@every_example
def test_items_pairs_and_sizes_are_sums_over_sets(name: str) -> None:
    found, P = example(name)
    sizes = HOLDS.sum(axis=1)
    np.testing.assert_allclose(found.marginals(), P @ HOLDS, rtol=1e-12)
    np.testing.assert_allclose(np.exp(found.log_sizes()), np.bincount(sizes, P), rtol=1e-10)
    assert found.expected_size == pytest.approx(P @ sizes, rel=1e-12)
    both, off_diagonal = np.einsum("s,si,sj->ij", P, HOLDS, HOLDS), ~np.eye(N, dtype=bool)
    for rows in (np.arange(N), np.array([3])):
        others = off_diagonal[rows]
        np.testing.assert_allclose(found.pair_marginals(rows)[others], both[rows][others], rtol=1e-10)
    expected = [P @ HOLDS[:, each].all(axis=1) for each in SUBSETS]
    np.testing.assert_allclose(np.exp(found.log_inclusion(ALL)), expected, rtol=1e-9)
    for k in range(1, N + 1):
        given_size = np.where(sizes == k, P, 0) / P[sizes == k].sum()
        np.testing.assert_allclose(found.marginals(k), given_size @ HOLDS, rtol=1e-9)


@every_example
def test_the_next_item_is_as_in_the_sets_that_hold_the_basket(name: str) -> None:
    found, P = example(name)
    score, chance = found.next_items(ALL)
    for row, basket in enumerate(SUBSETS):
        inside = HOLDS[:, basket].all(axis=1)
        expected = np.where(HOLDS[row], 0, (P * inside) @ HOLDS / (P @ inside))
        np.testing.assert_allclose(chance[row], expected, rtol=1e-9)
        joint = [0 if i in basket else P[index([*basket, i])] for i in range(N)]
        np.testing.assert_allclose(score[row], np.array(joint) / P[row] if P[row] else np.nan, rtol=1e-9)
    for some, every in zip(found.next_items(ALL, np.tile([3, 1], (len(SUBSETS), 1))), (score, chance), strict=True):
        np.testing.assert_allclose(some, every[:, [3, 1]], rtol=1e-9)


@every_example
def test_the_best_next_items_are_those_of_the_highest_score(name: str) -> None:
    """Or of the highest probability, where the basket alone is impossible."""
    distribution, P = example(name)
    score, chance = distribution.next_items(ALL)
    by = np.where(P[:, None] > 0, score, chance)
    candidate = np.arange(N) != 1
    for k, among, threads in ((0, None, 1), (2, None, 3), (2, candidate, 1), (N + 2, candidate, 1)):
        found = distribution.top_next(ALL, k, among, threads)
        assert found.items.shape == found.scores.shape == found.probabilities.shape == (len(ALL), k)
        assert found.possible.all()
        for row, basket in enumerate(SUBSETS):
            free = [i for i in range(N) if i not in basket and (among is None or among[i])]
            best = sorted(free, key=lambda i: -by[row, i])[:k]
            n = len(best)
            assert found.items[row].tolist() == [*best, *[-1] * (k - n)]
            np.testing.assert_allclose(found.scores[row, :n], score[row, best], rtol=1e-9)
            np.testing.assert_allclose(found.probabilities[row, :n], chance[row, best], rtol=1e-9)
            assert np.isnan(found.scores[row, n:]).all()


@every_example
def test_conditioning_and_restriction_give_the_distribution_of_the_other_items(name: str) -> None:
    found, P = example(name)
    for include, exclude in (([3], [1]), ([], [1, 3]), ([0, 4], [])):
        rest, remaining = found.condition(np.array(include, np.int64), np.array(exclude, np.int64))
        assert remaining.tolist() == [i for i in range(N) if i not in {*include, *exclude}]
        event = HOLDS[:, include].all(axis=1) & ~HOLDS[:, exclude].any(axis=1)  # in the order of the other items
        np.testing.assert_allclose(np.exp(rest.log_prob(OF_THREE)), P[event] / P[event].sum(), rtol=1e-9)
    S = np.array([4, 0, 2])
    expected = np.bincount(HOLDS[:, S] @ [1, 2, 4], P)
    np.testing.assert_allclose(np.exp(found.restrict(S).log_prob(OF_THREE)), expected, rtol=1e-9)


@every_example
@pytest.mark.parametrize("k", [None, 2])
def test_draws_have_the_probabilities_of_the_sets(name: str, k: int | None) -> None:
    """The same distribution with another seed is rejected."""
    (found, P), (_, another) = example(name), example(name, SEED + 7)
    drawn = found.sample(N_DRAWS, k, SEED, 2)
    few = [found.sample(100, k, rng, threads) for rng, threads in ((0, 1), (0, 2), (1, 1))]
    one, two, other = ([each.tolist() for each in sets] for sets in few)
    assert one == two != other
    if k is not None:
        of_size = HOLDS.sum(axis=1) == k
        P, another = (np.where(of_size, each, 0) / each[of_size].sum() for each in (P, another))
    assert p_value(drawn, P) > LEVEL
    assert p_value(drawn, another) < LEVEL


@pytest.mark.parametrize("k", [0, 6, True, 2.0, "2"])
def test_a_size_that_no_set_has_is_refused(k: object) -> None:
    with pytest.raises(InputError, match=r"\b1\b.*\b5\b"):
        EXAMPLES["dense, never empty"](0).check_size(k)
