"""The statistics against explicit determinants and inverses, in rational arithmetic where eigenvalues are near 1."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpplearn import Baskets
from dpplearn.arrays import EPSILON, Floats
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.distributions.statistics import log_likelihood, mean_log_likelihood, statistics, sums_under_L
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.symmetric.em import e_step
from dpplearn.learners.symmetric.problem import gradient_in_K
from golden.reference import elementary
from helpers import oracle
from helpers.parts import in_parts
from helpers.problems import N_ITEMS, PROBLEMS, random_kernel, random_low_rank, random_mixture
from helpers.spectra import Exact, eliminated, every_spectrum, exact, minus_outside, rotation

# A set with fewer items than eigenvalues near 1 has its probability from 1 − λ, of which rounding leaves few digits,
# and below this none.
TINY = 1e-16

EACH_PATH = [2, 3, 10, 11, 101]  # straight-line code, loops

BORDERS = {"away from 1": [], "near 1": [1 - 1e-7], "at 1": [1.0, 1.0]}
with_and_without_border = pytest.mark.parametrize("border", BORDERS)


def kernel_of(n_items: int, border: str = "away from 1", seed: int = 0) -> SpectralDPP:
    """Eigenvalues in (0.05, 0.9), but for those of a border."""
    lam = np.random.default_rng(seed).uniform(0.05, 0.9, n_items)
    lam[: len(BORDERS[border])] = BORDERS[border]
    return SpectralDPP(lam, rotation(n_items, seed))


def logdet_of(L: Floats, baskets: Baskets, threads: int | None = None) -> float:
    """Σ w log det L_Y, by the pass without Delta."""
    return sums_under_L(L, baskets, threads, want_delta=False)[0]


def log_prob(kernel: SpectralDPP, baskets: Baskets) -> Floats:
    return kernel.log_prob(baskets)[:, 0]


def random_baskets(n_items: int, sizes: list[int], each: int, seed: int = 0) -> Baskets:
    """`each` sets of every size, with random weights, in random order."""
    rng = np.random.default_rng(seed)
    sets = [rng.choice(n_items, size, replace=False) for size in sizes for _ in range(each)]
    rng.shuffle(sets)  # type: ignore[arg-type]
    return Baskets.from_lists([sorted(Y.tolist()) for Y in sets], n_items=n_items, weights=rng.random(len(sets)))


def explicit(E: Floats, n_border: int, baskets: Baskets) -> tuple[float, Floats]:
    """Σ w log|det E_Y∪border| and Σ w B (E_Y∪border)⁻¹ Bᵀ."""
    logdet, delta = 0.0, np.zeros_like(E)
    for Y, weight in zip(baskets, baskets.weights, strict=True):
        members = np.array([*Y, *range(len(E) - n_border, len(E))], dtype=int)
        minor = E[np.ix_(members, members)]
        logdet += weight * np.linalg.slogdet(minor)[1]
        delta[np.ix_(members, members)] += weight * np.linalg.inv(minor)
    return logdet, delta


@with_and_without_border
@pytest.mark.parametrize(
    ("sizes", "each"),
    [(range(8), 30), *((range(14), each) for each in (0, 1, 3, 4, 5)), ([31, 32, 40], 30), ([100, 101, 110], 9)],
    ids=str,
)
def test_weight_logdet_and_delta_are_the_explicit_sums(border: str, sizes: list[int], each: int) -> None:
    """For sizes of every loop, and numbers of sets that do and do not fill the lanes."""
    n_items = 60 if max(sizes) < 60 else 120
    kernel = kernel_of(n_items, border)
    sizes = [size for size in sizes if size in kernel.size_range]
    baskets = random_baskets(n_items, sizes, each)
    stats = statistics(kernel, baskets)
    logdet, delta = explicit(kernel.bordered.matrix, kernel.bordered.n_border, baskets)
    assert stats.weight == pytest.approx(baskets.weights.sum(), rel=1e-14)
    assert stats.logdet == pytest.approx(logdet, rel=1e-12)
    atol = 1e-11 * np.abs(delta).max(initial=1)
    np.testing.assert_allclose(stats.delta, delta, rtol=0, atol=atol)
    if not kernel.bordered.n_border:
        logdet_under_L, delta_under_L = sums_under_L(kernel.L, baskets)
        assert logdet_under_L == pytest.approx(logdet, rel=1e-12)
        assert logdet_of(kernel.L, baskets) == pytest.approx(logdet_under_L, rel=1e-14)
        np.testing.assert_allclose(delta_under_L, delta, rtol=0, atol=atol)
        np.testing.assert_array_equal(delta_under_L, delta_under_L.T)


@every_spectrum
def test_log_probabilities_are_exact_and_minus_infinity_exactly_where_a_set_is_impossible(spectrum: str) -> None:
    truth = exact(spectrum)
    found = log_prob(truth.kernel, Baskets.from_lists(truth.subsets, n_items=6))
    for Y, log_p, p in zip(truth.subsets, found, truth.P, strict=True):
        if p == 0:
            assert log_p == -np.inf
        elif len(Y) >= truth.n_near:
            assert log_p == pytest.approx(math.log(p), abs=1e-12)
        elif p > TINY:
            assert log_p == pytest.approx(math.log(p), abs=1e-2)
        else:
            assert log_p < math.log(2 * TINY)
    sets = possible(truth, rare=False)
    weights = np.random.default_rng(0).uniform(0, 2, len(sets))
    baskets = Baskets.from_lists(sets, n_items=6, weights=weights)
    expected = oracle.log_likelihood(truth.P, sets, weights.tolist())
    assert log_likelihood(truth.kernel, statistics(truth.kernel, baskets)) == pytest.approx(expected, rel=1e-12)
    assert mean_log_likelihood(truth.kernel, baskets) == pytest.approx(expected, rel=1e-12)


def possible(truth: Exact, *, rare: bool) -> list[oracle.Subset]:
    """The possible sets that lack items for all the eigenvalues near 1, or those that do not."""
    sets = [Y for Y, p in zip(truth.subsets, truth.P, strict=True) if p > (TINY if rare else 0)]
    return [Y for Y in sets if (len(Y) < truth.n_near) == rare]


@every_spectrum
def test_the_gradient_in_K_is_the_inverse_of_K_minus_the_outside_and_the_e_step_the_enumerated_one(
    spectrum: str,
) -> None:
    """Sets that only eigenvalues of almost 1 allow keep two digits."""
    truth = exact(spectrum)
    kernel, V = truth.kernel, truth.kernel.eigenvectors
    joint = elementary(kernel.eigenvalues, V)
    for rare, atol in ((False, 1e-12), (True, 1e-2)):
        for Y in possible(truth, rare=rare):
            stats = statistics(kernel, Baskets.from_lists([Y], n_items=6))
            inverse = eliminated(minus_outside(truth.K, Y))[1].astype(float)
            gradient = V @ gradient_in_K(kernel, stats) @ V.T
            np.testing.assert_allclose(gradient, inverse, rtol=0, atol=atol * np.abs(inverse).max())
            marginals = oracle.item_marginals(oracle.posterior(joint, Y))
            np.testing.assert_allclose(e_step(kernel, stats).diagonal(), marginals, atol=atol)


@with_and_without_border
def test_sums_repeat_to_the_last_bit_for_a_number_of_threads_and_are_equal_for_any(border: str) -> None:
    kernel, L = kernel_of(50, border), definite_L(50)
    baskets = random_baskets(50, [0, 1, 2, 5, 10, 20, 30, 36, 40], each=151)  # enough work for five threads

    def sums(threads: int) -> list[Any]:
        found = statistics(kernel, baskets, threads)
        under_L = (*sums_under_L(L, baskets, threads), logdet_of(L, baskets, threads))
        return [found.weight, found.logdet, found.delta, *under_L]

    alone = sums(1)
    for threads in (1, 2, 5):
        for first, again, expected in zip(sums(threads), sums(threads), alone, strict=True):
            np.testing.assert_array_equal(again, first)
            np.testing.assert_allclose(first, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@with_and_without_border
def test_an_impossible_basket_makes_the_logdet_minus_infinity_unless_its_weight_is_zero(border: str) -> None:
    kernel = SpectralDPP(np.where(np.arange(12) < 8, kernel_of(12, border).eigenvalues, 0), rotation(12))
    sets = [sorted(Y) for Y in random_baskets(12, [3, 4, 5], each=4)]
    counted, more = Baskets.from_lists(sets, n_items=12), [*sets, range(9), range(12)]
    possible_ones = statistics(kernel, counted)
    silent = Baskets.from_lists(more, n_items=12, weights=[1] * len(sets) + [0, 0])
    found = statistics(kernel, silent)
    assert found.weight == len(sets)
    assert found.logdet == pytest.approx(possible_ones.logdet, rel=1e-12)
    np.testing.assert_allclose(found.delta, possible_ones.delta, rtol=1e-12)
    assert mean_log_likelihood(kernel, silent) == pytest.approx(mean_log_likelihood(kernel, counted), rel=1e-14)
    stats = statistics(kernel, Baskets.from_lists(more, n_items=12, weights=[1.0] * len(sets) + [0.25, 0.5]))
    assert stats.logdet == log_likelihood(kernel, stats) == -np.inf
    assert stats.weight == len(sets) + 0.75
    np.testing.assert_allclose(stats.delta, possible_ones.delta, rtol=1e-13)


def test_determinants_and_inverses_of_nearly_identical_items_keep_their_digits() -> None:
    """L_Y = [[1, c], [c, 1]] with 1 − c² = δ: log det is log δ and the inverse has entries ±1/δ."""
    for apart in (1e-10, 1e-13):
        angle = math.sqrt(apart)
        X = np.array([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        pivot = math.sin(angle) ** 2
        for kernel, digits in ((SpectralDPP.from_factor(X), 1e-9), (SpectralDPP.from_L(X @ X.T), 8 * EPSILON / apart)):
            stats = statistics(kernel, Baskets.from_lists([[0, 1]], n_items=2))
            assert stats.logdet == pytest.approx(math.log(pivot), abs=digits)
            rtol = max(digits, math.sqrt(EPSILON) / angle)
            np.testing.assert_allclose(stats.delta * pivot, X @ X.T * [[1, -1], [-1, 1]], rtol=rtol)


@pytest.mark.parametrize("k", [30, 32, 33, 38])
def test_a_determinant_below_what_a_float_can_hold_keeps_its_logarithm(k: int) -> None:
    """Of 1e-30 · A the determinant of 30 items is 1e-900; of items that are alike, the pivots' product underflows."""
    X = np.random.default_rng(0).standard_normal((40, 80))
    A = X @ X.T / 80
    baskets = Baskets.from_lists([range(k)], n_items=40)
    expected = k * math.log(1e-30) + np.linalg.slogdet(A[:k, :k])[1]
    stats = statistics(SpectralDPP.from_L(1e-30 * A), baskets)
    assert stats.logdet == pytest.approx(expected, rel=1e-13)
    inverse = np.linalg.inv(1e-30 * A[:k, :k])
    np.testing.assert_allclose(stats.delta[:k, :k], inverse, rtol=0, atol=1e-12 * np.abs(inverse).max())
    alike = SpectralDPP.from_L(np.ones((40, 40)) + 1e-11 * np.eye(40))
    expected = (k - 1) * math.log(1e-11) + math.log(k)
    assert log_prob(alike, baskets)[0] - alike.bordered.log_constant == pytest.approx(expected, abs=1e-2)


