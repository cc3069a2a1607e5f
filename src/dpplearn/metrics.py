"""Measures of how good a model is."""

from __future__ import annotations

import math


def relative_gain(better: float, base: float) -> float:
    """100·(better − base)/|base|, as [GKFT14] reports log-likelihoods; NaN where that is no number."""
    if not (math.isfinite(better) and math.isfinite(base) and base):
        return math.nan
    return 100 * (better - base) / abs(base)
