"""The distribution of |Y| under one component, and marginals given the size.

Dense: |Y| has the generating function Π_j (1 + μ_j z)/(1 + μ_j) over the eigenvalues μ_j of L. A conjugate pair is one
factor (1 + 2 Re(μ) z + |μ|² z²)/|1 + μ|². All coefficients are nonnegative, so in log space nothing cancels.

Low-rank: with w_i(z) = p_i z/(1 + p_i (z − 1)) and S(z) = Zᵀ diag(w(z)) Z,

    E z^|Y| = Π_i (1 + p_i (z − 1)) · det(I + S(z) Ω)/det(I + S(1) Ω)

is evaluated at points of the unit circle and transformed. Sums over rare items are series in p:
w = z Σ_j p^(j+1) (1 − z)^j, so that a few matrices Zᵀ diag(p^(j+1)) Z serve all points.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpplearn.arrays import EPSILON, Floats
from dpplearn.distributions.components import sigmoid
from dpplearn.distributions.interaction import LowRank, absorbed_core, quadratic, weighted_gram

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


def dense_marginals(L: Floats, eigenvalues: Complex, k: int) -> tuple[float, Floats]:
    """Return log P(|Y| = k) and P(i ∈ Y | |Y| = k) for 0 < k < N.

    Σ_k P(i ∈ Y, |Y| = k) z^k = det(I + z L)/Z · (z L (I + z L)⁻¹)_ii, averaged over the circle |z| = t on which E|Y| is
    k. As many points as sizes have probability suffice.
    """
    n, t = len(L), tilt_to_size(eigenvalues, k)
    inside = t * eigenvalues / (1 + t * eigenvalues)
    spread = np.sqrt(max(float((inside * (1 - inside)).real.sum()), 1.0))
    n_points = min(n + 1, int(np.ceil(DEVIATIONS * spread)) + 1)
    total, of_items = 0.0, np.zeros(n)
    for point in range(n_points // 2 + 1):  # the other half is conjugate
        z = t * np.exp(2j * np.pi * point / n_points)
        twice = 1 if point == 0 or 2 * point == n_points else 2
        log_ratio = np.log1p(z * eigenvalues).sum() - np.log1p(t * eigenvalues).sum()
        weight = twice * np.exp(log_ratio - 2j * np.pi * point * k / n_points)
        total += weight.real
        of_items += (weight * (1 - np.linalg.inv(np.eye(n) + z * L).diagonal())).real
    return float(log_sizes_of_eigenvalues(eigenvalues)[k]), np.clip(of_items / total, 0, 1)


class LowRankSizes:
    """|Y| under one component with a low-rank interaction. Rare items come first, the most probable of them last."""

    def __init__(self, log_odds: Floats, low_rank: LowRank) -> None:
        p = sigmoid(log_odds)
        self.mean, variance = low_rank_moments(p, low_rank)
        self.order = np.argsort(p, kind="stable")
        self.p, self.rows = p[self.order], low_rank.Z[self.order].astype(float)
        self.core, self.n_rare = low_rank.core[0], int(np.searchsorted(self.p, RARE, side="right"))
        self.n_points = min(len(p) + 1, int(np.ceil(DEVIATIONS * np.sqrt(max(variance, 1.0)))) + DEVIATIONS)
        # points of the upper half of the unit circle; the others are conjugate
        self.z = np.exp(2j * np.pi * np.arange(self.n_points // 2 + 1) / self.n_points)

    def _rare(self, power: int) -> slice:
        """The rare items whose p (2p)^power is not negligible; |1 − z| is at most 2."""
        least = (EPSILON / 16) ** (1 / power) / 2 if power else 0.0
        return slice(int(np.searchsorted(self.p[: self.n_rare], least)), self.n_rare)

    @cached_property
    def _plus_one(self) -> Complex:
        """I + S(z) Ω, (points, r, r)."""
        r, some = len(self.core), [self._rare(power) for power in range(N_TERMS)]
        grams = [weighted_gram(self.rows[each], self.p[each] ** (power + 1)) for power, each in enumerate(some)]
        powers = self.z[:, None] * (1 - self.z[:, None]) ** np.arange(N_TERMS)
        S = _times_real(powers, np.reshape(grams, (N_TERMS, -1))).reshape(len(self.z), r, r)
        p, rows = self.p[self.n_rare :], self.rows[self.n_rare :]
        for each, z in zip(S, self.z, strict=True):
            each += _times_real((p * z / (1 + p * (z - 1)))[None, :] * rows.T, rows)
        return np.eye(r) + _times_real(S, self.core)

    @cached_property
    def values(self) -> Complex:
        """E z^|Y| at the points."""
        rare, common = self.p[: self.n_rare], self.p[self.n_rare :]
        log_values = np.log1p(common * (self.z[:, None] - 1)).sum(axis=1)
        for power in range(1, N_TERMS + 1):  # log(1 + p (z − 1)) = −Σ_j p^j (1 − z)^j / j
            log_values -= (rare**power).sum() * (1 - self.z) ** power / power
        sign, log_det = np.linalg.slogdet(self._plus_one)
        log_values = log_values + log_det + np.log(sign)
        return np.asarray(np.exp(log_values - log_values[0].real))

    def log_sizes(self) -> Floats:
        """Return log P(|Y| = k) for k = 0..N; −inf for sizes of a probability below 1e-14."""
        first = int(np.clip(round(self.mean) - self.n_points // 2, 0, len(self.p) + 1 - self.n_points))
        P = np.fft.irfft(np.conj(self.values), self.n_points)
        sizes = first + np.arange(self.n_points)
        found = np.full(len(self.p) + 1, -np.inf)
        with np.errstate(divide="ignore"):
            found[sizes] = np.log(np.where(P > LEAST, P, 0))[sizes % self.n_points]
        return found

    def marginals_given_size(self, k: int) -> tuple[float, Floats]:
        """Return P(|Y| = k) and the marginals given it.

        Σ_k P(i ∈ Y, |Y| = k) z^k = E z^|Y| (w_i + w_i (1 − w_i) z_i T(z) z_iᵀ), T = Ω (I + S Ω)⁻¹, where the series of
        w (1 − w) is z (1 − p) Σ_j (j + 1) p^(j+1) (1 − z)^j.
        """
        numbers = np.arange(len(self.z))
        twice = np.where((numbers == 0) | (2 * numbers == self.n_points), 1, 2)
        weights = twice * self.values * np.exp(-2j * np.pi * numbers * k / self.n_points)
        total = weights.real.sum()
        weights = weights / total
        T = np.linalg.solve(self._plus_one.transpose(0, 2, 1), self.core.T[None]).transpose(0, 2, 1)
        found = np.zeros(len(self.p))
        for power in range(N_TERMS):
            inside = self._rare(power)
            p, factor = self.p[inside], weights * self.z * (1 - self.z) ** power
            B = np.einsum("z,zij->ij", factor, T).real
            found[inside] += p ** (power + 1) * (
                factor.sum().real + (power + 1) * (1 - p) * quadratic(self.rows[inside], B)
            )
        p, rows = self.p[self.n_rare :], self.rows[self.n_rare :]
        for weight, z, each in zip(weights, self.z, T, strict=True):
            w = p * z / (1 + p * (z - 1))
            found[self.n_rare :] += (weight * (w + w * (1 - w) * np.einsum("ij,ij->i", rows @ each, rows))).real
        marginals = np.empty(len(found))
        marginals[self.order] = np.clip(found, 0, 1)
        return total / self.n_points, marginals


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


def low_rank_marginals(log_odds: Floats, low_rank: LowRank, k: int) -> tuple[float, Floats]:
    """Return log P(|Y| = k) and P(i ∈ Y | |Y| = k)."""
    log_t = low_rank_tilt(log_odds, low_rank, k)
    probability, marginals = LowRankSizes(log_odds + log_t, low_rank).marginals_given_size(k)
    tilted, log_Z = (_log_Z(log_odds + shift, low_rank) for shift in (log_t, 0.0))
    return float(np.log(probability) + tilted - log_Z - k * log_t), marginals


def _log_Z(log_odds: Floats, low_rank: LowRank) -> float:
    return float(np.logaddexp(0, log_odds).sum() + low_rank.absorb(sigmoid(log_odds)[None])[0][0])


def _times_real(a: Complex, b: Floats) -> Complex:
    """Return a @ b without converting b to complex numbers, which would take most of the time."""
    found = np.empty((*a.shape[:-1], b.shape[-1]), dtype=complex)
    found.real, found.imag = np.ascontiguousarray(a.real) @ b, np.ascontiguousarray(a.imag) @ b
    return found
