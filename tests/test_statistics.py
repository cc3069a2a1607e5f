"""The statistics against explicit determinants and inverses, in rational arithmetic where eigenvalues are near 1."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import oracle
from dpplearn import Baskets, InputError, Kernel, Statistics, statistics, sum_statistics
from dpplearn.arrays import Floats
from dpplearn.learners.ascent import gradient
from dpplearn.learners.em import posterior
from dpplearn.statistics import log_determinants, log_likelihood, log_probabilities, mean_log_likelihood
from test_kernel import Exact, eliminated, every_spectrum, exact, floats, rotation

statistics_module = importlib.import_module("dpplearn.statistics")  # the package has a function of that name

# A set with fewer items than eigenvalues near 1 has its probability from 1 − λ, of which rounding leaves few digits,
# and below this none.
TINY = 1e-16

BORDERS = {"away from 1": [], "near 1": [1 - 1e-7], "at 1": [1.0, 1.0]}
with_and_without_border = pytest.mark.parametrize("border", BORDERS)


def kernel_of(n_items: int, border: str = "away from 1", seed: int = 0) -> Kernel:
    """Eigenvalues in (0.05, 0.9), but for those of a border."""
    lam = np.random.default_rng(seed).uniform(0.05, 0.9, n_items)
    lam[: len(BORDERS[border])] = BORDERS[border]
    return Kernel(lam, rotation(n_items, seed))


def with_doubles(border: str) -> Kernel:
    """Items 60 to 79 are items 0 to 19 again."""
    X = np.random.default_rng(0).standard_normal((80, 60))
    X[60:] = X[:20]
    kernel = Kernel.from_L(X @ X.T / 60)
    lam = kernel.eigenvalues.copy()
    lam[len(lam) - len(BORDERS[border]) :] = BORDERS[border]
    return Kernel(lam, kernel.eigenvectors)


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


def assert_equal(one: Statistics, other: Statistics, rtol: float = 1e-12) -> None:
    assert one.weight == pytest.approx(other.weight, rel=rtol)
    assert one.logdet == pytest.approx(other.logdet, rel=rtol)
    assert one.impossible == pytest.approx(other.impossible, rel=rtol)
    assert one.n_items == other.n_items
    scale = np.abs(other.bordered_delta).max()
    np.testing.assert_allclose(one.bordered_delta, other.bordered_delta, rtol=0, atol=rtol * scale)


@with_and_without_border
@pytest.mark.parametrize("sizes", [range(8), [8, 9, 16, 17], [31, 32, 33, 40]], ids=str)
def test_weight_logdet_and_delta_are_the_explicit_sums(border: str, sizes: list[int]) -> None:
    kernel = kernel_of(60, border)
    sizes = [size for size in sizes if size in kernel.possible_sizes]
    baskets = random_baskets(60, sizes, each=30)
    stats = statistics(kernel, baskets)
    logdet, delta = explicit(kernel.bordered.matrix, kernel.bordered.n_border, baskets)
    assert stats.weight == pytest.approx(baskets.weights.sum(), rel=1e-14)
    assert stats.logdet == pytest.approx(logdet, rel=1e-12)
    np.testing.assert_allclose(stats.bordered_delta, delta, rtol=0, atol=1e-11 * np.abs(delta).max())
    np.testing.assert_array_equal(stats.delta, stats.bordered_delta[:60, :60])
    assert stats.impossible == 0


@with_and_without_border
def test_sets_of_every_size_give_the_same_through_the_loops_and_through_LAPACK(
    border: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = kernel_of(50, border)
    baskets = random_baskets(50, list(range(3, 45)), each=3)
    results = []
    for large in (0, 32, 100):
        monkeypatch.setattr(statistics_module, "LARGE", large)
        results.append((statistics(kernel, baskets), log_determinants(kernel, baskets)))
    for stats, logdets in results[1:]:
        assert_equal(stats, results[0][0], rtol=1e-11)
        np.testing.assert_allclose(logdets, results[0][1], rtol=1e-12, atol=1e-12)


@every_spectrum
def test_log_probabilities_are_exact_and_minus_infinity_exactly_where_a_set_is_impossible(spectrum: str) -> None:
    truth = exact(spectrum)
    found = log_probabilities(truth.kernel, Baskets.from_lists(truth.subsets, n_items=6))
    for Y, log_p, p in zip(truth.subsets, found, truth.P, strict=True):
        if p == 0:
            assert log_p == -np.inf
        elif len(Y) >= truth.n_near:
            assert log_p == pytest.approx(math.log(p), abs=1e-12)
        elif p > TINY:
            assert log_p == pytest.approx(math.log(p), abs=1e-2)
        else:
            assert log_p < math.log(2 * TINY)


def possible(truth: Exact, *, rare: bool) -> list[oracle.Subset]:
    """The possible sets that lack items for all the eigenvalues near 1, or those that do not."""
    sets = [Y for Y, p in zip(truth.subsets, truth.P, strict=True) if p > (TINY if rare else 0)]
    return [Y for Y in sets if (len(Y) < truth.n_near) == rare]


@every_spectrum
def test_the_gradient_in_K_is_the_mean_inverse_of_K_minus_the_outside(spectrum: str) -> None:
    truth = exact(spectrum)
    sets = possible(truth, rare=False)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(sets))
    inverses = np.array([floats(eliminated(truth.minus_outside(Y))[1]) for Y in sets])
    mean = np.tensordot(weights, inverses, 1) / weights.sum()
    V = truth.kernel.eigenvectors
    G = gradient(truth.kernel, statistics(truth.kernel, Baskets.from_lists(sets, n_items=6, weights=weights)))
    np.testing.assert_allclose(V @ G @ V.T, mean, rtol=0, atol=1e-12 * np.abs(mean).max())


@every_spectrum
def test_the_gradient_of_a_set_that_only_eigenvalues_of_almost_one_allow_keeps_digits(spectrum: str) -> None:
    truth = exact(spectrum)
    V = truth.kernel.eigenvectors
    for Y in possible(truth, rare=True):
        inverse = floats(eliminated(truth.minus_outside(Y))[1])
        G = gradient(truth.kernel, statistics(truth.kernel, Baskets.from_lists([Y], n_items=6)))
        np.testing.assert_allclose(V @ G @ V.T, inverse, rtol=0, atol=1e-2 * np.abs(inverse).max())


@every_spectrum
def test_the_posterior_s_diagonal_is_the_enumerated_e_step(spectrum: str) -> None:
    truth = exact(spectrum)
    kernel, joint = truth.kernel, oracle.joint_with_elementary(truth.kernel.eigenvectors, truth.kernel.eigenvalues)
    for rare, atol in ((False, 1e-12), (True, 1e-2)):
        for Y in possible(truth, rare=rare):
            T = posterior(kernel, statistics(kernel, Baskets.from_lists([Y], n_items=6)))
            marginals = oracle.item_marginals(oracle.posterior(joint, Y))
            np.testing.assert_allclose(T.diagonal(), marginals, atol=atol)


@every_spectrum
def test_the_posterior_s_skew_part_is_the_gradient_of_the_rotations(spectrum: str) -> None:
    """Turning V turns K, so the derivative is that in K, G_ab in the eigenbasis, times λ_b − λ_a."""
    truth = exact(spectrum)
    kernel, lam, V = truth.kernel, truth.kernel.eigenvalues, truth.kernel.eigenvectors
    for Y in possible(truth, rare=False):
        T = posterior(kernel, statistics(kernel, Baskets.from_lists([Y], n_items=6)))
        expected = (V.T @ floats(eliminated(truth.minus_outside(Y))[1]) @ V) * (lam - lam[:, None])
        np.testing.assert_allclose(T - T.T, expected, atol=1e-11 * max(np.abs(expected).max(), 1))


def many_baskets() -> Baskets:
    """Enough work for five threads."""
    return random_baskets(50, [0, 1, 2, 5, 10, 20, 30, 36, 40], each=20)


@with_and_without_border
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_same_number_of_threads_gives_the_same_bits(border: str, threads: int) -> None:
    kernel, baskets = kernel_of(50, border), many_baskets()
    first = statistics(kernel, baskets, threads)
    for _ in range(3):
        again = statistics(kernel, baskets, threads)
        assert (again.weight, again.logdet, again.impossible) == (first.weight, first.logdet, first.impossible)
        np.testing.assert_array_equal(again.bordered_delta, first.bordered_delta)


@with_and_without_border
def test_any_number_of_threads_gives_the_same_sums(border: str) -> None:
    kernel, baskets = kernel_of(50, border), many_baskets()
    alone = statistics(kernel, baskets, 1)
    for threads in (2, 5):
        assert_equal(statistics(kernel, baskets, threads), alone)
        np.testing.assert_array_equal(log_determinants(kernel, baskets, threads), log_determinants(kernel, baskets, 1))


def test_BLAS_keeps_to_one_thread_where_each_of_ours_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine its own threads took ten times as long."""
    limits = []

    @contextmanager
    def one_blas_thread() -> Iterator[None]:
        limits.append(1)
        yield

    monkeypatch.setattr(statistics_module, "one_blas_thread", one_blas_thread)
    statistics(kernel_of(50), random_baskets(50, [5, 32], each=2))
    assert limits == []
    statistics(kernel_of(50), random_baskets(50, [5, 33], each=2))
    assert limits == [1]


