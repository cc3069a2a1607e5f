"""The low-rank learner: gradient by differences, batches, and one segment without interaction."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import Baskets, fit
from dpplearn.arrays import Floats
from dpplearn.datasets import make_registries
from dpplearn.distributions.interaction import absorbed_core, repelling_and_attracting, weighted_gram
from dpplearn.learners.low_rank import LowRankProblem, batch_weights, low_rank

RNG = np.random.default_rng(0)
N = 30
LISTS = [RNG.choice(N, size, replace=False).tolist() for size in [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 13, 29] * 3]
BASKETS = Baskets.from_lists(LISTS, n_items=N, weights=RNG.uniform(0.5, 2, len(LISTS)))
SHAPES = [(0, 1), (1, 0), (8, 9)]


def rows(repelling: int, attracting: int) -> Floats:
    return np.asarray(0.5 * RNG.standard_normal((N, repelling + 2 * attracting)), dtype=np.float32)


def log_minor(Z: Floats, omega: Floats, basket: list[int]) -> float:
    return float(np.linalg.slogdet(np.eye(len(basket)) + Z[basket] @ omega @ Z[basket].T)[1])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("repelling", "attracting"), SHAPES)
def test_the_gradient_is_the_slope(repelling: int, attracting: int, threads: int) -> None:
    """Of the mean of log det C_Y over a batch less the weighted log Z_c, along a random direction."""
    Z, omega = rows(repelling, attracting), repelling_and_attracting(repelling, attracting)
    problem = LowRankProblem(BASKETS, threads, False, 3, repelling, attracting)
    problem.__dict__["active"] = np.arange(N)  # all items, also rare ones
    log_odds, of_segments = RNG.standard_normal((3, N)) - 1, np.array([0.7, 0.2, 0.4])
    batch = np.where(np.arange(len(BASKETS)) % 2, BASKETS.weights, 0)

    def value(Z: Floats) -> float:
        minors = sum(w * log_minor(Z, omega, Y) for w, Y in zip(batch / batch.sum(), LISTS, strict=True))
        norms = [absorbed_core(omega, weighted_gram(Z, 1 / (1 + np.exp(-each))))[0] for each in log_odds]
        return float(minors - of_segments @ norms)

    found, _ = problem.gradient(Z, batch, log_odds, of_segments)
    direction = RNG.standard_normal(Z.shape)
    step = 1e-4
    slope = (value(Z + step * direction) - value(Z - step * direction)) / (2 * step)
    assert float(np.vdot(found, direction)) == pytest.approx(slope, abs=1e-4 * float(np.linalg.norm(found)))


def test_batches_divide_the_weight_of_every_basket_evenly() -> None:
    weights = np.array([1.0, 1, 1, 0.4, 2.5, 40, 41.3, 1000])
    each = np.array([batch_weights(weights, number, 40, np.random.default_rng(3)) for number in range(40)])
    np.testing.assert_allclose(each.sum(axis=0), weights)
    assert np.all(np.ptp(each, axis=0) <= 1 + 1e-12)
    assert [len(np.flatnonzero(column)) for column in each.T] == [1, 1, 1, 1, 3, 40, 40, 40]
    first = {int(np.argmax(column)) for column in each.T[:3]}
    assert len(first) > 1  # and not all in the same


def test_few_baskets_may_leave_a_batch_without_one() -> None:
    """Of forty batches, each of which takes a step unless it is empty, as one is here."""
    baskets = make_registries("safety", 300, rng=0)
    found = fit(baskets, segments=2, attraction=3, rng=0)
    assert found.model.distribution.components.interaction.rank > 0
    assert np.isfinite(found.log_likelihood)


@pytest.mark.parametrize("nonempty", [False, True])
def test_one_segment_without_interaction_is_independent_items(nonempty: bool) -> None:
    problem = LowRankProblem(BASKETS.subset(BASKETS.sizes >= nonempty), None, nonempty, 1, 0, 0)
    *_, last = low_rank(problem.initial("random", RNG), problem)
    assert last.log_likelihood == pytest.approx(problem.log_likelihood(problem.baseline()), abs=1e-5)
