"""Sampling of a posterior: its mode, importance sampling from a Student distribution there, and slice sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.errors import InputError
from dpplearn.learners.posterior.density import Density

FREEDOM = 7  # degrees of the Student distribution: its tails are heavier than those of a posterior
DIFFERENCE = 1e-3  # of parameters for the curvature, in standard deviations of the prior
MAX_STEPS = 500
MAX_SD = 1.0  # standard deviation of any direction, in those of the prior
WARM_UP = 100  # sweeps that are discarded
WIDTH = 2.0  # of the first interval, in standard deviations
MAX_STEPS_OUT = 40  # widths of the largest interval


@dataclass(frozen=True, eq=False)
class Around:
    """θ = mode + A z: coordinates in which the posterior is about standard normal."""

    mode: Floats
    A: Floats  # (n_parameters, n_parameters)

    def at(self, z: Floats) -> Floats:
        """Return the parameters at coordinates z, one row each or a single one."""
        return np.asarray(self.mode + z @ self.A.T)

    @property
    def covariance(self) -> Floats:
        return np.asarray(self.A @ self.A.T)


def mode_of(density: Density) -> Around:
    """Find the mode by L-BFGS from the prior mean, and A from the curvature there."""
    from scipy.optimize import minimize

    mean, sd = density.kernel.mean, density.kernel.sd
    if not np.isfinite(density(mean)):
        raise InputError(
            f"the kernel makes some basket impossible at the prior mean {mean.tolist()}; L must be positive definite "
            "there: add to its diagonal, or pass another prior"
        )

    def negative(z: Floats) -> tuple[float, Floats]:
        value, gradient = density.with_gradient(mean + sd * z)
        return (-value, -gradient * sd) if np.isfinite(value) else (1e300, np.zeros(len(z)))

    found = minimize(negative, np.zeros(len(mean)), jac=True, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
    return Around(mean + sd * found.x, _spread(density, mean + sd * found.x))


def _spread(density: Density, mode: Floats) -> Floats:
    """Return A with A Aᵀ = (−H)⁻¹; no direction is wider than the prior."""
    sd, rows = density.kernel.sd, []
    for row in range(len(mode)):
        move = np.zeros(len(mode))
        move[row] = DIFFERENCE * sd[row]
        ahead, behind = (density.with_gradient(mode + each)[1] * sd for each in (move, -move))
        rows.append((ahead - behind) / (2 * DIFFERENCE))
    H = np.array(rows)
    values, vectors = np.linalg.eigh(-(H + H.T) / 2)  # in units of the prior
    return np.asarray(sd[:, None] * vectors / np.sqrt(np.maximum(values, 1 / MAX_SD**2)))


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws with weights that sum to 1, and the Pareto shape of the weights, which are reliable up to 0.7."""

    draws: Floats  # (n_draws, n_parameters)
    weights: Floats  # (n_draws,)
    pareto_k: float


def importance_draws(density: Density, around: Around, n: int, rng: np.random.Generator) -> Weighted:
    """Draw from a Student distribution at the mode, with Pareto-smoothed importance weights. [VSGYG24]"""
    p = len(around.mode)
    normal, chi = rng.standard_normal((n, p)), rng.chisquare(FREEDOM, n)
    z = normal * np.sqrt(FREEDOM / chi)[:, None]
    log_q = -(FREEDOM + p) / 2 * np.log1p((z**2).sum(axis=1) / FREEDOM)
    draws = around.at(z)
    ratios = np.array([density(theta) for theta in draws]) - log_q
    possible = np.isfinite(ratios)
    weights = np.zeros(n)
    log_weights, pareto_k = smoothed(ratios[possible])
    weights[possible] = np.exp(log_weights - log_weights.max())
    return Weighted(draws, weights / weights.sum(), pareto_k)


def smoothed(log_ratios: Floats) -> tuple[Floats, float]:
    """Return log-weights with the largest replaced by quantiles of a Pareto distribution, and its shape."""
    try:
        from arviz_stats.base.array import array_stats
    except ImportError as error:
        raise InputError(f'a posterior needs {error.name}: pip install "dpplearn[bayes]"') from None
    found, shape = array_stats.psislw(log_ratios.max() - log_ratios)  # which takes log-likelihoods left out, not ratios
    return np.asarray(found, dtype=float), float(shape)


def slice_draws(density: Callable[[Floats], float], around: Around, n: int, rng: np.random.Generator) -> Floats:
    """Return the states after n sweeps over all coordinates, after a warm-up, (n, n_parameters). [Neal03]"""
    z = np.zeros(len(around.mode))
    height = density(around.at(z))
    kept = np.empty((n, len(z)))
    for sweep in range(WARM_UP + n):
        directions, _ = np.linalg.qr(rng.standard_normal((len(z), len(z))))  # random orthogonal
        for direction in directions.T:
            z, height = slice_move(lambda at: density(around.at(at)), z, height, direction, rng)
        if sweep >= WARM_UP:
            kept[sweep - WARM_UP] = z
    return around.at(kept)


def slice_move(
    density: Callable[[Floats], float], z: Floats, height: float, direction: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return a point of the slice {density > level} along a line: step out, then shrink to rejected points."""
    level = height - rng.exponential()
    low = -WIDTH * rng.random()
    high = low + WIDTH
    # At most MAX_STEPS_OUT - 1 steps out in all, divided at random between the sides: the interval is then as likely
    # from any other point of it, which detailed balance needs. [Neal03, figure 3]
    left = int(rng.integers(MAX_STEPS_OUT))
    right = MAX_STEPS_OUT - 1 - left
    while left > 0 and density(z + low * direction) > level:
        low, left = low - WIDTH, left - 1
    while right > 0 and density(z + high * direction) > level:
        high, right = high + WIDTH, right - 1
    while True:
        t = rng.uniform(low, high)
        there = z + t * direction
        value = density(there)
        if value > level:
            return there, value
        low, high = (t, high) if t < 0 else (low, t)
