"""Slice sampling in coordinates in which the posterior is about standard normal: for where no simple law is near it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpplearn.arrays import Floats
from dpplearn.tools.progress import SILENT, Progress
from dpplearn.learners.posterior.laplace import Around

WARM_UP = 100  # sweeps that are not kept
WIDTH = 2.0  # of the first interval, in standard deviations
MOST_OUT = 20  # widths to either side


def slice_draws(
    density: Callable[[Floats], float], around: Around, n: int, rng: np.random.Generator, progress: Progress = SILENT
) -> Floats:
    """n sweeps over all coordinates, after some to warm up, (n, n_parameters). [Neal03]"""
    z, bar = np.zeros(len(around.mode)), progress.bar("sampling slices", WARM_UP + n)
    height = density(around.at(z))
    kept = np.empty((n, len(z)))
    for sweep in range(WARM_UP + n):
        turn, _ = np.linalg.qr(rng.standard_normal((len(z), len(z))))  # directions of their own: none is special
        for direction in turn.T:
            z, height = _moved(lambda at: density(around.at(at)), z, height, direction, rng)
        if sweep >= WARM_UP:
            kept[sweep - WARM_UP] = z
        bar.advance()
    return around.at(kept)


def _moved(
    density: Callable[[Floats], float], z: Floats, height: float, direction: Floats, rng: np.random.Generator
) -> tuple[Floats, float]:
    """A point of the slice {density > level} along a line: stepping out, then shrinking to what was rejected."""
    level = height - rng.exponential()
    low = -WIDTH * rng.random()
    high = low + WIDTH
    for _ in range(MOST_OUT):
        if density(z + low * direction) <= level:
            break
        low -= WIDTH
    for _ in range(MOST_OUT):
        if density(z + high * direction) <= level:
            break
        high += WIDTH
    while True:
        t = rng.uniform(low, high)
        there = z + t * direction
        value = density(there)
        if value > level:
            return there, value
        low, high = (t, high) if t < 0 else (low, t)
