"""The spectra on which the tests run everything, with the truth about them in rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers import oracle

Rational = NDArray[Any]  # of fractions

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
        self.V, self.lam = rational_orthogonal(len(lam)), np.array([Fraction(x) for x in lam])
        self.kernel = SpectralDPP(np.array(lam, dtype=float), self.V.astype(float))

    @cached_property
    def K(self) -> Rational:
        return (self.V * self.lam) @ self.V.T

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
    return K - np.diag([int(i not in Y) for i in range(len(K))])


def exact_table(K: Rational) -> Floats:
    """P(Y) = |det(K − I_Ȳ)| of all subsets, (2^n,)."""
    return np.array([float(abs(eliminated(minus_outside(K, Y))[0])) for Y in oracle.subsets(len(K))])


def rational_orthogonal(n: int, seed: int = 0) -> Rational:
    """Cayley's (I − S)(I + S)⁻¹ for a skew S of thirds."""
    lower = np.tril(np.random.default_rng(seed).integers(-3, 4, (n, n)), -1)
    plus = np.eye(n, dtype=int) + (lower - lower.T) * Fraction(1, 3)
    return plus.T @ eliminated(plus)[1]  # (I + S)ᵀ is I − S


def eliminated(A: Rational) -> tuple[Fraction, Rational]:
    """The determinant, and the inverse if that is not zero, by Gauss-Jordan elimination."""
    n, det = len(A), Fraction(1)
    work = np.hstack([A, np.eye(n, dtype=int)])
    for j in range(n):
        best = next((i for i in range(j, n) if work[i, j]), None)
        if best is None:
            return Fraction(0), work[:0]
        if best != j:
            work[[j, best]], det = work[[best, j]], -det
        det *= work[j, j]
        work[j] = work[j] / work[j, j]
        for i in {*range(n)} - {j}:
            work[i] = work[i] - work[i, j] * work[j]
    return det, work[:, n:]


@cache
def rotation(n: int, seed: int = 0) -> Floats:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
