"""What every family of kernels must answer, against enumeration of all subsets."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from scipy.stats import chi2

from distributions.examples import EXAMPLES, Law, N, from_arrays
from dpplearn import Baskets, InputError

SUBSETS = list(chain.from_iterable(combinations(range(N), size) for size in range(N + 1)))
HOLDS = np.array([[i in subset for i in range(N)] for subset in SUBSETS])  # (2^N, N)
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


def probability(law: Law) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
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
        alone = P[SUBSETS.index(basket)]
        if not alone:
            assert np.isnan(score).all()
            continue
        for i in set(range(N)) - set(basket):
            assert score[i] == pytest.approx(P[SUBSETS.index(tuple(sorted((*basket, i))))] / alone, rel=1e-9)
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
@pytest.mark.parametrize("threads", [1, 3])
def test_of_many_baskets_the_best_next_items_are_those_of_each(family: str, seed: int, threads: int) -> None:
    law = EXAMPLES[family](seed)
    for k in (0, 2, N + 2):
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
def test_what_is_given_leaves_the_law_of_the_rest(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    rest, remaining = law.given(positions(3), positions(1))
    assert remaining.tolist() == [0, 2, 4]
    possible = HOLDS[:, 3] & ~HOLDS[:, 1]
    for subset in chain.from_iterable(combinations(range(3), size) for size in range(4)):
        whole = tuple(sorted((3, *(int(remaining[i]) for i in subset))))
        found = rest.log_prob(Baskets.from_lists([subset], n_items=3))[0]
        assert np.exp(found) == pytest.approx(P[SUBSETS.index(whole)] / P[possible].sum(), rel=1e-9)


@every_law
def test_restricted_to_some_items_it_is_the_law_of_what_is_seen_of_them(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P, S = probability(law), [4, 0, 2]
    seen = law.restricted(positions(*S))
    for subset in chain.from_iterable(combinations(range(3), size) for size in range(4)):
        shown = np.isin(np.arange(3), subset)
        found = seen.log_prob(Baskets.from_lists([subset], n_items=3))[0]
        assert np.exp(found) == pytest.approx(P[(HOLDS[:, S] == shown).all(axis=1)].sum(), rel=1e-9)


@every_law
@pytest.mark.parametrize("k", [None, 2])
def test_draws_have_the_probabilities_of_the_sets(family: str, seed: int, k: int | None) -> None:
    law, n = EXAMPLES[family](seed), 20_000
    P = probability(law)
    if k is not None:
        P = np.where(HOLDS.sum(axis=1) == k, P, 0) / P[HOLDS.sum(axis=1) == k].sum()
    drawn = [SUBSETS.index(tuple(each.tolist())) for each in law.sample(n, k, seed, 2)]
    assert drawn == [SUBSETS.index(tuple(each.tolist())) for each in law.sample(n, k, seed, 1)]
    counts = np.bincount(drawn, minlength=len(P))
    assert not counts[P == 0].any()

    def distance(law_of_sets: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        often = law_of_sets * n >= 5
        expected = n * law_of_sets[often]
        return float(((counts[often] - expected) ** 2 / expected).sum())

    assert distance(P) < chi2.isf(1e-6, np.count_nonzero(P))
    another = probability(EXAMPLES[family](seed + 7))
    if k is not None:
        another = np.where(P > 0, another, 0) / another[P > 0].sum()
    assert distance(another) > chi2.isf(1e-6, np.count_nonzero(P))


@every_law
def test_greedy_takes_what_raises_the_probability_most_and_says_by_how_much(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    taken, gains = law.greedy(4, positions(2))
    assert taken[0] == 2
    for size in range(1, 4):
        now = P[SUBSETS.index(tuple(sorted(taken[:size].tolist())))]
        ratio = {
            i: P[SUBSETS.index(tuple(sorted([*taken[:size].tolist(), i])))] / now
            for i in set(range(N)) - set(taken[:size].tolist())
        }
        assert gains[size] == pytest.approx(max(ratio.values()), rel=1e-9)
        assert ratio[int(taken[size])] == pytest.approx(max(ratio.values()), rel=1e-9)


@every_law
def test_greedy_without_a_size_goes_on_as_long_as_the_probability_rises(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    taken, gains = law.greedy(None, positions())
    path = [P[SUBSETS.index(tuple(sorted(taken[:size].tolist())))] for size in range(len(taken) + 1)]
    assert np.all(np.diff(path) > 0)
    further = [P[SUBSETS.index(tuple(sorted([*taken.tolist(), i])))] for i in set(range(N)) - set(taken.tolist())]
    assert max(further, default=0) <= path[-1]
    for size in range(0 if path[0] else 1, len(taken)):
        assert gains[size] == pytest.approx(path[size + 1] / path[size], rel=1e-9)


@every_law
def test_given_only_what_is_out_it_is_the_law_of_the_others(family: str, seed: int) -> None:
    law = EXAMPLES[family](seed)
    P = probability(law)
    rest, remaining = law.given(positions(), positions(1, 3))
    possible = ~HOLDS[:, [1, 3]].any(axis=1)
    for subset in chain.from_iterable(combinations(range(3), size) for size in range(4)):
        whole = tuple(int(remaining[i]) for i in subset)
        found = rest.log_prob(Baskets.from_lists([subset], n_items=3))[0]
        assert np.exp(found) == pytest.approx(P[SUBSETS.index(whole)] / P[possible].sum(), rel=1e-9)


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
