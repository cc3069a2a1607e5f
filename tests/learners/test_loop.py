"""The loop: each reason to stop, phases, and the stopping rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpplearn.distributions.spectral import SpectralDPP
from dpplearn.learners.loop import MIN_STEPS, Limits, Run, Step, Stop, relative_change, remaining_gain, run


def follow(
    likelihoods: list[float], *, tol: float = 1e-3, max_iter: int = 100, preliminary: int = 0, stop_at: int = -1
) -> Run:
    kernel, clock = SpectralDPP(np.array([0.5]), np.eye(1)), iter(range(1000))
    steps = (Step(kernel, value, 1.0, 1, preliminary=row < preliminary) for row, value in enumerate(likelihoods))
    limits = Limits(relative_change, tol, max_iter, 50.0)
    return run(steps, limits, lambda: float(next(clock)), lambda now: now.n_iter == stop_at)


def test_each_reason_to_stop_is_told_apart() -> None:
    assert follow([-2.0, -1.0, -0.9999, -0.5]).stop is Stop.TOLERANCE
    assert follow([-2.0, -1.0, -0.5], max_iter=1).stop is Stop.MAX_ITER
    assert follow([-2.0, -1.0]).stop is Stop.NO_ASCENT
    assert follow([-2.0, -1.0, -0.5], stop_at=1).stop is Stop.CALLBACK
    assert follow([-1.0 / (n + 1) for n in range(99)], tol=0).stop is Stop.MAX_SECONDS
    assert follow([0.0, 0.0]).stop is Stop.TOLERANCE  # the change is measured against at least 1e-5


def test_preliminary_steps_are_recorded_and_limited_but_do_not_meet_the_tolerance() -> None:
    values = [-3.0, -2.0, -2.0, -2.0, -2.5, -1.0, -1.0]
    end = follow(values, preliminary=4)
    assert (end.stop, end.n_iter) == (Stop.TOLERANCE, 6)
    np.testing.assert_array_equal(end.history.log_likelihood, values)
    assert follow(values, preliminary=4, max_iter=2).n_iter == 2


GAPS = {"1/t": lambda t: 1 / max(t, 0.5), "1/t²": lambda t: 1 / max(t, 0.5) ** 2, "0.7^t": lambda t: 0.7**t}


@pytest.mark.parametrize("gap", GAPS.values(), ids=GAPS)
def test_what_is_left_is_no_more_than_what_the_second_half_gained(gap: Any) -> None:
    def values(n: int, limit: float = -5.0) -> list[float]:
        return [limit - gap(t) for t in range(n + 1)]

    for t in range(MIN_STEPS, 60):
        assert gap(t) <= remaining_gain(values(t)) + 1e-12
    assert remaining_gain(values(400)) < remaining_gain(values(100)) / 3 + 1e-12
    assert remaining_gain(values(20, -1000.0)) == pytest.approx(remaining_gain(values(20)))  # in nats


def test_the_rules_say_nothing_after_too_few_steps() -> None:
    assert remaining_gain([-5.0] * MIN_STEPS) == math.inf
    assert remaining_gain([-5.0] * (MIN_STEPS + 1)) == 0
    assert relative_change([-2.0]) == math.inf
    assert relative_change([-9.0, -2.0, -1.0]) == 0.5
    assert relative_change([0.0, -1e-5]) == 1  # measured against at least 1e-5