def test_threads_are_used_where_there_is_work_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def pool(threads: int) -> ThreadPoolExecutor:
        asked.append(threads)
        return ThreadPoolExecutor(threads)

    monkeypatch.setattr(statistics_module, "pool", pool)
    statistics(kernel_of(50), many_baskets(), 5)
    statistics(kernel_of(50), random_baskets(50, [1, 2], each=10), 5)
    assert asked == [5]
    with pytest.raises(InputError, match="threads is 0; expected a whole number, 1 or more"):
        statistics(kernel_of(50), many_baskets(), 0)


@with_and_without_border
def test_statistics_of_parts_add_up_to_those_of_the_whole(border: str) -> None:
    kernel = kernel_of(20, border)
    baskets = random_baskets(20, [0, 1, 2, 3, 5, 8], each=30)
    numbers = np.random.default_rng(1).integers(3, size=len(baskets))
    parts = [statistics(kernel, baskets.subset(numbers == part)) for part in (0, 1, 2, 7)]  # of 7 there is none
    assert parts[3].weight == parts[3].logdet == 0
    assert not parts[3].delta.any()
    whole = statistics(kernel, baskets)
    assert_equal(sum_statistics(parts), whole)
    assert_equal(parts[0] + parts[1] + parts[2], whole)
    assert (whole.impossible > 0) == (border == "at 1")  # so that this sum is seen too


