"""Conditioning and what to add next, against enumeration of all subsets."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from dpplearn.kernels.symmetric.conditioning import conditioned, inclusion_probability, next_item
from hypothesis import given
from hypothesis import strategies as st

from dpplearn import DPP, InputError
from dpplearn.arrays import NO_ITEMS, Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import Exact, every_spectrum, exact, law, rotation
from helpers.strategies import kernels


def positions(items: tuple[int, ...] | list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(items, dtype=np.int64)


def some_events(n_items: int) -> list[tuple[oracle.Subset, oracle.Subset]]:
    """Disjoint sets of up to three items, to be in and to be out, that leave an item: eighty of them, drawn once."""
    events = [
        (A, B)
        for a in range(4)
        for b in range(min(4, n_items - a))
        for A in combinations(range(n_items), a)
        for B in combinations(sorted(set(range(n_items)) - set(A)), b)
    ]
    return [events[i] for i in np.random.default_rng(0).choice(len(events), 80, replace=False)]


def conditional_law(P: Floats, A: oracle.Subset, remaining: list[int]) -> Floats:
    """The enumerated law of what remains, given that A is in and everything else out but what remains."""
    exclude = set(range(len(P).bit_length() - 1)) - set(A) - set(remaining)
    C = oracle.conditional(P, A, exclude)
    return np.array([C[oracle.index([*A, *(remaining[j] for j in Y)])] for Y in oracle.subsets(len(remaining))])


def assert_sizes(kernel: SpectralDPP, P: Floats) -> None:
    """The possible sizes are those that have a probability; whether one below 1e-14 counts, rounding decides."""
    sizes, found = oracle.size_distribution(P), set(kernel.possible_sizes)
    assert set(np.flatnonzero(sizes > 1e-14)) <= found <= set(np.flatnonzero(sizes))


@every_spectrum
def test_given_is_the_enumerated_conditional_law(spectrum: str) -> None:
    truth = exact(spectrum)
    for A, B in some_events(6):
        mass = sum(p for Y, p in zip(truth.subsets, truth.P, strict=True) if {*A} <= {*Y} and not {*B} & {*Y})
        if mass == 0:
            with pytest.raises(InputError):
                conditioned(truth.kernel, positions(A), positions(B))
            continue
        kernel, remaining = conditioned(truth.kernel, positions(A), positions(B))
        assert remaining.tolist() == sorted(set(range(6)) - {*A, *B})
        expected = conditional_law(truth.P, A, remaining.tolist())
        np.testing.assert_allclose(law(DPP(kernel)), expected, rtol=0, atol=1e-11)
        assert_sizes(kernel, expected)


@given(kernels(min_items=2), st.data())
def test_given_is_the_enumerated_conditional_law_of_any_kernel(kernel: SpectralDPP, data: st.DataObject) -> None:
    n = kernel.n_items
    fate = data.draw(st.lists(st.sampled_from(["in", "out", "open"]), min_size=n, max_size=n))
    A = tuple(i for i in range(n) if fate[i] == "in")
    B = tuple(i for i in range(n) if fate[i] == "out")
    if len(A) + len(B) == n:
        return
    P = law(DPP(kernel))
    mass = sum(p for Y, p in zip(oracle.subsets(n), P, strict=True) if {*A} <= {*Y} and not {*B} & {*Y})
    if mass < 1e-9:
        return
    kept, remaining = conditioned(kernel, positions(A), positions(B))
    np.testing.assert_allclose(law(DPP(kept)), conditional_law(P, A, remaining.tolist()), atol=1e-12 / math.sqrt(mass))


@pytest.mark.parametrize(("n_items", "n_ones", "n_zeros"), [(20, 0, 5), (20, 3, 10), (100, 10, 50), (100, 0, 0)])
def test_given_moves_the_possible_sizes_by_what_is_in_and_out_exactly(n_items: int, n_ones: int, n_zeros: int) -> None:
    lam = np.random.default_rng(0).uniform(0.02, 0.98, n_items)
    lam[:n_ones], lam[n_items - n_zeros :] = 1, 0
    kernel = SpectralDPP(lam, rotation(n_items))
    order = np.random.default_rng(1).permutation(n_items)
    for a, b in [(1, 0), (0, 1), (3, 3), (5, 2), (8, 0), (0, 8)]:
        kept, _ = conditioned(kernel, order[:a], order[a : a + b])
        assert kept.possible_sizes == range(max(n_ones - a, 0), min(kernel.rank - a, n_items - a - b) + 1)


def test_an_event_of_probability_1e_12_leaves_six_digits() -> None:
    """By Cholesky factors of K alone there would be four."""
    lam = np.array([0.5, 1e-12, 0.0, 0.0, 0.0, 0.0])
    truth = Exact(lam.tolist())
    for A in combinations(range(6), 2):
        if oracle.marginal(truth.P, A) > 1e-14:
            kernel, remaining = conditioned(truth.kernel, positions(A), NO_ITEMS)
            np.testing.assert_allclose(law(DPP(kernel)), conditional_law(truth.P, A, remaining.tolist()), atol=1e-9)


def test_conditions_one_after_the_other_are_conditions_at_once() -> None:
    for spectrum in ("inside", "two at 1", "all kinds"):
        dpp = exact(spectrum).dpp
        at_once = dpp.given(include=[1, 4], exclude=[0])
        one_by_one = dpp.given(exclude=[0]).given(include=[4]).given(include=[1])
        assert one_by_one.items == at_once.items == (2, 3, 5)
        np.testing.assert_allclose(law(one_by_one), law(at_once), atol=1e-13)


def test_no_condition_is_the_same_dpp() -> None:
    for spectrum in ("inside", "two at 1"):
        truth = exact(spectrum)
        np.testing.assert_allclose(law(truth.dpp.given()), truth.P, atol=1e-14)


def test_an_event_that_cannot_be_is_refused_saying_which() -> None:
    K = np.diag([1.0, 0.0, 0.5, 0.5])
    K[2:, 2:] = 0.5  # the last two are the same item
    dpp = DPP.from_K(K)
    with pytest.raises(InputError):
        dpp.given(include=[1])
    with pytest.raises(InputError):
        dpp.given(exclude=[0])
    with pytest.raises(InputError):
        dpp.given(exclude=[2, 3])
    with pytest.raises(InputError, match=r"\b2\b"):
        dpp.given(include=[0, 1, 2])
    assert dpp.given(include=[2]).items == (0, 1, 3)
    np.testing.assert_array_equal(dpp.given(include=[2]).marginals(), [1, 0, 0])


@every_spectrum
def test_scores_are_ratios_of_probabilities_and_probabilities_conditional_marginals(spectrum: str) -> None:
    truth = exact(spectrum)
    for A in truth.subsets:
        included, p = oracle.marginal(truth.P, A), truth.P[oracle.index(A)]
        assert inclusion_probability(truth.kernel, positions(A)) == pytest.approx(included, rel=1e-9, abs=1e-300)
        if included == 0:
            with pytest.raises(InputError):
                next_item(truth.kernel, positions(A))
            continue
        score, probability = next_item(truth.kernel, positions(A))
        expected = oracle.item_marginals(oracle.conditional(truth.P, A))
        expected[list(A)] = 0
        np.testing.assert_allclose(probability, expected, atol=1e-12)
        np.testing.assert_array_equal(probability == 0, expected == 0)
        others = [i for i in range(6) if i not in A]
        if p == 0:
            assert len(A) < truth.kernel.possible_sizes[0]
            assert np.isnan(score[others]).all()
        elif len(A) >= truth.n_near or p > 1e-16:
            ratios = np.array([truth.P[oracle.index([*A, i])] / p for i in others])
            rtol = 1e-9 if len(A) >= truth.n_near else 1e-2  # P(A) itself has few digits
            np.testing.assert_allclose(score[others], ratios, rtol=rtol)
            np.testing.assert_array_equal(score[others] == 0, ratios == 0)
        np.testing.assert_array_equal(score[list(A)], 0)


@pytest.mark.parametrize("n_ones", [0, 1, 3])
@pytest.mark.parametrize(("n_items", "rank"), [(8, 4), (30, 5), (100, 20)])
def test_nothing_can_be_added_to_a_set_as_large_as_the_rank(n_items: int, rank: int, n_ones: int) -> None:
    lam = np.where(np.arange(n_items) < rank, 0.5, 0)
    lam[:n_ones] = 1
    kernel = SpectralDPP(lam, rotation(n_items))
    for seed in range(20):
        basket = np.random.default_rng(seed).choice(n_items, rank + 1, replace=False)
        score, probability = next_item(kernel, basket[:rank])
        assert not score.any()
        assert not probability.any()
        assert np.all(next_item(kernel, basket[: rank - 1])[0][basket[rank - 1 :]] > 0)
        assert inclusion_probability(kernel, basket) == 0
        with pytest.raises(InputError, match=rf"\b{rank}\b"):
            next_item(kernel, basket)


def test_an_eigenvalue_near_one_beside_large_odds_leaves_every_score() -> None:
    """P(A) is 1e-12 here and the odds of the others 1e5, but it is not zero."""
    truth = Exact([0.3, 0.999, 1 - 2e-5, 1 - 1.5e-5, 1 - 1e-12, 1 - 1e-12])
    for A in truth.subsets:
        score, _ = next_item(truth.kernel, positions(A))
        assert not np.isnan(score).any()
        assert np.count_nonzero(score) == 6 - len(A)


@pytest.mark.parametrize("n_ones", [0, 2])
def test_doubles_have_no_chance_together(n_ones: int) -> None:
    X = np.random.default_rng(0).standard_normal((31, 30))
    X[30] = X[0]
    found = SpectralDPP.from_L(X @ X.T / 30)
    kernel = SpectralDPP(np.where(np.arange(31) < 31 - n_ones, found.eigenvalues, 1), found.eigenvectors)
    for seed in range(20):
        others = np.random.default_rng(seed).choice(np.arange(1, 30), 5, replace=False)
        both, one = np.append(others, [0, 30]), np.append(others, 0)
        assert inclusion_probability(kernel, both) == 0
        assert inclusion_probability(kernel, one) > 0
        score, probability = next_item(kernel, one)
        assert score[30] == probability[30] == 0
        assert np.count_nonzero(score) == np.count_nonzero(probability) == 31 - 7
        kept, remaining = conditioned(kernel, one, others[:0])
        assert remaining[-1] == 30
        assert not kept.K[-1].any()
        with pytest.raises(InputError):
            next_item(kernel, both)
        with pytest.raises(InputError):
            conditioned(kernel, both, others[:0])
