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
from golden import adapter, reference
from golden.compare import assert_answers
from helpers.oracle import membership, subsets

HOLDS, ALL = membership(N), sets_of(subsets(N), N)  # (2^N, N)

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
def test_every_answer_is_the_enumerated_one_also_after_restriction_and_conditioning(name: str) -> None:
    found, P = example(name)

    def compare(distribution: SetDistribution, P: Floats) -> None:
        sets = membership(distribution.n_items)
        baskets = sets[reference.inclusion(P, sets) > 0]
        assert_answers(adapter.answers(distribution, sets, baskets), reference.answers(P, sets, baskets))

    compare(found, P)
    S = np.array([4, 0, 2])
    compare(found.restrict(S), reference.restrict(P, S))
    for include, exclude in (([3], [1]), ([], [1, 3]), ([0, 4], [])):
        rest, remaining = found.condition(np.array(include, np.int64), np.array(exclude, np.int64))
        assert remaining.tolist() == [i for i in range(N) if i not in {*include, *exclude}]
        compare(rest, reference.condition(P, *(np.isin(range(N), each) for each in (include, exclude))))


@every_example
def test_candidates_and_threads_select_the_answers(name: str) -> None:
    found, _ = example(name)
    scores, probabilities = found.next_items(ALL)
    for some, every in zip(found.next_items(ALL, np.tile([3, 1], (len(ALL), 1))), (scores, probabilities), strict=True):
        np.testing.assert_allclose(some, every[:, [3, 1]], rtol=1e-9)
    ranked = found.top_next(ALL, N).items
    for k, candidate, threads in ((0, None, 1), (2, None, 3), (N + 2, np.arange(N) != 1, 1)):
        best = found.top_next(ALL, k, candidate, threads)
        assert best.items.shape == best.scores.shape == best.probabilities.shape == (len(ALL), k)
        for row, items in zip(best.items.tolist(), ranked.tolist(), strict=True):
            expected = [i for i in items if i >= 0 and (candidate is None or candidate[i])][:k]
            assert row == [*expected, *[-1] * (k - len(expected))]
    pairs = found.pair_marginals()
    np.testing.assert_allclose(found.pair_marginals(np.array([3])), pairs[[3]], rtol=1e-10)


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
