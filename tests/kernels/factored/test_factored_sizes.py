"""Sizes, and items given a size, of large catalogues against all eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from dpplearn.kernels.factored import sizes
from dpplearn.kernels.factored.circle import FARTHEST, circle_of
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.law import FactoredLaw
from dpplearn.kernels.nonsymmetric.law import MixtureLaw

from dpplearn import InputError
from helpers.catalogues import catalogue

N = 160


def likely(seed: int = 0) -> FactoredKernel:
    """Sets of about half of the items."""
    kernel = catalogue(N, seed=seed)
    return FactoredKernel(kernel.weights, kernel.log_odds + np.float32(4), kernel.factors, kernel.coupling)


LAWS = {"rare": catalogue(N), "a coupling each": catalogue(N, each=True, seed=1), "likely": likely()}
every_law = pytest.mark.parametrize("name", LAWS)


@every_law
def test_sizes_are_those_of_the_dense_law(name: str) -> None:
    kernel = LAWS[name]
    found, expected = FactoredLaw(kernel).log_sizes(), MixtureLaw(kernel.dense()).log_sizes()
    assert np.abs(np.exp(found) - np.exp(expected)).sum() / 2 < 1e-13
    known = np.isfinite(found)
    np.testing.assert_array_equal(known, expected >= sizes.LOG_LEAST)
    np.testing.assert_allclose(found[known], expected[known], atol=1e-9)


@every_law
@pytest.mark.parametrize("k", [1, 4, 30, N - 1])
def test_items_given_a_size_are_those_of_the_dense_law(name: str, k: int) -> None:
    kernel = LAWS[name]
    found, expected = FactoredLaw(kernel).marginals(k), MixtureLaw(kernel.dense()).marginals(k)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert found.sum() == pytest.approx(k, rel=1e-12)


def test_sums_over_rare_items_are_those_over_every_one_of_them() -> None:
    kernel = catalogue(3000)
    circle, Z = circle_of(kernel, 1), kernel.factors.astype(float)
    assert 0 < len(circle.common) < 300
    for z in (1.0, -1.0, 0.3j, FARTHEST, -FARTHEST, FARTHEST * 1j):
        w = z * circle.p / (1 + circle.p * (z - 1))
        total, matrix = circle.sums([lambda p, z=z: z / (1 + p * (z - 1))])  # type: ignore[misc]
        assert abs(total[0] - w.sum()) < 1e-13 * np.abs(w).sum()
        np.testing.assert_allclose(matrix[0], Z.T @ (w[:, None] * Z), atol=1e-12 * np.abs(w).sum())


def test_the_mean_and_the_variance_of_a_tilted_law_are_those_of_its_sizes() -> None:
    kernel = catalogue(N, segments=1)
    P = np.exp(MixtureLaw(kernel.dense()).log_sizes()) * 3.0 ** np.arange(N + 1)
    P /= P.sum()
    mean = P @ np.arange(N + 1)
    found = circle_of(kernel, 0).moments(3.0)
    np.testing.assert_allclose(found, [mean, P @ (np.arange(N + 1) - mean) ** 2], rtol=1e-11)


def test_none_and_all_of_the_items_and_sizes_that_no_set_has() -> None:
    law = FactoredLaw(catalogue(N))
    assert law.marginals(0).tolist() == [0.0] * N
    assert law.marginals(N).tolist() == [1.0] * N
    with pytest.raises(InputError, match=r"\b0\b.*\b160\b"):
        law.marginals(N + 1)


def test_a_size_that_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "MOST_COMMON", 100)
    with pytest.raises(InputError, match=r"\b155\b"):
        FactoredLaw(catalogue(N)).marginals(155)
