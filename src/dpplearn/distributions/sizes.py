"""The distribution of |Y| under one component.

Dense: |Y| has the generating function Π_j (1 + μ_j z)/(1 + μ_j) over the eigenvalues μ_j of L. A conjugate pair is one
factor (1 + 2 Re(μ) z + |μ|² z²)/|1 + μ|². All coefficients are nonnegative, so in log space nothing cancels.

Low-rank: with w_i(z) = p_i z/(1 + p_i (z − 1)) and S(z) = Zᵀ diag(w(z)) Z,

    E z^|Y| = Π_i (1 + p_i (z − 1)) · det(I + S(z) Ω)/det(I + S(1) Ω)

is evaluated at points of the unit circle and transformed. Sums over rare items are series in p:
w = z Σ_j p^(j+1) (1 − z)^j, so that a few matrices Zᵀ diag(p^(j+1)) Z serve all points.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats
from dpplearn.distributions.components import sigmoid
from dpplearn.distributions.interaction import LowRank, absorbed_core, weighted_gram

Complex = npt.NDArray[np.complex128]

BISECTIONS = 200
DEVIATIONS = 20  # standard deviations of |Y| that the points of a circle cover
RARE = 0.1  # largest p of an item in the series
N_TERMS = 25  # of the series: (2 RARE)^25 is below rounding, and few items need more than some
LEAST = 1e-14  # probability of a size below which the transform has no correct digits
MAX_NEWTON_STEPS = 60


def log_sizes_of_eigenvalues(eigenvalues: Complex) -> Floats:
    """Return log P(|Y| = k) for k = 0..N."""
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
    """Return the product of two polynomials given by the logarithms of their coefficients."""
    out = row + factor[0]
    for power, coefficient in enumerate(factor[1:], 1):
        out[power:] = np.logaddexp(out[power:], row[:-power] + coefficient)
    return out


def tilt_to_size(eigenvalues: Complex | Floats, size: float) -> float:
    """Return t such that E|Y| = size under t L, by bisection in log t."""
    size = min(max(size, 1e-9), len(eigenvalues) - 1e-9)
    low, high = -700.0, 700.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        t = np.exp(middle)
        if (t * eigenvalues / (1 + t * eigenvalues)).real.sum() < size:
            low = middle
        else:
            high = middle
    return float(np.exp(middle))


def low_rank_log_sizes(log_odds: Floats, low_rank: LowRank) -> Floats:
    """Return log P(|Y| = k) for k = 0..N under a low-rank component; −inf for sizes of a probability below 1e-14."""
    p, core = sigmoid(log_odds), low_rank.core[0]
    mean, variance = low_rank_moments(p, low_rank)
    n_points = min(len(p) + 1, int(np.ceil(DEVIATIONS * np.sqrt(max(variance, 1.0)))) + DEVIATIONS)
    # points of the upper half of the unit circle; the others are conjugate
    z = np.exp(2j * np.pi * np.arange(n_points // 2 + 1) / n_points)
    order = np.argsort(p, kind="stable")  # rare items come first
    p, rows = p[order], low_rank.Z[order].astype(float)
    n_rare = int(np.searchsorted(p, RARE, side="right"))
    log_values = np.log1p(p[n_rare:] * (z[:, None] - 1)).sum(axis=1)
    for power in range(1, N_TERMS + 1):  # log(1 + p (z − 1)) = −Σ_j p^j (1 − z)^j / j
        log_values -= (p[:n_rare] ** power).sum() * (1 - z) ** power / power
    sign, log_det = np.linalg.slogdet(np.eye(len(core)) + _times_real(_weighted_grams(p, rows, n_rare, z), core))
    log_values = log_values + log_det + np.log(sign)
    P = np.fft.irfft(np.exp(np.conj(log_values - log_values[0].real)), n_points)
    sizes = np.arange(n_points) + int(np.clip(round(mean) - n_points // 2, 0, len(p) + 1 - n_points))
    found = np.full(len(p) + 1, -np.inf)
    with np.errstate(divide="ignore"):
        found[sizes] = np.log(np.where(P > LEAST, P, 0))[sizes % n_points]
    return found


def _weighted_grams(p: Floats, rows: Floats, n_rare: int, z: Complex) -> Complex:
    """Return S(z) at points, (points, r, r), from probabilities, ascending, and the rows of Z in that order."""
    grams = []
    for power in range(N_TERMS):  # of the rare items, those whose p (2p)^power is not negligible; |1 − z| is at most 2
        least = (EPSILON / 16) ** (1 / power) / 2 if power else 0.0
        inside = slice(int(np.searchsorted(p[:n_rare], least)), n_rare)
        grams.append(weighted_gram(rows[inside], p[inside] ** (power + 1)).ravel())
    powers = z[:, None] * (1 - z[:, None]) ** np.arange(N_TERMS)
    S = _times_real(powers, np.array(grams)).reshape(len(z), rows.shape[1], rows.shape[1])
    p, rows = p[n_rare:], rows[n_rare:]
    for each, point in zip(S, z, strict=True):
        each += _times_real((p * point / (1 + p * (point - 1)))[None, :] * rows.T, rows)
    return S


def low_rank_moments(p: Floats, low_rank: LowRank) -> tuple[float, float]:
    """Return mean and variance of |Y|, tr K and tr K − tr K²; p are the marginals without interaction."""
    S, S2, S3 = (weighted_gram(low_rank.rows, p[low_rank.active] ** power) for power in (1, 2, 3))
    T, U = absorbed_core(low_rank.core[0], S)[1], S - S2
    TU = T @ U
    mean = p.sum() + np.trace(TU)
    return float(mean), float(mean - (p**2).sum() - 2 * (T * (S2 - S3).T).sum() - (TU * TU.T).sum())


def low_rank_tilt(log_odds: Floats, low_rank: LowRank, size: float) -> float:
    """Return log t such that E|Y| is about `size` under t L, by Newton's method."""
    log_t = 0.0
    for _ in range(MAX_NEWTON_STEPS):
        mean, variance = low_rank_moments(sigmoid(log_odds + log_t), low_rank)
        step = float(np.clip(np.log(size / mean) * mean / max(variance, EPSILON), -2, 2))
        log_t += step
        if abs(step) < 0.02:  # the distribution given the size does not depend on t
            break
    return log_t


def low_rank_log_size(log_odds: Floats, low_rank: LowRank, k: int) -> float:
    """Return log P(|Y| = k) from a tilt under which the size is likely."""
    log_t = low_rank_tilt(log_odds, low_rank, k)
    tilted, log_Z = (_log_Z(log_odds + shift, low_rank) for shift in (log_t, 0.0))
    return float(low_rank_log_sizes(log_odds + log_t, low_rank)[k] + tilted - log_Z - k * log_t)


def _log_Z(log_odds: Floats, low_rank: LowRank) -> float:
    return float(np.logaddexp(0, log_odds).sum() + low_rank.absorb(sigmoid(log_odds)[None])[0][0])


def _times_real(a: Complex, b: Floats) -> Complex:
    """Return a @ b without converting b to complex numbers, which would take most of the time."""
    found = np.empty((*a.shape[:-1], b.shape[-1]), dtype=complex)
    found.real, found.imag = np.ascontiguousarray(a.real) @ b, np.ascontiguousarray(a.imag) @ b
    return found
