"""Kernels: what is accepted, what is refused and how it is said, and eigenvalues of exactly 0 and 1."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from dpplearn.kernels.symmetric.conditioning import inclusion_probability
from dpplearn.kernels.symmetric.kernel import eigh_apart
from hypothesis import given
from scipy.sparse import csr_array

from dpplearn import DPP, InputError
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle
from helpers.spectra import (
    SPECTRA,
    eliminated,
    every_spectrum,
    exact,
    floats,
    law,
    product,
    rotation,
    transposed,
)
from helpers.strategies import kernels


@every_spectrum
def test_the_reference_is_a_distribution_with_the_minors_of_K_as_inclusion_probabilities(spectrum: str) -> None:
    truth = exact(spectrum)
    assert math.fsum(truth.P) == pytest.approx(1, abs=1e-15)
    for A in [(0,), (1, 4), (0, 2, 5)]:
        minor = [[truth.K[i][j] for j in A] for i in A]
        assert oracle.marginal(truth.P, A) == pytest.approx(float(eliminated(minor)[0]), rel=1e-13, abs=1e-300)


@every_spectrum
def test_K_and_L_are_those_of_the_spectrum(spectrum: str) -> None:
    truth = exact(spectrum)
    np.testing.assert_allclose(truth.kernel.K, floats(truth.K), atol=1e-15)
    np.testing.assert_array_equal(truth.kernel.K, truth.kernel.K.T)
    if 1 not in truth.lam:
        odds = [x / (1 - x) for x in truth.lam]
        L = product([[v * x for v, x in zip(row, odds, strict=True)] for row in truth.V], transposed(truth.V))
        np.testing.assert_allclose(truth.kernel.L, floats(L), atol=1e-15 * float(max(odds)))


@every_spectrum
def test_from_K_finds_the_spectrum_with_zeros_and_ones_exact(spectrum: str) -> None:
    truth = exact(spectrum)
    found = SpectralDPP.from_K(floats(truth.K))
    np.testing.assert_allclose(found.eigenvalues, SPECTRA[spectrum], atol=2e-15)
    np.testing.assert_array_equal(found.at_one, np.equal(SPECTRA[spectrum], 1))
    assert found.rank == np.count_nonzero(SPECTRA[spectrum])
    assert found.possible_sizes == range(SPECTRA[spectrum].count(1), found.rank + 1)
    assert found.n_items == 6
    np.testing.assert_allclose(found.eigenvectors.T @ found.eigenvectors, np.eye(6), atol=1e-14)
    np.testing.assert_allclose(found.K, floats(truth.K), atol=2e-15)


@given(kernels())
def test_K_to_L_and_back_is_the_same_kernel(kernel: SpectralDPP) -> None:
    np.testing.assert_allclose(SpectralDPP.from_K(kernel.K).K, kernel.K, atol=1e-13)
    if not kernel.at_one.any():
        np.testing.assert_allclose(SpectralDPP.from_L(kernel.L).K, kernel.K, atol=1e-12)
        scale = max(np.abs(kernel.L).max(), 1)
        np.testing.assert_allclose(SpectralDPP.from_K(kernel.K).L, kernel.L, atol=1e-13 * scale**2)


@given(kernels())
def test_L_is_K_over_I_minus_K(kernel: SpectralDPP) -> None:
    if not kernel.at_one.any():
        scale = max(np.abs(kernel.L).max(), 1)
        np.testing.assert_allclose(kernel.L @ (np.eye(kernel.n_items) - kernel.K), kernel.K, atol=1e-13 * scale)


def test_an_eigenvalue_of_one_is_legal_and_L_says_that_it_does_not_exist() -> None:
    kernel = SpectralDPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.25]])
    np.testing.assert_array_equal(kernel.at_one, [False, False, True])
    np.testing.assert_allclose(kernel.K, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.25]], atol=1e-15)
    with pytest.raises(InputError, match=r"\b1\b.*\b3\b"):
        _ = kernel.L
    assert "1 eigenvalues at 1" in repr(kernel)


def test_the_largest_eigenvalue_below_one_has_an_L() -> None:
    below = np.nextafter(1, 0)
    assert SpectralDPP(np.array([below]), np.eye(1)).L[0, 0] == pytest.approx(2**53, rel=1e-15)


@pytest.mark.parametrize("excess", [0.5, 1e-3, 1e-8])
def test_an_eigenvalue_of_K_above_one_is_refused_saying_by_how_much(excess: float) -> None:
    V = rotation(3)
    with pytest.raises(InputError, match=rf"1.*{excess:.2g}"):
        SpectralDPP.from_K((V * [0.2, 0.5, 1 + excess]) @ V.T)


@pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])
@pytest.mark.parametrize("deficit", [0.5, 1e-3, 1e-8])
def test_a_negative_eigenvalue_is_refused_saying_by_how_much(make: type[SpectralDPP], deficit: float) -> None:
    V = rotation(3)
    with pytest.raises(InputError, match=rf"0.*{deficit:.2g}"):
        make((V * [-deficit, 0.5, 0.9]) @ V.T)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])
def test_an_asymmetric_matrix_is_refused_saying_where_and_by_how_much(make: type[SpectralDPP]) -> None:
    with pytest.raises(InputError, match=r"\b0\b.*\b2\b.*0\.01"):
        make([[0.5, 0, 0.11], [0, 0.5, 0], [0.1, 0, 0.5]])  # type: ignore[call-arg, arg-type]


def test_what_a_user_s_own_arithmetic_leaves_is_rounded_to_zero_and_one() -> None:
    V = rotation(4)
    K = (V * [-1e-10, 0.3, 0.6, 1 + 1e-10]) @ V.T
    K[0, 1] += 1e-12
    np.testing.assert_array_equal(SpectralDPP.from_K(K).eigenvalues[[0, -1]], [0, 1])


@pytest.mark.parametrize(("n_items", "n_features"), [(20, 4), (100, 8), (400, 32)])
def test_a_matrix_of_float32_is_taken_with_the_rounding_of_float32(n_items: int, n_features: int) -> None:
    """‖ΔK‖ ≤ ‖ΔL‖ ≤ N ε/2 of the largest entry, and as much again for eigenvalues below 0 that are taken as 0."""
    B = np.random.default_rng(n_items).standard_normal((n_items, n_features))
    L = (B @ B.T).astype(np.float32)
    assert np.linalg.eigvalsh(L.astype(float))[0] < -1e-9 * L.max()  # else this says nothing
    kernel, exact = SpectralDPP.from_L(L), SpectralDPP.from_factor(B)
    bound = n_items * np.finfo(np.float32).eps * float(L.max())
    assert np.abs(kernel.K - exact.K).max() < bound
    again = SpectralDPP.from_K(exact.K.astype(np.float32))
    assert np.abs(again.K - exact.K).max() < bound


@pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])
@pytest.mark.parametrize(("kind", "deficit"), [(np.float32, 1e-5), (np.float16, 0.02), (np.float64, 1e-8)])
def test_a_negative_eigenvalue_beyond_the_rounding_of_its_numbers_is_refused(
    make: type[SpectralDPP], kind: type[np.generic], deficit: float
) -> None:
    V = rotation(3)
    with pytest.raises(InputError):
        make(((V * [-deficit, 0.5, 0.9]) @ V.T).astype(kind))  # type: ignore[call-arg, arg-type]
    with pytest.raises(InputError):
        make(np.array([[0.5, 0.1], [0.1 + deficit, 0.5]], kind))  # type: ignore[call-arg, arg-type]


def test_eigenvalues_of_float32_beyond_one_by_rounding_are_one() -> None:
    V = rotation(5)
    K = ((V * [0.1, 0.2, 0.4, 1, 1]) @ V.T).astype(np.float32) * np.float32(1 + 2e-7)
    assert np.linalg.eigvalsh(K.astype(float))[-1] > 1 + 1e-7
    assert SpectralDPP.from_K(K).eigenvalues.max() == 1
    with pytest.raises(InputError):
        SpectralDPP.from_K(K.astype(float))


@pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])
@pytest.mark.parametrize(
    ("matrix", "shape"),
    [
        ([[0.5, math.nan], [math.nan, 0.5]], None),
        ([[math.inf, 0], [0, 0.5]], None),
        ([[0.5, 0, 0], [0, 0.5, 0]], r"\b2\b.*\b3\b"),
        ([0.5, 0.5], r"\b2\b"),
        (np.zeros((0, 0)), r"\b0\b.*\b0\b"),
    ],
)
def test_what_is_no_finite_square_matrix_is_refused(make: type[SpectralDPP], matrix: object, shape: str | None) -> None:
    with pytest.raises(InputError, match=shape):
        make(matrix)  # type: ignore[call-arg, arg-type]


def test_an_eigenvalue_of_L_beyond_what_K_can_hold_is_refused() -> None:
    SpectralDPP.from_L(np.diag([1.0, 1e15]))
    with pytest.raises(InputError, match=r"1e\+17"):
        SpectralDPP.from_L(np.diag([1.0, 1e17]))


@pytest.mark.parametrize(
    ("lam", "V", "values"),
    [
        ([-1e-12, 0.5], np.eye(2), r"-1e-12.*0\.5"),
        ([0.5, 1.25], np.eye(2), r"0\.5.*1\.25"),
        ([0.5, math.nan], np.eye(2), None),
        ([0.5], np.eye(2), None),
        ([0.5, 0.5], np.ones((2, 1)), None),
        ([], np.zeros((0, 0)), None),
    ],
)
def test_an_invalid_spectrum_is_refused(lam: list[float], V: Floats, values: str | None) -> None:
    with pytest.raises(InputError, match=values):
        SpectralDPP(np.array(lam), V)


@pytest.mark.parametrize("n_items", [6, 40])
@pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])
def test_an_item_whose_row_is_zero_has_probability_exactly_zero(make: type[SpectralDPP], n_items: int) -> None:
    """Decomposed with the others it gets 1e-31, and a set that holds it −80 in place of −inf."""
    X = np.random.default_rng(0).standard_normal((n_items, n_items))
    X[::3] = 0
    matrix = X @ X.T
    dpp = DPP(make(0.7 * matrix / np.linalg.norm(matrix, 2)))  # type: ignore[call-arg, arg-type]
    never = np.arange(n_items) % 3 == 0
    np.testing.assert_array_equal(dpp.marginals() == 0, never)
    np.testing.assert_array_equal([dpp.log_prob([i]) == -np.inf for i in range(n_items)], never)
    assert dpp.kernel.rank == n_items - never.sum()
    assert {found.item for found in dpp.substitutes(1, k=n_items)} == set(np.flatnonzero(~never).tolist()) - {1}


def test_the_zero_matrix_is_the_dpp_of_the_empty_set() -> None:
    for kernel in (SpectralDPP.from_K(np.zeros((3, 3))), SpectralDPP.from_L(np.zeros((3, 3)))):
        assert kernel.rank == 0
        np.testing.assert_array_equal(law(DPP(kernel)), [1, 0, 0, 0, 0, 0, 0, 0])


def test_small_eigenvalues_of_L_are_kept_relative_to_its_size() -> None:
    V = rotation(3)
    kernel = SpectralDPP.from_L(1e-200 * (V * [1e-10, 1, 2]) @ V.T)
    assert kernel.rank == 3
    np.testing.assert_allclose(kernel.eigenvalues, [1e-210, 1e-200, 2e-200], rtol=1e-5)
    assert SpectralDPP.from_L(1e-200 * (V * [1e-18, 1, 2]) @ V.T).rank == 2


def test_a_kernel_cannot_be_changed_by_anyone() -> None:
    lam, V = np.array([0.0625, 0.25]), np.eye(2)
    kernel = SpectralDPP(lam, V)
    lam[0], V[0, 0] = 0.9, 7
    np.testing.assert_array_equal(kernel.K, [[0.0625, 0], [0, 0.25]])
    for array in (kernel.eigenvalues, kernel.eigenvectors, kernel.K, kernel.L):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        kernel.eigenvalues = lam  # type: ignore[misc]


def test_lists_and_integers_are_taken_for_matrices() -> None:
    np.testing.assert_array_equal(SpectralDPP.from_L([[1, 0], [0, 3]]).eigenvalues, [0.5, 0.75])
    assert inclusion_probability(SpectralDPP.from_K([[1, 0], [0, 0]]), np.array([0])) == 1


@pytest.mark.parametrize("vectors", [[[1, 1], [0, 0]], [[1, 0], [0, np.nan]], [[1, 0], [0, 1 + 1e-6]]])
def test_eigenvectors_that_are_not_orthonormal_are_refused(vectors: list[list[float]]) -> None:
    with pytest.raises(InputError):
        SpectralDPP(np.array([0.9, 0.9]), np.array(vectors, dtype=float))


@pytest.mark.parametrize("matrix", [np.eye(2) * (1 + 0.5j), [[1.0], [0.5, 0.5]], [["a", "b"], ["c", "d"]]])
def test_what_is_no_real_matrix_is_refused(matrix: object) -> None:
    with pytest.raises(InputError):
        SpectralDPP.from_K(matrix)


def test_a_sparse_matrix_is_taken() -> None:
    np.testing.assert_allclose(SpectralDPP.from_K(csr_array(np.eye(3) / 2)).K, np.eye(3) / 2)


def test_the_matrices_of_a_kernel_cannot_be_written_to() -> None:
    kernel = SpectralDPP.from_K(np.eye(2) / 2)
    for array in (kernel.K, kernel.L, kernel.eigenvalues, kernel.eigenvectors, kernel.repulsion):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_a_diagonal_matrix_is_decomposed_without_rounding() -> None:
    diagonal = np.array([0.5, 0.0, 0.25, 0.5, 1.0])
    kernel = SpectralDPP.from_K(np.diag(diagonal))
    np.testing.assert_allclose(kernel.K, np.diag(diagonal), rtol=1e-15)
    np.testing.assert_array_equal(kernel.eigenvalues, np.sort(diagonal))


def test_indices_kept_apart_leave_the_decomposition_of_the_others() -> None:
    matrix = np.zeros((7, 7))
    X = np.random.default_rng(0).standard_normal((4, 4))
    matrix[np.ix_([0, 2, 3, 6], [0, 2, 3, 6])] = X + X.T
    matrix[5, 5] = -0.3
    values, vectors = eigh_apart(matrix)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-14)
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=1e-14)
    assert np.count_nonzero(vectors[[1, 4, 5]]) == 3


def random_factor(n_columns: int, n_items: int = 6) -> Floats:
    return np.random.default_rng(n_columns).standard_normal((n_items, n_columns))


@pytest.mark.parametrize("n_columns", [1, 3, 6, 8])
def test_a_factor_gives_its_kernel_with_no_more_rank_than_columns(n_columns: int) -> None:
    B = random_factor(n_columns)
    kernel = SpectralDPP.from_factor(B)
    np.testing.assert_allclose(kernel.L, B @ B.T, atol=1e-12)
    assert kernel.rank == min(n_columns, 6)


def test_a_factor_may_come_with_the_scale_of_its_columns() -> None:
    B, columns = random_factor(4), np.array([1.0, 0.1, 100.0, 2.0])
    kernel = SpectralDPP.from_factor(B, columns)
    np.testing.assert_allclose(kernel.L, B * columns**2 @ B.T, rtol=1e-10)
    assert kernel.rank == 4


def test_rows_of_zeros_in_a_factor_are_items_of_probability_exactly_zero() -> None:
    B = random_factor(6)
    B[[1, 4]] = 0
    kernel = SpectralDPP.from_factor(B)
    np.testing.assert_array_equal(kernel.K[[1, 4]], 0)
    assert kernel.rank == 4
    assert DPP(kernel).log_prob([1]) == -np.inf
    np.testing.assert_allclose(kernel.L, B @ B.T, atol=1e-12)
    assert SpectralDPP.from_factor(np.zeros((3, 2))).rank == 0


def test_small_eigenvalues_survive_a_factor_and_not_the_matrix() -> None:
    B = np.diag([1e4, 1.0, 1e-6]) @ np.linalg.qr(random_factor(3, 3))[0]
    np.testing.assert_allclose(np.sort(SpectralDPP.from_factor(B).odds), [1e-12, 1, 1e8], rtol=1e-6)
