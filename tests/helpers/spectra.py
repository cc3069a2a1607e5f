"""The spectra on which the tests run everything, with the truth about them in rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pytest

from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle

Rational = list[list[Fraction]]

SPECTRA = {
    "inside": [0.1, 0.3, 0.5, 0.7, 0.9, 0.95],
    "two at 0": [0, 0, 0.3, 0.5, 0.7, 0.9],
    "one at 1": [0.1, 0.3, 0.5, 0.7, 0.9, 1],
    "two at 1": [0.1, 0.3, 0.5, 0.7, 1, 1],
    "one at 1, two at 0": [0, 0, 0.3, 0.5, 0.7, 1],
    "three at 1, three at 0": [0, 0, 0, 1, 1, 1],
    "one at 1 - 1e-7": [0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-7],
    "one at 1 - 1e-12": [0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-12],
    "two at 1 - 1e-12": [0.1, 0.3, 0.5, 0.7, 1 - 1e-12, 1 - 1e-12],
    "all kinds": [0, 0.3, 0.6, 1 - 1e-7, 1 - 1e-12, 1],
    "two at 1, one near, one at 0": [0, 0.3, 0.5, 1 - 1e-12, 1, 1],
}
every_spectrum = pytest.mark.parametrize("spectrum", SPECTRA)


class Exact:
    """A DPP known without rounding, as its eigenvectors are rational; `kernel` is the same in floating point."""

    def __init__(self, lam: Sequence[float]) -> None:
        self.V = rational_orthogonal(len(lam))
        self.lam = [Fraction(x) for x in lam]
        self.kernel = SpectralDPP(np.array(lam, dtype=float), floats(self.V))

    @cached_property
    def K(self) -> Rational:
        return product([[v * x for v, x in zip(row, self.lam, strict=True)] for row in self.V], transposed(self.V))

    @cached_property
    def P(self) -> Floats:
        """The probability of every subset, each correctly rounded."""
        return exact_table(self.K)

    @property
    def subsets(self) -> list[oracle.Subset]:
        return oracle.subsets(len(self.lam))

    @property
    def n_near(self) -> int:
        """How many eigenvalues are at 1 or within 1e-6 of it."""
        return sum(x > 1 - 1e-6 for x in self.lam)


@cache
def exact(spectrum: str) -> Exact:
    return Exact(SPECTRA[spectrum])


def minus_outside(K: Rational, Y: oracle.Subset) -> Rational:
    """K − I_Ȳ, whose determinant is ±P(Y) and whose inverse is the gradient of log P(Y)."""
    return [[x - (i == j and i not in Y) for j, x in enumerate(row)] for i, row in enumerate(K)]


def exact_table(K: Rational) -> Floats:
    """P(Y) = |det(K − I_Ȳ)| of all subsets, (2^n,)."""
    return np.array([float(abs(eliminated(minus_outside(K, Y))[0])) for Y in oracle.subsets(len(K))])


def rational_orthogonal(n: int, seed: int = 0) -> Rational:
    """Cayley's (I − S)(I + S)⁻¹ for a skew S of thirds."""
    thirds = np.random.default_rng(seed).integers(-3, 4, (n, n)).tolist()
    S = [[Fraction(thirds[i][j] * (i > j) - thirds[j][i] * (j > i), 3) for j in range(n)] for i in range(n)]
    plus = [[S[i][j] + (i == j) for j in range(n)] for i in range(n)]
    return product(transposed(plus), eliminated(plus)[1])  # (I + S)ᵀ is I − S


def eliminated(A: Rational) -> tuple[Fraction, Rational]:
    """The determinant, and the inverse if that is not zero, by Gauss-Jordan elimination."""
    n, det = len(A), Fraction(1)
    work = [[*row, *(Fraction(i == j) for j in range(n))] for i, row in enumerate(A)]
    for j in range(n):
        best = next((i for i in range(j, n) if work[i][j]), None)
        if best is None:
            return Fraction(0), []
        if best != j:
            work[j], work[best], det = work[best], work[j], -det
        pivot = work[j][j]
        det *= pivot
        work[j] = [x / pivot for x in work[j]]
        for i in set(range(n)) - {j}:
            if factor := work[i][j]:
                work[i] = [x - factor * y for x, y in zip(work[i], work[j], strict=True)]
    return det, [row[n:] for row in work]


def product(A: Rational, B: Rational) -> Rational:
    columns = transposed(B)
    return [[sum((a * b for a, b in zip(row, c, strict=True)), Fraction(0)) for c in columns] for row in A]


def transposed(A: Rational) -> Rational:
    return [list(column) for column in zip(*A, strict=True)]


def floats(A: Rational) -> Floats:
    return np.array([[float(x) for x in row] for row in A])


@cache
def rotation(n: int, seed: int = 0) -> Floats:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