def definite_L(n_items: int, seed: int = 0) -> Floats:
    X = np.random.default_rng(seed).standard_normal((n_items, 2 * n_items))
    return X @ X.T / n_items


@pytest.mark.parametrize("k", EACH_PATH)
def test_a_pivot_below_rounding_size_relative_to_its_item_makes_a_set_impossible(k: int) -> None:
    """The last pivot is δ of its L_ii. What is possible beside it is not disturbed."""
    n_items = k + 1
    scale = 10 ** np.random.default_rng(0).uniform(-6, 6, n_items)
    for delta, possible in ((8 * k * EPSILON, True), (k * EPSILON / 4, False)):
        C = np.eye(n_items)
        C[0, k - 1] = C[k - 1, 0] = math.sqrt(1 - delta)
        L = C * np.outer(scale, scale)
        sets = [list(range(k)), list(range(1, k + 1))]
        baskets = Baskets.from_lists(sets, n_items=n_items, weights=[2, 1])
        logdet, found = sums_under_L(L, baskets)
        assert logdet_of(L, baskets) == pytest.approx(logdet, rel=1e-13)
        if possible:
            expected = 2 * math.log(delta) + 2 * (2 * np.log(scale[:k])).sum() + (2 * np.log(scale[1:])).sum()
            assert logdet == pytest.approx(expected, abs=2)
        else:
            assert logdet == -np.inf
            np.testing.assert_allclose(found, explicit(L, 0, baskets.subset([1]))[1], rtol=1e-12)


