"""What learning a mixture maximises: its value by enumeration, its gradient by Taylor slopes in every block."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from dpplearn.learners.mixture.climbing import climb
from dpplearn.learners.mixture.mixture import mixture

from dpplearn import Baskets
from dpplearn.kernels.families import law_of
from dpplearn.learners.mixture.parameters import Parameters, Penalty, Shape
from dpplearn.learners.mixture.problem import MixtureProblem
from dpplearn.learners.mixture.starts import random_numbers
from helpers.slopes import assert_slope_two

N = 6
RNG = np.random.default_rng(1)
SETS = [sorted(RNG.choice(N, size, replace=False).tolist()) for size in RNG.integers(1, N + 1, 60)]
BASKETS = Baskets.from_lists(SETS, n_items=N).weighted(RNG.uniform(0.5, 3, len(SETS)))
PENALTY = Penalty(0.3, 0.7, 0.9)


def problem(segments: int = 3, *, nonempty: bool = True, rank: int = 2, attraction: bool = True) -> MixtureProblem:
    return MixtureProblem(BASKETS, 1, nonempty, segments, rank, attraction, PENALTY)


def somewhere(shape: Shape, seed: int = 0) -> Parameters:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(sum(shape.sizes)) / 2
    return Parameters.of(x, shape)


@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("segments", [1, 3])
def test_its_value_is_the_log_likelihood_less_the_penalties(nonempty: bool, segments: int) -> None:
    given = problem(segments, nonempty=nonempty)
    at = somewhere(given.shape)
    likelihood = law_of(at.kernel(given.shape), nonempty=nonempty).mean_log_likelihood(BASKETS)
    half_baskets = (at.gamma - np.log1p(np.exp(2 * at.gamma))).sum()
    shrunk = 0.3 * (at.U**2).sum() + 0.7 * (at.A**2).sum() + 0.45 * (at.theta**2).sum()
    expected = likelihood + (half_baskets - shrunk) / BASKETS.total_weight
    assert given.objective(at.flat(given.shape))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("block", ["gamma", "theta", "U", "A", "logits", "all"])
@pytest.mark.parametrize("nonempty", [False, True])
@pytest.mark.parametrize("segments", [1, 3])
def test_its_gradient_is_right_in_every_block(block: str, nonempty: bool, segments: int) -> None:
    given = problem(segments, nonempty=nonempty)
    x = somewhere(given.shape).flat(given.shape)
    ends = np.cumsum([0, *given.shape.sizes])
    place = ["gamma", "theta", "U", "A", "logits"].index(block) if block != "all" else None
    direction = np.random.default_rng(2).standard_normal(len(x))
    if place is not None:
        outside = np.ones(len(x), dtype=bool)
        outside[ends[place] : ends[place + 1]] = False
        direction[outside] = 0
    value, gradient = given.objective(x)
    if not direction.any() or (block == "logits" and segments == 1):
        assert gradient[-1] == pytest.approx(0, abs=1e-12)
        return
    assert_slope_two(
        lambda step: abs(given.objective(x + step * direction)[0] - value - step * gradient @ direction), 0.02
    )


def test_numbers_of_a_kernel_give_it_back() -> None:
    shape = Shape(N, 3, N, attraction=True)
    kernel = somewhere(Shape(N, 3, 2), 4).kernel(Shape(N, 3, 2))
    again = Parameters.from_kernel(kernel, shape, PENALTY).kernel(shape)
    for name in ("weights", "log_odds", "interaction"):
        np.testing.assert_allclose(getattr(again, name), getattr(kernel, name), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("attraction", [False, True])
@pytest.mark.parametrize(("segments", "rank"), [(1, 2), (3, 2), (3, 0)])
def test_no_step_falls_and_the_value_is_that_of_the_kernel(segments: int, rank: int, attraction: bool) -> None:
    given = problem(segments, rank=rank, attraction=attraction)
    steps = list(islice(mixture(given.start("random", np.random.default_rng(0)), given), 40))
    values = [step.log_likelihood for step in steps]
    assert np.all(np.diff(values) >= 0)
    assert values[-1] > values[0]
    last = steps[-1].kernel
    assert values[-1] - 1e-12 <= given.log_likelihood(last) < values[-1] + 0.01  # with the least penalty of its kernel
    if not attraction:
        np.testing.assert_allclose(last.interaction[0], last.interaction[0].T, atol=1e-12)


def test_scaled_numbers_are_learned_in_fewer_steps_than_plain_ones() -> None:
    """Of frequent and rare items together, for which the scale is there."""
    rng = np.random.default_rng(0)
    p = np.geomspace(0.01, 0.6, 20)
    baskets = Baskets.from_lists([np.flatnonzero(rng.random(20) < p).tolist() for _ in range(2000)], n_items=20)
    scaled = MixtureProblem(baskets.deduplicated(), 1, False, 2, 3)
    numbers = random_numbers(scaled.shape, scaled.independent_items(), np.random.default_rng(0))
    x, known = numbers.flat(scaled.shape), scaled.scale_at(numbers)
    best = [
        list(islice(climb(scaled.objective, x * scale, scale), 16))[-1].log_likelihood
        for scale in (scaled.scale.flat(scaled.shape), known, np.ones_like(known))
    ]
    assert min(best[:2]) > best[2] + 0.005


def test_items_that_stand_in_for_each_other_are_found_from_the_pairs() -> None:
    """Four kinds of three items, of which nobody takes two: small random numbers take many steps to find that."""
    rng = np.random.default_rng(0)
    lists = [[3 * kind + int(rng.integers(3)) for kind in range(4) if rng.random() < 0.6] for _ in range(1500)]
    given = MixtureProblem(Baskets.from_lists(lists, n_items=12).deduplicated(), 1, False, 1)
    start = given.start("random", np.random.default_rng(0))
    steps = [step.log_likelihood for step in islice(mixture(start, given), 80)]
    assert steps[12] > steps[-1] - 0.05
    numbers = random_numbers(given.shape, given.independent_items(), np.random.default_rng(0))
    scale = given.scale_at(numbers)
    alone = climb(given.objective, numbers.flat(given.shape) * scale, scale)
    assert list(islice(alone, 13))[-1].log_likelihood < steps[-1] - 0.2


def test_items_keep_apart_from_the_start_also_where_segments_explain_it() -> None:
    """Two segments, of those who take one and those who take the other, say of this pair all that there is to say."""
    baskets = Baskets.from_lists([[0], [1]] * 100, n_items=2)
    given = MixtureProblem(baskets.deduplicated(), 1, True, 2, 1)
    C = given.start("random", np.random.default_rng(0)).interaction[0]
    assert C[0, 1] + C[1, 0] > 1


def test_segments_learned_alone_are_near_the_best_where_items_do_not_interact() -> None:
    rng = np.random.default_rng(0)
    p = np.array([[0.6] * 5 + [0.05] * 5, [0.05] * 5 + [0.6] * 5])
    lists = [np.flatnonzero(rng.random(10) < p[rng.integers(2)]).tolist() for _ in range(1000)]
    given = MixtureProblem(Baskets.from_lists(lists, n_items=10).deduplicated(), 1, False, 2, 0, attraction=False)
    values = [step.log_likelihood for step in islice(mixture(given.start("random", rng), given), 100)]
    assert values[0] > values[-1] - 1e-4
    assert values[0] > given.log_likelihood(given.independent_items()) + 0.5


def test_pairs_that_go_together_attract_from_the_start() -> None:
    lists = [[0, 1], [0, 1], [2], [0], [1], [2, 3], [3], []] * 50 + [[0, 1]] * 100
    given = MixtureProblem(Baskets.from_lists(lists, n_items=4).deduplicated(), 1, False, 1)
    skew = given.start("random", np.random.default_rng(0)).interaction[0]
    attraction = np.abs(skew - skew.T)
    assert attraction[0, 1] > 0.2
    assert attraction[0, 2] == 0
