"""SpectralDPP: the contract of components for all kinds of spectra, and what only this kind has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from distributions.contract import CHECKS, Case
from dpplearn.distributions.spectral import SpectralDPP
from helpers.spectra import Rational, eliminated, floats, product, rational_orthogonal, transposed

ONE = Fraction(1)


def exact_table(K: Rational) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """P(Y) = |det(K − I outside Y)| of all subsets, in rational arithmetic, (1, 2^n)."""
    n = len(K)

    def probability(subset: int) -> float:
        minor = [[K[i][j] - (i == j and not subset >> i & 1) for j in range(n)] for i in range(n)]
        return float(abs(eliminated(minor)[0]))

    return np.array([[probability(subset) for subset in range(2**n)]])


def spectrum(lam: Sequence[float], rtol: float = 1e-9) -> Case:
    """Eigenvalues with dense eigenvectors that are known exactly."""
    V = rational_orthogonal(len(lam))
    K = product([[v * Fraction(x) for v, x in zip(row, lam, strict=True)] for row in V], transposed(V))
    return Case(SpectralDPP(np.array(lam, float), floats(V)), exact_table(K), rtol)


def diagonal(p: Sequence[float]) -> Case:
    K = [[Fraction(x) * (i == j) for j in range(len(p))] for i, x in enumerate(p)]
    return Case(SpectralDPP.from_K(np.diag(p)), exact_table(K))


def from_rows(B: Rational, rtol: float) -> Case:
    """L = B Bᵀ, from its factor."""
    L = product(B, transposed(B))
    n = len(L)
    inverse = eliminated([[L[i][j] + (i == j) for j in range(n)] for i in range(n)])[1]
    return Case(SpectralDPP.from_factor(floats(B)), exact_table(product(L, inverse)), rtol, atol=1e-13)


def near_duplicates(apart: Fraction) -> Case:
    """The last two items are the first two, or have rows at this distance from them."""
    B = [[Fraction(int(x), 4) for x in row] for row in np.random.default_rng(1).integers(-4, 5, (5, 6))]
    for item in (3, 4):
        B[item] = [x + apart * (column == item) for column, x in enumerate(B[item - 3])]
    return from_rows(B, 1e-6 if apart else 1e-9)


def certain_and_independent() -> Case:
    """An item in every set, one in none, and two that exclude each other and of which every set has one."""
    half, rest = Fraction(1, 2), [Fraction(3, 10), ONE, Fraction(0)]
    K = [[half, half, *[Fraction(0)] * 3], [half, half, *[Fraction(0)] * 3]]
    K += [[rest[i - 2] * (i == j) for j in range(5)] for i in range(2, 5)]
    return Case(SpectralDPP.from_K(floats(K)), exact_table(K))


CASES: dict[str, Callable[[], Case]] = {
    "full rank": lambda: spectrum([0.1, 0.3, 0.5, 0.7, 0.9, 0.95]),
    "rank-deficient": lambda: spectrum([0, 0, 0.3, 0.5, 0.7, 0.9]),
    "rank two of eight": lambda: spectrum([0, 0, 0, 0, 0, 0, 0.5, 0.9]),
    "one eigenvalue at 1": lambda: spectrum([0.1, 0.3, 0.5, 0.7, 0.9, 1]),
    "two eigenvalues at 1": lambda: spectrum([0.1, 0.3, 0.5, 0.7, 1, 1]),
    "one at 1, two at 0": lambda: spectrum([0, 0, 0.3, 0.5, 0.7, 1]),
    "projection": lambda: spectrum([0, 0, 0, 1, 1, 1]),
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
