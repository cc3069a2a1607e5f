"""How far a run has still to go: what the stopping rules say of sequences whose limit is known."""

from __future__ import annotations

import math

import pytest

from dpplearn.learners.loop import FEWEST_STEPS, last_gain, relative_change, still_to_gain


def left_over_t(t: int) -> float:
    return 1 / max(t, 0.5)


sequences = pytest.mark.parametrize(
    "left",
    [left_over_t, lambda t: left_over_t(t) ** 2, lambda t: 0.7**t, lambda t: 0.3**t],
    ids=["1/t", "1/t²", "0.7^t", "0.3^t"],
)


def likelihoods(left, n_steps: int) -> list[float]:
    """Of a run that ends at −5 if it never stops, after the given number of steps."""
    return [-5 - left(t) for t in range(n_steps + 1)]


@sequences
def test_what_is_left_is_no_more_than_what_the_second_half_gained(left) -> None:
    for t in range(FEWEST_STEPS, 60):
        assert left(t) <= still_to_gain(likelihoods(left, t)) + 1e-12


@sequences
def test_the_figure_falls_as_the_run_goes_on(left) -> None:
    assert still_to_gain(likelihoods(left, 400)) < still_to_gain(likelihoods(left, 100)) / 3 + 1e-12


def test_the_figure_is_in_nats_whatever_the_likelihood() -> None:
    low = [value - 1000 for value in likelihoods(left_over_t, 20)]
    assert still_to_gain(low) == pytest.approx(still_to_gain(likelihoods(left_over_t, 20)))
    assert still_to_gain(low) == pytest.approx(1 / 10 - 1 / 20)


def test_nothing_is_said_after_too_few_steps() -> None:
    assert still_to_gain([-5.0] * FEWEST_STEPS) == math.inf
    assert still_to_gain([-5.0] * (FEWEST_STEPS + 1)) == 0
    assert still_to_gain([-5.0]) == math.inf


def test_the_relative_change_is_of_the_last_step_and_from_the_earlier_value() -> None:
    assert relative_change([-2.0]) == math.inf
    assert relative_change([-9.0, -2.0, -1.0]) == 0.5
    assert relative_change([0.0, -1e-5]) == 1  # measured against at least 1e-5


def test_the_last_gain_is_that_of_the_last_step_and_of_a_start_unknown() -> None:
    assert last_gain([-3.0]) == math.inf
    assert last_gain([-3.0, -2.5, -2.25]) == 0.25