def test_weights_count_as_repetitions() -> None:
    kernel, baskets = kernel_of(10), random_baskets(10, [0, 2, 4], each=5)
    weighted = Baskets.from_lists(list(baskets), n_items=10, weights=np.arange(15) % 4)
    repeated = baskets.subset(np.repeat(np.arange(15), np.arange(15) % 4))
    repeated = Baskets.from_lists(list(repeated), n_items=10)
    assert_equal(statistics(kernel, weighted), statistics(kernel, repeated))


def test_an_empty_basket_counts_in_the_weight_alone() -> None:
    kernel = kernel_of(10)
    stats = statistics(kernel, Baskets.from_lists([[], [], []], n_items=10, weights=[1, 2, 0.5]))
    assert (stats.weight, stats.logdet, stats.impossible) == (3.5, 0, 0)
    assert not stats.delta.any()
    assert log_likelihood(kernel, stats) == pytest.approx(np.log1p(-kernel.eigenvalues).sum(), rel=1e-14)


def test_the_empty_basket_has_its_probability_from_eigenvalues_near_one_and_none_at_one() -> None:
    empty = Baskets.from_lists([[]], n_items=6)
    near = exact("two at 1 - 1e-12").kernel
    assert log_probabilities(near, empty)[0] == pytest.approx(np.log1p(-near.eigenvalues).sum(), rel=1e-14)
    at = exact("one at 1").kernel
    assert statistics(at, empty).impossible == 1
    assert statistics(at, empty).logdet == -np.inf
    assert not statistics(at, empty).bordered_delta.any()