@pytest.mark.parametrize("k", [1, *EACH_PATH])
def test_a_set_with_an_entry_that_cannot_be_is_impossible_and_the_others_are_not_disturbed(k: int) -> None:
    """An entry of the diagonal, and one of a pair."""
    of_item, of_pair = (0.0, -1.0, np.nan, np.inf), (np.nan, np.inf, -np.inf, *[1e3] * (k > 1))
    for other, entry in (*((k, each) for each in of_item), *((1, each) for each in of_pair)):
        L = definite_L(k + 3)
        if entry == 0:
            L[k] = 0
            L[:, k] = 0
        L[other, k] = L[k, other] = entry
        with_it, without = range(1, k + 1), range(k)
        sets, weights = [with_it, without, with_it, without, without], np.arange(1.0, 6)
        baskets = Baskets.from_lists(sets, n_items=k + 3, weights=weights)
        logdet, delta = sums_under_L(L, baskets)
        assert logdet == logdet_of(L, baskets) == -np.inf
        possible_ones = baskets.subset([1, 3, 4])
        expected = explicit(L, 0, possible_ones)
        np.testing.assert_allclose(delta, expected[1], rtol=0, atol=1e-12 * np.abs(delta).max())
        silent = Baskets.from_lists(sets, n_items=k + 3, weights=weights * [0, 1, 0, 1, 1])
        assert sums_under_L(L, silent)[0] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        assert logdet_of(L, silent) == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(sums_under_L(L, silent)[1], delta, rtol=1e-14)


