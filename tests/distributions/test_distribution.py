"""Every query of a distribution of every kind, compared with an enumeration of all subsets."""

from __future__ import annotations

import numpy as np
import pytest

from distributions.contract import LEVEL, N_DRAWS, index, membership, p_value
from distributions.examples import EXAMPLES, Law, N, from_arrays
from dpplearn import Baskets, InputError
from dpplearn.arrays import Floats
from helpers.oracle import subsets

SUBSETS, HOLDS = subsets(N), membership(N)  # (2^N, N)
ALL = Baskets.from_lists(SUBSETS, n_items=N)

every_law = pytest.mark.parametrize(
    ("family", "seed"),
    [
        (family, seed)
        for family in EXAMPLES
        for seed in ((0, 1, 2) if "dense" in family or "low-rank" in family else (0,))
    ],
)


def positions(*items: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(items, dtype=np.int64)


def probability(law: Law) -> Floats:
    return np.exp(law.log_prob(ALL))


@every_law
def test_probabilities_add_up_and_the_mean_is_theirs(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    assert law.n_items == N
    P = probability(law)
    assert P.sum() == pytest.approx(1, rel=1e-12)
    weights = np.where(P > 0, np.arange(1.0, len(P) + 1), 0)
    expected = weights[P > 0] @ np.log(P[P > 0]) / weights.sum()
    assert law.mean_log_likelihood(ALL.weighted(weights)) == pytest.approx(expected, rel=1e-12)
    assert np.exp(law.log_empty()) == pytest.approx(P[0], rel=1e-12)
    assert law.mean_log_likelihood(ALL) == (-np.inf if not P[0] else pytest.approx(np.log(P).mean(), rel=1e-12))


@every_law
def test_items_pairs_and_sizes_are_sums_over_sets(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P, sizes = probability(law), HOLDS.sum(axis=1)
    np.testing.assert_allclose(law.marginals(), P @ HOLDS, rtol=1e-12)
    np.testing.assert_allclose(np.exp(law.log_sizes()), np.bincount(sizes, P), rtol=1e-10)
    assert law.expected_size == pytest.approx(P @ sizes, rel=1e-12)
    both = np.einsum("s,si,sj->ij", P, HOLDS, HOLDS)
    off_diagonal = ~np.eye(N, dtype=bool)
    np.testing.assert_allclose(law.pairs()[off_diagonal], both[off_diagonal], rtol=1e-10)
    for item in range(N):
        others = off_diagonal[item]
        np.testing.assert_allclose(law.pairs_with(item)[others], both[item, others], rtol=1e-10)
    assert law.inclusion(positions(0, 2, 3)) == pytest.approx(P @ HOLDS[:, [0, 2, 3]].all(axis=1), rel=1e-10)
    for k in range(1, N + 1):
        given_size = np.where(sizes == k, P, 0) / P[sizes == k].sum()
        np.testing.assert_allclose(law.marginals(k), given_size @ HOLDS, rtol=1e-9)


@every_law
def test_the_next_item_is_as_in_the_sets_that_hold_the_basket(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    for basket in ((), (1,), (0, 3), (1, 2, 4)):
        score, chance = law.next_item(positions(*basket))
        inside = HOLDS[:, basket].all(axis=1)
        expected = (P * inside) @ HOLDS / (P @ inside)
        expected[list(basket)] = 0
        np.testing.assert_allclose(chance, expected, rtol=1e-9)
        for i in set(range(N)) - set(basket):
            one = law.next_of(i, [positions(*basket)])
            np.testing.assert_allclose(np.ravel(one), (score[i], chance[i]), rtol=1e-9)
        alone = P[index(basket)]
        if not alone:
            assert np.isnan(score).all()
            continue
        for i in set(range(N)) - set(basket):
            assert score[i] == pytest.approx(P[index([*basket, i])] / alone, rel=1e-9)
        assert not score[list(basket)].any()


@every_law
def test_the_best_next_items_are_those_of_the_highest_score(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    candidate = np.array([True, False, True, True, True])
    for basket in (positions(), positions(1), positions(4, 0), positions(0, 1, 2, 3, 4)):
        score, chance = law.next_item(basket)
        np.testing.assert_allclose(law.scores(basket), score, rtol=1e-12)
        by = chance if np.isnan(score).any() else score
        for k, among in ((2, None), (2, candidate), (N, candidate), (0, None)):
            free = [i for i in range(N) if i not in basket and (among is None or among[i])]
            items, scores, chances = law.best_next(basket, k, among)
            assert items.tolist() == sorted(free, key=lambda i: -by[i])[:k]
            np.testing.assert_allclose(scores, score[items], rtol=1e-9)
            np.testing.assert_allclose(chances, chance[items], rtol=1e-9)


@every_law
def test_of_many_baskets_the_best_next_items_are_those_of_each(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    for k, threads in ((0, 1), (2, 3), (N + 2, 1)):
        found = law.best_next_of_many(ALL, k, threads)
        assert found.items.shape == found.scores.shape == found.probabilities.shape == (len(ALL), k)
        assert found.possible.all()
        for row, subset in enumerate(SUBSETS):
            items, scores, chances = law.best_next(positions(*subset), k)
            assert found.items[row].tolist() == [*items.tolist(), *[-1] * (k - len(items))]
            np.testing.assert_allclose(found.scores[row, : len(items)], scores, rtol=1e-12)
            np.testing.assert_allclose(found.probabilities[row, : len(items)], chances, rtol=1e-12)
            assert np.isnan(found.scores[row, len(items) :]).all()


@every_law
def test_conditioning_gives_the_distribution_of_the_other_items(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    for include, exclude in (((3,), (1,)), ((), (1, 3)), ((0, 4), ())):
        rest, remaining = law.given(positions(*include), positions(*exclude))
        assert remaining.tolist() == [i for i in range(N) if i not in {*include, *exclude}]
        event = HOLDS[:, include].all(axis=1) & ~HOLDS[:, exclude].any(axis=1)  # in the order of the other items
        found = np.exp(rest.log_prob(Baskets.from_lists(subsets(3), n_items=3)))
        np.testing.assert_allclose(found, P[event] / P[event].sum(), rtol=1e-9)


@every_law
def test_restriction_gives_the_distribution_of_the_intersection(family: str, seed: int) -> None:
    law, S = EXAMPLES[family](seed), [4, 0, 2]
    found = np.exp(law.restricted(positions(*S)).log_prob(Baskets.from_lists(subsets(3), n_items=3)))
    expected = np.bincount(HOLDS[:, S] @ [1, 2, 4], probability(law))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@every_law
@pytest.mark.parametrize("k", [None, 2])
def test_draws_have_the_probabilities_of_the_sets(family: str, seed: int, k: int | None) -> None:
    """The same distribution with another seed is rejected."""
    law = EXAMPLES[family](seed)
    drawn = law.sample(N_DRAWS, k, seed, 2)
    few = [law.sample(100, k, rng, threads) for rng, threads in ((seed, 1), (seed, 2), (seed + 1, 1))]
    one, two, other = ([each.tolist() for each in sets] for sets in few)
    assert one == two != other
    P, another = (probability(each) for each in (law, EXAMPLES[family](seed + 7)))
    if k is not None:
        of_size = HOLDS.sum(axis=1) == k
        P, another = (np.where(of_size, each, 0) / each[of_size].sum() for each in (P, another))
    assert p_value(drawn, P) > LEVEL
    assert p_value(drawn, another) < LEVEL


@every_law
def test_greedy_takes_what_raises_the_probability_most_and_says_by_how_much(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    taken, gains = law.greedy(4, positions(2))
    assert taken[0] == 2
    for size in range(1, 4):
        now = P[index(taken[:size])]
        ratio = {i: P[index([*taken[:size], i])] / now for i in set(range(N)) - set(taken[:size].tolist())}
        assert gains[size] == pytest.approx(max(ratio.values()), rel=1e-9)
        assert ratio[int(taken[size])] == pytest.approx(max(ratio.values()), rel=1e-9)


@every_law
def test_greedy_without_a_size_goes_on_as_long_as_the_probability_rises(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    taken, gains = law.greedy(None, positions())
    path = [P[index(taken[:size])] for size in range(len(taken) + 1)]
    assert np.all(np.diff(path) > 0)
    further = [P[index([*taken, i])] for i in set(range(N)) - set(taken.tolist())]
    assert max(further, default=0) <= path[-1]
    for size in range(0 if path[0] else 1, len(taken)):
        assert gains[size] == pytest.approx(path[size + 1] / path[size], rel=1e-9)


@every_law
def test_stored_arrays_give_back_the_law(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    again = from_arrays(law.arrays())
    np.testing.assert_allclose(again.log_prob(ALL, 1), law.log_prob(ALL, 1), rtol=1e-12)
    assert again.possible_sizes == law.possible_sizes


@pytest.mark.parametrize("k", [0, 6, True, 2.0, "2"])
def test_a_size_that_no_set_has_is_refused(k: object) -> None:
    with pytest.raises(InputError, match=r"\b1\b.*\b5\b"):
        EXAMPLES["dense, never empty"](0).check_size(k)
