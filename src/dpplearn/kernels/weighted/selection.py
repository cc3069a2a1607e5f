"""Greedy sets of high probability under a mixture by weights."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.kernels.weighted.conditioning import next_item
from dpplearn.kernels.weighted.kernel import WeightedKernel


def greedy_map(kernel: WeightedKernel, k: int | None, include: Ints) -> tuple[Ints, Floats]:
    """Grow a set from `include`, each time by the item that raises the probability most, to k items.

    Without k, until no item raises it further. As long as the set has no probability itself, by the item that is the
    likeliest beside it; gains are then not a number.
    """
    taken: list[int] = []
    gains: list[float] = []
    while len(taken) < (kernel.n_items if k is None else min(k, kernel.n_items)):
        gain, chance = next_item(kernel, np.array(sorted(taken), dtype=np.int64))
        by = chance if np.isnan(gain).any() else gain
        forced = len(taken) < len(include)
        best = int(include[len(taken)]) if forced else int(np.argmax(by))
        if not forced and (not by[best] > 0 or (k is None and gain[best] <= 1)):
            break
        taken.append(best)
        gains.append(float(gain[best]))
    return np.array(taken, dtype=np.int64), np.array(gains)
