"""The law of |Y| and the normalisers of k-DPPs against exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from dpplearn.kernels.interface import check_size
from dpplearn.kernels.symmetric.sizes import inclusion_given_size, log_size_distribution, log_size_table

from dpplearn import InputError
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import SPECTRA, every_spectrum, exact

MIXED = [0.0, 0.25, 0.5, 1.0, 0.125, 0.75, 0.0, 1.0]
ONE = 2**400  # of fixed-point numbers
UNEVEN = [1 - 1e-12, 1e-12, 0.5, 1e-3, 0.999, 1e-7, 0.3, 1 - 1e-7]


def kernel_of(lam: Sequence[float]) -> SpectralDPP:
    return SpectralDPP(np.array(lam, dtype=float), np.eye(len(lam)))


def exact_table(lam: Sequence[float]) -> list[list[Fraction]]:
    """P(k of the first n flips come up), for n and k = 0..N."""
    rows = [[Fraction(1)] + [Fraction(0)] * len(lam)]
    for p in map(Fraction, lam):
        before = rows[-1]
        rows.append([before[k] * (1 - p) + (before[k - 1] * p if k else 0) for k in range(len(before))])
    return rows


def log_of(value: Fraction) -> float:
    """The logarithm of a fraction that may be far below what a float can hold."""
    return math.log(value.numerator) - math.log(value.denominator) if value else -math.inf


@every_spectrum
def test_the_size_distribution_is_the_enumerated_one(spectrum: str) -> None:
    truth = exact(spectrum)
    np.testing.assert_allclose(
        np.exp(log_size_distribution(truth.kernel)), oracle.size_distribution(truth.P), rtol=1e-10, atol=0
    )


@pytest.mark.parametrize(
    "lam", [MIXED, UNEVEN, np.random.default_rng(0).random(60).tolist()], ids=["mixed", "uneven", "60"]
)
def test_the_table_is_the_exact_one(lam: list[float]) -> None:
    expected = [[log_of(p) for p in row] for row in exact_table(lam)]
    table = log_size_table(np.array(lam), len(lam))
    np.testing.assert_allclose(table, expected, rtol=1e-13, atol=1e-12)
    np.testing.assert_array_equal(log_size_table(np.array(lam), 5), table[:, :6])
    np.testing.assert_allclose(log_size_distribution(kernel_of(lam)), expected[-1], rtol=1e-13, atol=1e-12)


def test_times_the_normaliser_they_are_the_elementary_symmetric_polynomials() -> None:
    lam = np.random.default_rng(1).uniform(0, 0.9, 12)
    odds = [Fraction(p) / (1 - Fraction(p)) for p in lam.tolist()]
    found = log_size_distribution(kernel_of(lam.tolist())) - np.log1p(-lam).sum()
    for k in range(13):
        e_k = sum((math.prod(chosen, start=Fraction(1)) for chosen in combinations(odds, k)), Fraction(0))
        assert found[k] == pytest.approx(log_of(e_k), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("p", [0.5, 0.125, 2.0**-40, 1 - 2.0**-40])
def test_equal_eigenvalues_give_the_binomial_law_with_2000_items(p: float) -> None:
    n, q = 2000, 1 - Fraction(p)
    binomial = [log_of(math.comb(n, k) * Fraction(p) ** k * q ** (n - k)) for k in (0, 1, 50, 199, 200)]
    table = log_size_table(np.full(n, p), 200)
    assert not np.isnan(table).any()
    np.testing.assert_allclose(table[-1, [0, 1, 50, 199, 200]], binomial, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(log_size_distribution(kernel_of([p] * n))[:201], table[-1], rtol=1e-12, atol=1e-9)


def test_the_normalisers_of_2000_items_up_to_200_chosen_are_exact() -> None:
    lam = np.geomspace(1e-9, 0.9, 2000)
    row = [ONE]
    for p in [int(Fraction(p) * ONE) for p in lam.tolist()]:
        row = [(a * (ONE - p) + b * p) // ONE for a, b in zip([*row, 0], [0, *row], strict=True)][:201]
    expected = [math.log(p) - math.log(ONE) for p in row]
    np.testing.assert_allclose(log_size_table(lam, 200)[-1], expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(log_size_distribution(kernel_of(lam.tolist()))[:201], expected, rtol=1e-12, atol=1e-10)


def test_probabilities_far_below_what_a_float_can_hold_keep_their_logarithm() -> None:
    found = log_size_distribution(kernel_of([1e-200] * 5))
    np.testing.assert_allclose(found, [math.log(math.comb(5, k)) + k * math.log(1e-200) for k in range(6)], atol=1e-12)


@pytest.mark.parametrize("lam", [MIXED, UNEVEN, [0.5] * 8], ids=["mixed", "uneven", "equal"])
def test_the_chance_of_an_eigenvector_given_the_size_is_the_enumerated_one(lam: list[float]) -> None:
    kernel = kernel_of(lam)
    flips = np.array([
        float(math.prod(Fraction(p) if j in J else 1 - Fraction(p) for j, p in enumerate(lam)))
        for J in oracle.subsets(8)
    ])  # fmt: skip
    for k in kernel.possible_sizes:
        expected = oracle.item_marginals(oracle.k_dpp(flips, k))
        np.testing.assert_allclose(inclusion_given_size(kernel, k), expected, rtol=1e-11, atol=1e-14)


@every_spectrum
def test_eigenvalues_at_one_are_always_active_and_at_zero_never(spectrum: str) -> None:
    kernel = exact(spectrum).kernel
    lam = np.array(SPECTRA[spectrum])
    for k in kernel.possible_sizes:
        active = inclusion_given_size(kernel, k)
        np.testing.assert_allclose(active[lam == 1], 1, rtol=1e-14)
        np.testing.assert_array_equal(active[lam == 0], 0)
        assert active.sum() == pytest.approx(k, abs=1e-12)


def test_of_2000_eigenvectors_200_are_active() -> None:
    active = inclusion_given_size(kernel_of(np.geomspace(1e-9, 0.999, 2000).tolist()), 200)
    assert np.all((active >= 0) & (active <= 1 + 1e-12))
    assert np.all(np.diff(active) > 0)
    assert active.sum() == pytest.approx(200, rel=1e-10)
    np.testing.assert_allclose(inclusion_given_size(kernel_of([0.25] * 2000), 200), 0.1, rtol=1e-10)


@pytest.mark.parametrize("k", [1, 5, -1, 2.0, "3", True, None])
def test_a_size_that_no_set_has_is_refused_naming_those_that_do(k: object) -> None:
    kernel = kernel_of([0, 0.3, 0.5, 1, 1, 0])
    with pytest.raises(InputError, match=rf"{k!r}.*\b2\b.*\b4\b"):
        check_size(kernel.possible_sizes, k)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 3, 4, np.int64(3)])
def test_a_size_that_sets_have_is_accepted(k: int) -> None:
    check_size(kernel_of([0, 0.3, 0.5, 1, 1, 0]).possible_sizes, k)
