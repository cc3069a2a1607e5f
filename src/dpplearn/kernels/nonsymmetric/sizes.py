"""The law of |Y| under a mixture, in logarithms so that nothing underflows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import Floats
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel

ROUNDS = 200  # of finding a tilt
DEVIATIONS = 18  # of |Y| that points on the circle must span for what they fold over to be below rounding


def log_sizes_of_segments(kernel: MixtureKernel) -> Floats:
    """log P(|Y| = k given segment c), (n_segments, n_items + 1).

    Π_j (1 + z μ_j)/(1 + μ_j) over the eigenvalues of L_c, two that are conjugate as one factor
    (1 + 2 Re μ z + |μ|² z²)/|1 + μ|²: real parts are positive, so every term is, and nothing cancels.
    """
    return np.array([_log_sizes(mu) for mu in kernel.eigenvalues])


def log_size_distribution(kernel: MixtureKernel) -> Floats:
    """log P(|Y| = k) for k = 0..N."""
    return np.asarray(np.logaddexp.reduce(kernel.log_weights[:, None] + log_sizes_of_segments(kernel), axis=0))


def _log_sizes(eigenvalues: npt.NDArray[np.complex128]) -> Floats:
    row = np.full(len(eigenvalues) + 1, -np.inf)
    row[0] = 0
    with np.errstate(divide="ignore"):
        for mu in eigenvalues[eigenvalues.imag == 0].real:
            row = _times(row, [0.0, np.log(mu)]) - np.log1p(mu)
        for mu in eigenvalues[eigenvalues.imag > 0]:
            factor = [0.0, np.log(2 * mu.real), 2 * np.log(abs(mu))]
            row = _times(row, factor) - np.log(abs(1 + mu) ** 2)
    return row


def _times(row: Floats, factor: list[float]) -> Floats:
    """The product of two polynomials, given by the logarithms of their coefficients."""
    out = row + factor[0]
    for power, coefficient in enumerate(factor[1:], 1):
        out[power:] = np.logaddexp(out[power:], row[:-power] + coefficient)
    return out


def tilt(eigenvalues: npt.NDArray[np.complex128], size: float) -> float:
    """The t for which a set has this many items on average under t·L, by bisection in log t."""
    low, high = -700.0, 700.0
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        t = np.exp(middle)
        if (t * eigenvalues / (1 + t * eigenvalues)).real.sum() < size:
            low = middle
        else:
            high = middle
    return float(np.exp(middle))


def inclusion_given_size(kernel: MixtureKernel, k: int) -> Floats:
    """P(i ∈ Y given |Y| = k) for every item, 0 < k < N.

    Σ_k P(i ∈ Y, |Y| = k) z^k = det(I + zL)/Z · (zL (I + zL)⁻¹)_ii. On the circle |z| = t on which size k is the most
    likely, the coefficient of z^k is an average over as many points as the sizes spread over.
    """
    n = kernel.n_items
    with np.errstate(divide="ignore"):
        log_share = kernel.log_weights + log_sizes_of_segments(kernel)[:, k]
    share = np.exp(log_share - log_share.max())
    share /= share.sum()
    found = np.zeros(n)
    for c in np.flatnonzero(share > 0):
        found += share[c] * _of_segment(kernel.L(int(c)), kernel.eigenvalues[c], k)
    return found


def _of_segment(L: Floats, eigenvalues: npt.NDArray[np.complex128], k: int) -> Floats:
    n, t = len(L), tilt(eigenvalues, k)
    inside = t * eigenvalues / (1 + t * eigenvalues)
    spread = np.sqrt(max(float((inside * (1 - inside)).real.sum()), 1.0))
    n_points = min(n + 1, int(np.ceil(DEVIATIONS * spread)) + 1)
    total, of_items = 0.0, np.zeros(n)
    for point in range(n_points // 2 + 1):  # the other half is the conjugate
        z = t * np.exp(2j * np.pi * point / n_points)
        twice = 1 if point == 0 or 2 * point == n_points else 2
        log_ratio = np.log1p(z * eigenvalues).sum() - np.log1p(t * eigenvalues).sum()
        weight = twice * np.exp(log_ratio - 2j * np.pi * point * k / n_points)
        total += weight.real
        of_items += (weight * (1 - np.linalg.inv(np.eye(n) + z * L).diagonal())).real
    return of_items / total
