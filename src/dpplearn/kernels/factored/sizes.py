"""The law of |Y| under a factored kernel, and items given a size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.errors import InputError
from dpplearn.kernels.factored.beside import shares
from dpplearn.kernels.factored.circle import CLOSE, FARTHEST, Circle, Complex, circle_of, inside
from dpplearn.kernels.factored.conditioning import NO_SHARE
from dpplearn.kernels.factored.kernel import FactoredKernel, quadratic
from dpplearn.kernels.nonsymmetric import sizes as dense
from dpplearn.kernels.nonsymmetric.sizes import DEVIATIONS

SMALL = 150  # items; below, all eigenvalues take less time
LOG_LEAST = -30 * np.log(10)  # below, a size has probability 0 here
LOG_NOTHING = LOG_LEAST - 12 * np.log(10)  # what a segment may leave out
TRUSTED = 1e-4  # of the probability of the likeliest size on a circle: what is less likely has fewer digits
REACH = 3  # standard deviations from the last trusted size to the middle of the next ones
MOST_COMMON = 20_000  # items, each in a sum of its own at every point of a circle


def log_size_distribution(kernel: FactoredKernel) -> Floats:
    """log P(|Y| = k) for k = 0..N; in large catalogues, −inf where that is below 1e-30."""
    if kernel.n_items <= SMALL:
        return dense.log_size_distribution(kernel.dense())
    each = [log_sizes_of_segment(kernel, c) for c in range(kernel.n_segments)]
    row = np.logaddexp.reduce(kernel.log_weights[:, None] + each, axis=0)
    return np.where(row < LOG_LEAST, -np.inf, row)


def log_sizes_of_segment(kernel: FactoredKernel, segment: int) -> Floats:
    """log P(|Y| = k given segment c), from as many circles as it takes to have digits in every size."""
    n, circle = kernel.n_items, circle_of(kernel, segment)
    row = np.full(n + 1, -np.inf)
    around = Ring.of(circle, 1.0)
    low, high = around.trusted
    around.fill(row, low, high)
    left, right = around, around
    while low > 0 and row[low] > LOG_NOTHING:
        left = Ring.of(*circle_for(circle, max(low - REACH * left.spread, 0.5)))
        end = min(left.trusted[0], low - 1)
        left.fill(row, end, low - 1)
        low = end
    while high < n and row[high] > LOG_NOTHING:
        right = Ring.of(*circle_for(right.circle, min(high + REACH * right.spread, n - 0.5)))
        end = max(right.trusted[1], high + 1)
        right.fill(row, high + 1, end)
        high = end
    return row


@dataclass(frozen=True)
class Ring:
    """Points z on |z| = t around which det(I + zL) has been evaluated; the other half are conjugates."""

    circle: Circle
    t: float
    mean: float
    spread: float
    n_points: int
    z: Complex  # half of the points
    log_values: Complex  # log det(I + zL) there, but for what all share
    S: Complex

    @classmethod
    def of(cls, circle: Circle, t: float) -> Ring:
        """As many points as sizes spread over, so that what they fold over is below rounding."""
        mean, variance = circle.moments(t)
        spread = np.sqrt(max(variance, 1.0))
        n_points = min(circle.kernel.n_items + 1, int(np.ceil(DEVIATIONS * spread)) + 1)
        z = t * np.exp(2j * np.pi * np.arange(n_points // 2 + 1) / n_points)
        return cls(circle, t, mean, float(spread), n_points, z, *circle.log_ratio(z))

    @cached_property
    def values(self) -> Complex:
        return np.asarray(np.exp(self.log_values - self.log_values[0].real))

    @cached_property
    def log_sizes(self) -> tuple[int, Floats]:
        """The first of the sizes, and log P(|Y| = k) under t·L of as many as there are points."""
        first = int(np.clip(round(self.mean) - self.n_points // 2, 0, self.circle.kernel.n_items + 1 - self.n_points))
        P = np.fft.irfft(np.conj(self.values), self.n_points)
        with np.errstate(divide="ignore"):
            return first, np.log(np.maximum(P[(first + np.arange(self.n_points)) % self.n_points], 0))

    @property
    def trusted(self) -> tuple[int, int]:
        """The sizes from which, and to which, nearly all digits are right."""
        first, log_P = self.log_sizes
        inside = np.flatnonzero(log_P >= log_P.max() + np.log(TRUSTED))
        return first + int(inside[0]), first + int(inside[-1])

    def log_size(self, k: Ints) -> Floats:
        """log P(|Y| = k) under L."""
        first, log_P = self.log_sizes
        circle, kernel = self.circle, self.circle.kernel
        log_odds = kernel.log_odds[circle.segment].astype(float) + circle.shift
        log_Z = self.log_values[0].real + np.logaddexp(0, log_odds).sum() - kernel.log_normalisers[circle.segment]
        return np.asarray(log_P[k - first] + log_Z - k * (np.log(self.t) + circle.shift))

    def fill(self, row: Floats, low: int, high: int) -> None:
        row[low : high + 1] = self.log_size(np.arange(low, high + 1))


def circle_for(circle: Circle, size: float) -> tuple[Circle, float]:
    """A circle of the same segment, and the t for which a set has about this many items on average under t·L."""
    t = circle.tilt(size)
    while t >= FARTHEST * (1 - CLOSE):
        circle = circle_of(circle.kernel, circle.segment, circle.shift + np.log(FARTHEST))
        if len(circle.common) > MOST_COMMON:
            raise InputError(
                f"sets of {size:.0f} items are so unlikely under this model, with {circle.kernel.n_items} items, that "
                "no answer is found in reasonable time; ask for a smaller k"
            )
        t = circle.tilt(size)
    return circle, t


def rings_of_size(kernel: FactoredKernel, k: int) -> tuple[Floats, list[Ring]]:
    """How likely segments are given |Y| = k, 0 < k < N; and of each the ring on which this size is a likely one."""
    rings = [Ring.of(*circle_for(circle_of(kernel, c), k)) for c in range(kernel.n_segments)]
    log_P = np.array([ring.log_size(np.array([k]))[0] for ring in rings])
    return shares(kernel.log_weights + log_P), rings


def inclusion_given_size(kernel: FactoredKernel, k: int) -> Floats:
    """P(i ∈ Y given |Y| = k) for every item, 0 < k < N.

    Σ_k P(i ∈ Y, |Y| = k) z^k = det(I + zL)/Z · K_ii(z), K_ii(z) = w_i + w_i (1 − w_i) z_i T(z) z_iᵀ.
    """
    if kernel.n_items <= SMALL:
        return dense.inclusion_given_size(kernel.dense(), k)
    share, rings = rings_of_size(kernel, k)
    found = np.zeros(kernel.n_items)
    for c in np.flatnonzero(share > NO_SHARE).tolist():
        found += share[c] * _of_segment(rings[c], k)
    return np.clip(found, 0, 1)


def _of_segment(ring: Ring, k: int) -> Floats:
    circle, omega, r = ring.circle, ring.circle.omega, len(ring.circle.omega)
    numbers = np.arange(len(ring.z))
    twice = np.where((numbers == 0) | (2 * numbers == ring.n_points), 1, 2)
    weights = twice * ring.values * np.exp(-2j * np.pi * numbers * k / ring.n_points)
    weights = weights / weights.real.sum()
    plus_one = np.eye(r) + ring.S @ omega
    T = np.linalg.solve(plus_one.transpose(0, 2, 1), np.broadcast_to(omega.T + 0j, plus_one.shape)).transpose(0, 2, 1)
    found = np.empty(circle.kernel.n_items)
    for group in circle.groups:
        h = inside(ring.z[:, None])(group.points)
        M = ((weights[:, None] * h * (1 - group.points * h)).T @ T.reshape(len(T), -1)).real.reshape(-1, r, r)
        rows = circle.kernel.factors[group.items].astype(float)
        each = np.array([quadratic(rows, matrix) for matrix in M]).T + (weights @ h).real
        found[group.items] = (group.basis * each).sum(axis=1)
    p = circle.p[circle.common]
    w = p * inside(ring.z[:, None])(p)
    each = np.array([quadratic(circle.rows, matrix) for matrix in T])
    found[circle.common] = (weights @ (w + w * (1 - w) * each)).real
    return found
