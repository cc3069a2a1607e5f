"""SpectralDPP from K, L and factors: what is accepted, what is refused, and eigenvalues of exactly 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dpplearn import InputError
from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.utils import memory
from helpers.spectra import SPECTRA, every_spectrum, exact, rotation

Make = Callable[[Any], SpectralDPP]
from_K_and_L = pytest.mark.parametrize("make", [SpectralDPP.from_K, SpectralDPP.from_L])


@every_spectrum
def test_K_and_L_and_back_have_the_spectrum_with_zeros_and_ones_exact(spectrum: str) -> None:
    truth, lam = exact(spectrum), SPECTRA[spectrum]
    np.testing.assert_allclose(truth.kernel.K, truth.K.astype(float), atol=1e-15)
    np.testing.assert_array_equal(truth.kernel.K, truth.kernel.K.T)
    if 1 not in lam:
        odds = truth.lam / (1 - truth.lam)
        L = ((truth.V * odds) @ truth.V.T).astype(float)
        np.testing.assert_allclose(truth.kernel.L, L, atol=1e-15 * float(max(odds)))
    found = SpectralDPP.from_K(truth.K.astype(float))
    np.testing.assert_allclose(found.eigenvalues, lam, atol=2e-15)
    np.testing.assert_array_equal(found.at_one, np.equal(lam, 1))
    assert found.size_range == range(lam.count(1), np.count_nonzero(lam) + 1)
    np.testing.assert_allclose(found.eigenvectors.T @ found.eigenvectors, np.eye(6), atol=1e-14)


def test_without_eigenvalues_of_one_L_exists() -> None:
    with pytest.raises(InputError, match=r"\b1\b.*\b3\b"):
        _ = SpectralDPP.from_K([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0.25]]).L
    assert SpectralDPP(np.array([np.nextafter(1, 0)]), np.eye(1)).L[0, 0] == pytest.approx(2**53, rel=1e-15)


def test_eigenvalues_out_of_range_are_refused_with_their_distance() -> None:
    V = rotation(3)
    for by in (0.5, 1e-3, 1e-8):
        with pytest.raises(InputError, match=rf"1.*{by:.2g}"):
            SpectralDPP.from_K((V * [0.2, 0.5, 1 + by]) @ V.T)
        for make in (SpectralDPP.from_K, SpectralDPP.from_L):
            with pytest.raises(InputError, match=rf"0.*{by:.2g}"):
                make((V * [-by, 0.5, 0.9]) @ V.T)
    with pytest.raises(InputError, match=r"1e\+17"):
        SpectralDPP.from_L(np.diag([1.0, 1e17]))
    SpectralDPP.from_L(np.diag([1.0, 1e15]))


@from_K_and_L
def test_matrices_that_are_not_finite_square_symmetric_and_real_are_refused(make: Make) -> None:
    for matrix, value in (
        ([[0.5, 0, 0.11], [0, 0.5, 0], [0.1, 0, 0.5]], r"\b0\b.*\b2\b.*0\.01"),
        ([[0.5, math.nan], [math.nan, 0.5]], "NaN"),
        ([[math.inf, 0], [0, 0.5]], "infinity"),
        ([[0.5, 0, 0], [0, 0.5, 0]], r"\b2\b.*\b3\b"),
        ([0.5, 0.5], r"\b2\b"),
        (np.zeros((0, 0)), r"\b0\b.*\b0\b"),
        (np.eye(2) * (1 + 0.5j), "real"),
        ([[1.0], [0.5, 0.5]], None),
        ([["a", "b"], ["c", "d"]], None),
    ):
        with pytest.raises(InputError, match=value):
            make(matrix)


def test_rounding_of_double_precision_is_moved_to_zero_and_one() -> None:
    V = rotation(4)
    K = (V * [-1e-10, 0.3, 0.6, 1 + 1e-10]) @ V.T
    K[0, 1] += 1e-12
    np.testing.assert_array_equal(SpectralDPP.from_K(K).eigenvalues[[0, -1]], [0, 1])


@pytest.mark.parametrize(("n_items", "n_features"), [(20, 4), (400, 32)])
def test_a_matrix_of_float32_is_taken_with_the_rounding_of_float32(n_items: int, n_features: int) -> None:
    """‖ΔK‖ ≤ ‖ΔL‖ ≤ N ε/2 of the largest entry, and as much again for eigenvalues below 0 that are taken as 0."""
    B = np.random.default_rng(n_items).standard_normal((n_items, n_features))
    L = (B @ B.T).astype(np.float32)
    assert np.linalg.eigvalsh(L.astype(float))[0] < -1e-9 * L.max()  # otherwise this tests nothing
    expected, bound = SpectralDPP.from_factor(B).K, n_items * np.finfo(np.float32).eps * float(L.max())
    for found in (SpectralDPP.from_L(L), SpectralDPP.from_K(expected.astype(np.float32))):
        assert np.abs(found.K - expected).max() < bound


@from_K_and_L
@pytest.mark.parametrize(("kind", "deficit"), [(np.float32, 1e-5), (np.float16, 0.02), (np.float64, 1e-8)])
def test_errors_beyond_the_rounding_of_the_type_are_refused(make: Make, kind: type[np.generic], deficit: float) -> None:
    V = rotation(3)
    for matrix in ((V * [-deficit, 0.5, 0.9]) @ V.T, np.array([[0.5, 0.1], [0.1 + deficit, 0.5]])):
        with pytest.raises(InputError):
            make(matrix.astype(kind))
    K = ((rotation(5) * [0.1, 0.2, 0.4, 1, 1]) @ rotation(5).T).astype(np.float32) * np.float32(1 + 2e-7)
    assert SpectralDPP.from_K(K).eigenvalues.max() == 1
    with pytest.raises(InputError):
        SpectralDPP.from_K(K.astype(float))


def test_an_invalid_spectrum_is_refused() -> None:
    for lam, V, values in (
        ([-1e-12, 0.5], np.eye(2), r"-1e-12.*0\.5"),
        ([0.5, 1.25], np.eye(2), r"0\.5.*1\.25"),
        ([0.5, math.nan], np.eye(2), "nan"),
        ([0.5], np.eye(2), r"\(1,\).*\(2, 2\)"),
        ([0.5, 0.5], np.ones((2, 1)), r"\(2,\).*\(2, 1\)"),
        ([0.9, 0.9], np.array([[1.0, 1], [0, 0]]), None),
        ([0.9, 0.9], np.array([[1.0, 0], [0, np.nan]]), None),
        ([0.9, 0.9], np.array([[1.0, 0], [0, 1 + 1e-6]]), None),
    ):
        with pytest.raises(InputError, match=values):
            SpectralDPP(np.array(lam), V)


@from_K_and_L
def test_an_item_whose_row_is_zero_has_probability_exactly_zero(make: Make) -> None:
    """Decomposed with the others it would get 1e-31."""
    X = np.random.default_rng(0).standard_normal((40, 40))
    X[::3] = 0
    matrix, never = X @ X.T, np.arange(40) % 3 == 0
    for dpp in (
        make(0.7 * matrix / np.linalg.norm(matrix, 2)),
        SpectralDPP.from_factor(X),
        make(np.diag(0.5 * ~never)),
    ):
        np.testing.assert_array_equal(dpp.marginals()[0] == 0, never)
        assert dpp.rank == 40 - never.sum()
    assert make(np.zeros((3, 3))).rank == SpectralDPP.from_factor(np.zeros((3, 2))).rank == 0


def test_small_eigenvalues_are_kept_relative_to_the_largest() -> None:
    V = rotation(3)
    dpp = SpectralDPP.from_L(1e-200 * (V * [1e-10, 1, 2]) @ V.T)
    np.testing.assert_allclose(dpp.eigenvalues, [1e-210, 1e-200, 2e-200], rtol=1e-5)
    assert SpectralDPP.from_L(1e-200 * (V * [1e-18, 1, 2]) @ V.T).rank == 2
    B = np.diag([1e4, 1.0, 1e-6]) @ V  # a factor has digits that the matrix has not
    np.testing.assert_allclose(np.sort(SpectralDPP.from_factor(B).odds), [1e-12, 1, 1e8], rtol=1e-6)


@pytest.mark.parametrize("n_columns", [1, 4, 6, 8])
def test_a_factor_gives_its_L_with_the_scale_of_its_columns(n_columns: int) -> None:
    B, columns = np.random.default_rng(n_columns).standard_normal((6, n_columns)), np.geomspace(0.1, 10, n_columns)
    for scale in (1.0, columns):
        dpp = SpectralDPP.from_factor(B, scale)
        np.testing.assert_allclose(dpp.L, (B * scale) @ (B * scale).T, rtol=1e-9, atol=1e-10)
        assert dpp.rank == min(n_columns, 6)


def test_a_sparse_matrix_whose_decomposition_does_not_fit_into_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nine matrices of 50 × 50 numbers, by the resident memory at the peak."""
    monkeypatch.setattr(memory, "memory_limit", lambda: 8 * 50**2 * 8)
    with pytest.raises(InputError, match=r"\b50 items.*180.0 kB"):
        SpectralDPP.from_L(csr_array(np.eye(50)))


def test_lists_integers_and_sparse_matrices_are_taken_and_copied() -> None:
    np.testing.assert_array_equal(SpectralDPP.from_L([[1, 0], [0, 3]]).eigenvalues, [0.5, 0.75])
    np.testing.assert_array_equal(SpectralDPP.from_K([[1, 0], [0, 0]]).marginals()[0], [1, 0])
    np.testing.assert_allclose(SpectralDPP.from_K(csr_array(np.eye(3) / 2)).K, np.eye(3) / 2)
    lam, V = np.array([0.0625, 0.25]), np.eye(2)
    dpp = SpectralDPP(lam, V)
    lam[0], V[0, 0] = 0.9, 7
    np.testing.assert_array_equal(dpp.K, [[0.0625, 0], [0, 0.25]])
    for array in (dpp.eigenvalues, dpp.eigenvectors, dpp.K):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
