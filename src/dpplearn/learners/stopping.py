"""How far a run has still to go, from the log-likelihoods of its steps: what a tolerance is compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence

FEWEST_STEPS = 6  # before which nothing is said


def relative_change(likelihoods: Sequence[float]) -> float:
    """|after − before| / max(|before|, 1e-5) of the last step: the rule of the paper's authors."""
    if len(likelihoods) < 2:
        return math.inf
    before, after = likelihoods[-2:]
    return abs(after - before) / max(abs(before), 1e-5)


def never(likelihoods: Sequence[float]) -> float:
    """For learners that end by themselves."""
    return math.inf


def still_to_gain(likelihoods: Sequence[float], fewest_steps: int = FEWEST_STEPS) -> float:
    """What the second half of the run gained: an estimate, in nats per basket, of what is still to be gained.

    Where what is left falls like 1/t or faster in the number of steps t, it is at most what was gained between t/2
    and t. No scale of the data, of the likelihood or of the steps comes in.
    """
    t = len(likelihoods) - 1
    return likelihoods[t] - likelihoods[t // 2] if t >= fewest_steps else math.inf


def last_gain(likelihoods: Sequence[float]) -> float:
    """What the last step gained: of Newton's method, more than all that is still to come."""
    return likelihoods[-1] - likelihoods[-2] if len(likelihoods) > 1 else math.inf
