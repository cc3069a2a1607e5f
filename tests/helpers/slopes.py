"""Whether the remainder of an expansion falls as fast as its order says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def assert_slope(remainder: Callable[[float], float], order: int, first: float) -> None:
    """remainder(η) falls like η^order as η is halved."""
    steps = first * 0.5 ** np.arange(5)
    slopes = np.diff(np.log([remainder(step) for step in steps])) / np.diff(np.log(steps))
    assert np.all(np.abs(slopes - order) < 0.15), slopes


def assert_slope_two(remainder: Callable[[float], float], first: float) -> None:
    assert_slope(remainder, 2, first)
