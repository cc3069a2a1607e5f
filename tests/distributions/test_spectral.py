"""SpectralDPP: the contract of components for all kinds of spectra, and what only this kind has."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import permutations

import numpy as np
import pytest

from distributions.contract import CHECKS, Case
from dpplearn.arrays import NO_ITEMS, Ints
from dpplearn.distributions.components import sets_of
from dpplearn.distributions.spectral import SpectralDPP
from helpers.oracle import subsets
from helpers.spectra import SPECTRA, Exact, Rational, eliminated, exact_table, rotation


def spectrum(lam: Sequence[float]) -> Case:
    """Eigenvalues with dense eigenvectors that are known exactly."""
    truth = Exact(lam)
    return Case(truth.kernel, truth.P[None])


def of_K(K: Rational) -> Case:
    return Case(SpectralDPP.from_K(K.astype(float)), exact_table(K)[None])


def diagonal(p: Sequence[float]) -> Case:
    return of_K(np.diag([Fraction(x) for x in p]))


def near_duplicates(apart: Fraction) -> Case:
    """L = B Bᵀ, from its factor. The last two items are the first two, or have rows at this distance from them."""
    B = np.random.default_rng(1).integers(-4, 5, (5, 6)) * Fraction(1, 4)
    B[3:] = B[:2]
    B[[3, 4], [3, 4]] += apart
    L = B @ B.T
    table = exact_table(L @ eliminated(L + np.eye(5, dtype=int))[1])
    return Case(SpectralDPP.from_factor(B.astype(float)), table[None], 1e-6 if apart else 1e-9, atol=1e-13)


def certain_and_independent() -> Case:
    """An item in every set, one in none, and two that exclude each other and of which every set has one."""
    half = Fraction(1, 2)
    K = np.diag([half, half, Fraction(3, 10), Fraction(1), Fraction(0)])
    K[0, 1] = K[1, 0] = half
    return of_K(K)


CASES: dict[str, Callable[[], Case]] = {
    **{name: partial(spectrum, lam) for name, lam in SPECTRA.items() if 1 - 1e-12 not in lam},
    "rank two of eight": lambda: spectrum([0, 0, 0, 0, 0, 0, 0.5, 0.9]),
    "diagonal": lambda: diagonal([0.1, 0.5, 0.9, 0.25, 0.75]),
    "diagonal with 0 and 1": lambda: diagonal([0.1, 0.0, 1.0, 0.25]),
    "one item": lambda: diagonal([0.25]),
    "certain and independent items": certain_and_independent,
    "exact duplicates": lambda: near_duplicates(Fraction(0)),
    "near duplicates": lambda: near_duplicates(Fraction(1, 10**5)),
}


@cache
def case_of(name: str) -> Case:
    return CASES[name]()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", CASES)
def test_contract(name: str, check: Callable[[Case], None]) -> None:
    check(case_of(name))


EIGENVALUES = {"away from 1": [], "near 1": [1 - 1e-7, 1 - 1e-12], "at 1": [1.0, 1.0]}
every_border = pytest.mark.parametrize("border", EIGENVALUES)
NO_MASS = np.zeros(1)


def with_border(dpp: SpectralDPP, border: str) -> SpectralDPP:
    """The largest eigenvalues replaced."""
    lam, values = dpp.eigenvalues.copy(), EIGENVALUES[border]
    lam[np.argsort(lam)[len(lam) - len(values) :]] = values
    return SpectralDPP(lam, dpp.eigenvectors)


def possible_everywhere(dpp: SpectralDPP, sets: list[Ints]) -> list[list[bool]]:
    """Whether each set is possible according to each method; the last item is adjoined or remains."""
    whole = sets_of(sets, dpp.n_items)
    last, start = [each[-1] for each in sets], sets_of([each[:-1] for each in sets], dpp.n_items)
    rows = np.arange(len(sets))
    answers = [
        np.isfinite(dpp.log_prob(whole)[:, 0]),
        np.isfinite(dpp.log_inclusion(whole)[:, 0]),
        dpp.next(False, NO_MASS, start)[2][rows, last] > 0,
        dpp.next(True, NO_MASS, start)[2][rows, last] > 0,
    ]
    conditioned = []
    for each in sets:
        _, rest = dpp.condition(each[:-1], NO_ITEMS)
        conditioned.append(rest.marginals()[0, each[-1] - np.count_nonzero(each[:-1] < each[-1])] > 0)
    return [answer.tolist() for answer in answers] + [[bool(each) for each in conditioned]]


@every_border
@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("k", [3, 10])
def test_duplicates_are_never_together_and_near_duplicates_are(n: int, k: int, border: str) -> None:
    rng, quarter = np.random.default_rng(0), n // 4
    X, step = rng.standard_normal((n, 2 * n)), rng.standard_normal((quarter, 2 * n))
    others = np.arange(quarter, n - quarter)
    sets = [np.array([i, *rng.choice(others, k - 2, replace=False), n - quarter + i]) for i in range(5)]
    for apart, possible in ((0.0, False), (1e-13, True), (1e-6, True)):
        X[-quarter:] = X[:quarter] + math.sqrt(apart) * step
        dpp = with_border(SpectralDPP.from_factor(X / math.sqrt(2 * n)), border)
        assert possible_everywhere(dpp, sets) == [[possible] * 5] * 5


@every_border
@pytest.mark.parametrize("order", list(permutations([0, 4, 5])), ids=str)
def test_three_dependent_items_are_never_together(order: tuple[int, ...], border: str) -> None:
    """The row of one is that of another plus 1e-6 times that of the third, so any two are possible."""
    X = np.random.default_rng(0).standard_normal((30, 60)) / 8
    X[order[2]] = X[order[0]] + 1e-6 * X[order[1]]
    dpp = with_border(SpectralDPP.from_factor(X), border)
    sets = [np.array([*each, 9]) for each in permutations([0, 4, 5])] + [np.array(each) for each in permutations(order)]
    assert possible_everywhere(dpp, sets) == [[False] * 12] * 5
    assert np.isfinite(dpp.log_inclusion(sets_of([each[:2] for each in sets[6:]], 30))).all()


@pytest.mark.parametrize("n_ones", [0, 2])
@pytest.mark.parametrize(("n", "rank"), [(8, 4), (30, 5), (100, 20)])
def test_no_set_is_larger_than_the_rank_before_and_after_conditioning(n: int, rank: int, n_ones: int) -> None:
    lam = np.where(np.arange(n) < rank, 0.5, 0)
    lam[:n_ones] = 1
    rng = np.random.default_rng(0)
    whole = SpectralDPP(lam, rotation(n))
    for dpp, smallest, largest in (
        (whole, n_ones, rank),
        (whole.condition(np.array([1]), NO_ITEMS)[1], max(n_ones - 1, 0), rank - 1),
        (whole.condition(np.array([1, 4]), np.array([2]))[1], max(n_ones - 2, 0), rank - 2),
        (whole.tilt(np.r_[-np.inf, rng.standard_normal(n - 1)])[1], n_ones, rank),
    ):
        assert dpp.size_range == range(smallest, largest + 1)
        items = [1 + rng.permutation(dpp.n_items - 1)[: largest + 1] for _ in range(5)]
        assert possible_everywhere(dpp, items) == [[False] * 5] * 5
        assert possible_everywhere(dpp, [each[:-1] for each in items]) == [[True] * 5] * 5


@pytest.mark.parametrize("name", ["inside", "two at 0", "two at 1", "three at 1, three at 0", "diagonal"])
@pytest.mark.parametrize("spread", [20, 700])
def test_tilts_of_very_different_odds_are_exact(name: str, spread: float) -> None:
    case, rng = case_of(name), np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        log_table = np.log(case.table[0])
    for _ in range(20):
        g = rng.uniform(-spread, spread, case.n)
        expected = np.logaddexp.reduce(log_table + case.holds @ g)
        evidence, tilted = case.components.tilt(g)
        assert evidence[0] == pytest.approx(expected, rel=1e-12, abs=1e-10)
        marginals = np.exp(log_table + case.holds @ g - expected) @ case.holds
        np.testing.assert_allclose(tilted.marginals()[0], marginals, atol=1e-10)
        assert tilted.size_range.start == case.components.size_range.start


def test_a_certain_part_stays_certain_given_an_event_of_small_probability() -> None:
    """P(exclude ∩ Y = ∅) is 1e-12, so rounding of eigenvalues grows to 1e-4 of their distance from 1."""
    case = spectrum([0, 0.3, 0.5, 1 - 1e-12, 1, 1])
    for first in range(6):
        for second in range(first):
            exclude = np.array([second, first])
            assert case.components.condition(NO_ITEMS, exclude)[1].size_range.start == 2
            assert case.components.tilt(np.where(np.isin(range(6), exclude), -np.inf, 1.0))[1].size_range.start == 2
            assert case.components.condition(exclude[:1], exclude[1:])[1].size_range.start == 1


def test_an_event_of_probability_1e_12_leaves_six_digits() -> None:
    """By Cholesky factors of K alone there would be four."""
    case = spectrum([0.5, 1e-12, 0.0, 0.0, 0.0, 0.0])
    for A in ([0, 1], [0, 4], [2, 5], [3, 4]):
        evidence, rest = case.components.condition(np.array(A), NO_ITEMS)
        assert np.exp(evidence[0]) == pytest.approx(case.including(A)[0], rel=1e-6)
        np.testing.assert_allclose(rest.marginals(), 0, atol=1e-9)


def test_an_eigenvalue_near_one_next_to_large_odds_leaves_every_score() -> None:
    """P(A) is 1e-12 here and the odds of the others are 1e5, but it is not zero."""
    dpp = spectrum([0.3, 0.999, 1 - 2e-5, 1 - 1.5e-5, 1 - 1e-12, 1 - 1e-12]).components
    log_p, _, x = dpp.next(False, NO_MASS, sets_of(subsets(6), 6))
    assert np.isfinite(log_p).all()
    assert np.count_nonzero(x, axis=1).tolist() == [6 - len(A) for A in subsets(6)]


def test_next_items_and_conditioning_agree_given_nearly_identical_items() -> None:
    """Given {0, 5}, which are 1e-6 apart, K has lost twelve of its sixteen digits; both use the factor."""
    X = np.random.default_rng(0).standard_normal((30, 60)) / 8
    X[5] = X[0] + 1e-6 * X[4]
    X[4] += 0.1 * X[7]
    dpp, A = SpectralDPP.from_factor(X), np.array([0, 5])
    log_p, scale, x = dpp.next(True, NO_MASS, sets_of([A], 30))
    probability = np.exp(scale - log_p[:, 0]) * x[0]
    np.testing.assert_allclose(dpp.condition(A, NO_ITEMS)[1].marginals()[0], np.delete(probability, A), rtol=1e-5)
    assert 1e-3 < probability[4] < 1e-2


def test_log_probabilities_far_below_the_smallest_float_are_finite() -> None:
    n = 60
    dpp = SpectralDPP(np.full(n, 1e-12), rotation(n))
    everything = sets_of([np.arange(n)], n)
    assert dpp.log_prob(everything)[0, 0] == pytest.approx(n * math.log(1e-12), rel=1e-9)
    assert dpp.log_inclusion(everything)[0, 0] == pytest.approx(n * math.log(1e-12), rel=1e-9)
    log_prob, scale, x = dpp.next(False, NO_MASS, sets_of([np.arange(n - 1)], n))
    assert scale[0] + math.log(x[0, -1]) == pytest.approx(n * math.log(1e-12), rel=1e-9)
    assert not x[0, :-1].any()
    assert math.isfinite(log_prob[0, 0])
