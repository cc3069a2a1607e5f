"""Slice sampling, in coordinates in which the posterior is about standard normal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.learners.posterior.laplace import Around

WARM_UP = 100  # sweeps that are discarded
WIDTH = 2.0  # of the first interval, in standard deviations
MAX_STEPS_OUT = 40  # widths of the largest interval


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