@with_and_without_border
def test_a_basket_of_weight_zero_changes_nothing_though_it_be_impossible(border: str) -> None:
    kernel = Kernel(np.where(np.arange(12) < 8, kernel_of(12, border).eigenvalues, 0), rotation(12))
    sets = [sorted(Y) for Y in random_baskets(12, [3, 4, 5], each=4)]
    counted = Baskets.from_lists(sets, n_items=12)
    more = Baskets.from_lists([*sets, range(10), [0, 1, 2]], n_items=12, weights=[1] * len(sets) + [0, 0])
    assert_equal(statistics(kernel, more), statistics(kernel, counted))
    assert statistics(kernel, more).impossible == 0
    assert mean_log_likelihood(kernel, more) == pytest.approx(mean_log_likelihood(kernel, counted), rel=1e-14)


@with_and_without_border
def test_an_impossible_basket_makes_the_logdet_minus_infinity_is_counted_and_adds_nothing_to_delta(border: str) -> None:
    kernel = Kernel(np.where(np.arange(12) < 8, kernel_of(12, border).eigenvalues, 0), rotation(12))
    sets = [sorted(Y) for Y in random_baskets(12, [3, 4, 5], each=4)]
    possible_ones = statistics(kernel, Baskets.from_lists(sets, n_items=12))
    weights = [1.0] * len(sets) + [0.25, 0.5]
    stats = statistics(kernel, Baskets.from_lists([*sets, range(9), range(12)], n_items=12, weights=weights))
    assert stats.logdet == log_likelihood(kernel, stats) == -np.inf
    assert stats.impossible == 0.75
    assert stats.weight == len(sets) + 0.75
    np.testing.assert_allclose(stats.bordered_delta, possible_ones.bordered_delta, rtol=1e-13)


@pytest.mark.parametrize(("n_items", "rank"), [(8, 3), (30, 5), (100, 5), (100, 20), (60, 34)])
@pytest.mark.parametrize("n_ones", [0, 1, 3])
def test_no_set_larger_than_the_rank_has_a_probability(n_items: int, rank: int, n_ones: int) -> None:
    """Rounding lifts the last pivot above k·eps in one of eight such sets."""
    lam = np.where(np.arange(n_items) < rank, 0.5, 0)
    lam[:n_ones] = 1
    kernel = Kernel(lam, rotation(n_items))
    larger = random_baskets(n_items, [rank + 1, rank + 2], each=200)
    assert np.all(log_probabilities(kernel, larger) == -np.inf)
    assert np.all(np.isfinite(log_probabilities(kernel, random_baskets(n_items, [rank], each=200))))


def test_no_set_smaller_than_the_number_of_eigenvalues_at_one_has_a_probability() -> None:
    lam = np.where(np.arange(30) < 6, 1, 0.4)
    kernel = Kernel(lam, rotation(30))
    assert np.all(log_probabilities(kernel, random_baskets(30, [1, 4, 5], each=200)) == -np.inf)
    assert np.all(np.isfinite(log_probabilities(kernel, random_baskets(30, [6], each=200))))


