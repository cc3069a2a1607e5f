"""One step of Adam, each number read and written once."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types

NUMBERS = types.float32[::1]


@njit(
    types.void(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    nogil=True,
    cache=True,
    fastmath={"contract", "reassoc", "arcp", "nsz"},
    error_model="numpy",
)
def adam(at, mean, square, gradient, numbers):  # type: ignore[no-untyped-def]
    """Upwards, in place. `numbers` are the ridge, what is kept of the mean and of the square, the rate over what the
    mean is short of, and the inverse of what the square is short of."""
    ridge, keep, keep_square, rate, grown = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    one, least = np.float32(1), np.float32(1e-8)
    for i in range(len(at)):
        slope = gradient[i] - ridge * at[i]
        mean[i] = keep * mean[i] + (one - keep) * slope
        square[i] = keep_square * square[i] + (one - keep_square) * slope * slope
        at[i] += rate * mean[i] / (np.float32(math.sqrt(square[i] * grown)) + least)