def test_sums_over_parts_are_those_of_the_whole() -> None:
    """Statistics with and without a border, and mean log-likelihoods under kernels of every kind."""
    kernel = random_kernel(np.random.default_rng(0))
    certain = SpectralDPP(np.append(kernel.eigenvalues[:-1], 1.0), kernel.eigenvectors)
    nonempty, others = distribution_of(kernel, nonempty=True), (random_mixture(3), random_low_rank(3))
    distributions = (nonempty, *map(distribution_of, others))

    def sums(baskets: AnyBaskets) -> list[Any]:
        means = [each.mean_log_likelihood(baskets) for each in distributions]
        stats = vars(statistics(certain, baskets)).values()
        return [*stats, *sums_under_L(kernel.L, baskets), mean_log_likelihood(certain, baskets), *means]

    for problem in (baskets for baskets in PROBLEMS.values() if baskets.n_items == N_ITEMS):
        for found, expected in zip(sums(in_parts(problem)), sums(problem), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    rank_one = SpectralDPP.from_factor(np.ones((N_ITEMS, 1)))
    parts = in_parts(Baskets.from_lists([[0], [1], [2], [3], [0, 1]], n_items=N_ITEMS))
    assert statistics(rank_one, parts).weight == 5
    assert statistics(rank_one, parts).logdet == mean_log_likelihood(rank_one, parts) == -np.inf
    assert sums_under_L(rank_one.L, parts)[0] == -np.inf


def test_compiled_loops_may_be_loaded_by_several_threads_at_once() -> None:
    """Without a lock they may wait for one another for ever."""
    code = """
from concurrent.futures import ThreadPoolExecutor
import dpplearn as dl
from dpplearn.distributions.spectral import SpectralDPP
kernels = [SpectralDPP.from_K([[0.5, 0.1], [0.1, 0.5]]), SpectralDPP.from_K([[1.0, 0], [0, 0.5]])]
def use(number): return dl.DPP(kernels[number % 2]).log_prob([0]), dl.DPP(kernels[0]).sample(2, rng=0)
print(len(list(ThreadPoolExecutor(8).map(use, range(16)))))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout.strip() == "16"