def test_a_pivot_of_rounding_size_is_zero_and_a_small_one_is_not() -> None:
    """Two items that are alike up to δ: the second pivot is about 2δ of the first."""
    V = np.array([[1, 1], [1, -1]]) / math.sqrt(2)
    both = Baskets.from_lists([[0, 1]], n_items=2)
    for delta, scale in ((1e-13, 1.0), (1e-13, 1e-200), (1e-4, 1e-200)):
        odds = scale * np.array([2 - delta, delta])
        kernel = Kernel(odds / (1 + odds), V)
        assert log_determinants(kernel, both)[0] == pytest.approx(np.log(odds).sum(), abs=1e-2)
    for delta, scale in ((1e-17, 1.0), (1e-20, 1.0), (1e-17, 1e-200)):
        odds = scale * np.array([2 - delta, delta])
        assert log_determinants(Kernel(odds / (1 + odds), V), both)[0] == -np.inf


@with_and_without_border
@pytest.mark.parametrize("k", [6, 12, 32, 33, 40])
def test_an_item_beside_its_double_is_impossible(border: str, k: int) -> None:
    """What is left of the double is rounding, of either sign."""
    kernel, rng = with_doubles(border), np.random.default_rng(0)
    without = [np.append(i % 20, rng.choice(np.arange(20, 60), k - 2, replace=False)) for i in range(100)]
    with_double = [np.append(Y, 60 + Y[0]) for Y in without]
    for sets, expected in ((without, False), (with_double, True)):
        baskets = Baskets.from_lists([np.sort(Y) for Y in sets], n_items=80)
        assert np.all((log_determinants(kernel, baskets) == -np.inf) == expected)


@pytest.mark.parametrize("k", [30, 32, 33, 38])
def test_a_determinant_below_what_a_float_can_hold_keeps_its_logarithm(k: int) -> None:
    """Of 1e-30 · A the determinant of 30 items is 1e-900; of items that are alike, the pivots' product underflows."""
    X = np.random.default_rng(0).standard_normal((40, 80))
    A = X @ X.T / 80
    baskets = Baskets.from_lists([range(k)], n_items=40)
    expected = k * math.log(1e-30) + np.linalg.slogdet(A[:k, :k])[1]
    stats = statistics(Kernel.from_L(1e-30 * A), baskets)
    assert stats.logdet == pytest.approx(expected, rel=1e-13)
    inverse = np.linalg.inv(1e-30 * A[:k, :k])
    np.testing.assert_allclose(stats.delta[:k, :k], inverse, rtol=0, atol=1e-12 * np.abs(inverse).max())
    alike = Kernel.from_L(np.ones((40, 40)) + 1e-11 * np.eye(40))
    expected = (k - 1) * math.log(1e-11) + math.log(k)
    assert log_determinants(alike, baskets)[0] == pytest.approx(expected, abs=1e-2)


@every_spectrum
def test_the_three_ways_to_a_log_likelihood_agree_with_enumeration(spectrum: str) -> None:
    truth = exact(spectrum)
    sets = possible(truth, rare=False)
    weights = np.random.default_rng(0).uniform(0, 2, len(sets))
    baskets = Baskets.from_lists(sets, n_items=6, weights=weights)
    expected = oracle.log_likelihood(truth.P, sets, weights.tolist())
    assert log_likelihood(truth.kernel, statistics(truth.kernel, baskets)) == pytest.approx(expected, rel=1e-12)
    assert mean_log_likelihood(truth.kernel, baskets) == pytest.approx(expected, rel=1e-12)
    each = log_probabilities(truth.kernel, baskets)
    assert np.average(each, weights=weights) == pytest.approx(expected, rel=1e-12)


def test_a_kernel_and_baskets_of_different_sizes_are_an_error() -> None:
    """The compiled loops check no bounds, so this would read what is not theirs."""
    baskets = Baskets.from_lists([[0], [5]])
    with pytest.raises(InputError, match="kernel has 2 items, but the baskets have 6"):
        statistics(Kernel.from_K(np.eye(2) / 2), baskets)
