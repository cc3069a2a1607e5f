"""Low-rank fits: a known mixture is found from its samples; the choice of the learner, its gradient and its batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Stop
from dpplearn.arrays import Floats
from dpplearn.distributions.interaction import absorbed_core, repelling_and_attracting, weighted_gram
from dpplearn.learners.kernels import Segments, distribution_of
from dpplearn.learners.low_rank import LowRankProblem, batch_weights, low_rank
from dpplearn.learners.settings import MixtureSettings, validation_fraction

N = 10
Z = np.zeros((N, 3))
Z[2:4, 0] = 2  # substitutes
Z[0, 1], Z[1, 2] = 2, 2  # complements
LIKES = np.where(np.arange(N) < 5, 1.2, -1.2)
SEGMENTS = np.stack([-1.5 + LIKES, -1.5 - LIKES])
TRUTH = Segments.low_rank(np.array([0.6, 0.4]), SEGMENTS, Z, repelling_and_attracting(1, 1))
ALL_SETS = Baskets.from_lists([[i for i in range(N) if mask >> i & 1] for mask in range(1, 2**N)], n_items=N)
ASKED: dict[str, Any] = {"segments": 2, "rank": 1, "attraction": 1}


def drawn(n: int, seed: int) -> Baskets:
    p = np.exp(distribution_of(TRUTH, nonempty=True).log_prob(ALL_SETS))
    counts = np.random.default_rng(seed).multinomial(n, p / p.sum())
    return Baskets(ALL_SETS.indices, ALL_SETS.offsets, counts.astype(float), ALL_SETS.catalogue)


def components(model: dl.Mixture) -> Any:
    return model.distribution.components


DATA, FEW = drawn(50_000, 0), drawn(600, 1)


@pytest.mark.slow
def test_a_known_mixture_is_found_from_its_samples() -> None:
    truth = distribution_of(TRUTH, nonempty=True)
    fresh = drawn(50_000, 2)
    learned = dl.fit(DATA, **ASKED, rng=0)
    without = dl.fit(DATA, segments=2, rank=0, attraction=0, rng=0)
    best = truth.mean_log_likelihood(fresh)
    assert learned.model.distribution.mean_log_likelihood(fresh) > best - 0.01
    assert without.model.distribution.mean_log_likelihood(fresh) < best - 0.05  # so that this tests the interaction
    assert learned.stop is Stop.PLANNED


def test_low_rank_fits_are_for_large_catalogues_or_on_request() -> None:
    assert dl.fit(FEW, rng=0, max_iter=2).model.learned.learner == "mixture"
    assert dl.fit(FEW, rng=0, max_iter=2, attraction=3).model.learned.learner == "low-rank"
    dense, many = (MixtureSettings().task(Baskets.from_lists([[0]], n_items=n)).problem for n in (300, 301))
    assert (dense.segments, dense.rank, dense.attraction) == (10, 20, True)
    assert (many.segments, many.repelling, many.attracting) == (30, 8, 96)
    sizes = {50: 0, 100: 10, 1000: 100, 10_000: 200, 100_000: 2000, 10**7: 5000}
    assert {n: round(validation_fraction(n) * n) for n in sizes} == sizes


def test_rare_items_are_independent_and_nothing_is_impossible() -> None:
    rare = Baskets.together([DATA, Baskets.from_lists([[0, 10]] * 19, n_items=12)])
    model = dl.fit(rare, **ASKED, rng=0).model
    assert components(model).interaction.active.tolist() == list(range(10))
    assert np.isfinite(model.distribution.log_prob(Baskets.from_lists([[10, 11], list(range(12))], n_items=12))).all()
    enough = Baskets.from_lists([[0, 1]] * 20 + [[2]] * 57)  # 20/77 · 77 is below 20
    assert LowRankProblem(enough).active.tolist() == [0, 1, 2]


def test_a_start_with_other_items_is_taken_up() -> None:
    first = dl.fit(DATA, **ASKED, rng=0)
    longer = Baskets.from_lists([list(each) for each in DATA.subset(DATA.weights > 0)], n_items=N + 1)
    again = dl.fit(longer, start=first.model, rng=0, max_iter=0)
    assert again.model.n_segments == 2
    np.testing.assert_array_equal(components(again.model).interaction.Z[:N], components(first.model).interaction.Z)
    np.testing.assert_allclose(components(again.model).log_odds[:, :N], components(first.model).log_odds)


RNG = np.random.default_rng(0)
LISTS = [RNG.choice(30, size, replace=False).tolist() for size in [0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 13, 29] * 3]
OF_ALL_SIZES = Baskets.from_lists(LISTS, n_items=30, weights=RNG.uniform(0.5, 2, len(LISTS)))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("repelling", "attracting"), [(0, 1), (1, 0), (8, 9)])
def test_the_gradient_is_the_slope(repelling: int, attracting: int, threads: int) -> None:
    """Of the mean of log det C_Y over a batch less the weighted log Z_c, along a random direction."""
    problem = LowRankProblem(OF_ALL_SIZES, threads, False, 3, repelling, attracting)
    problem.__dict__["active"] = np.arange(30)  # all items, also rare ones
    Z, omega = 0.5 * RNG.standard_normal((30, problem.columns)).astype(np.float32), problem.core
    log_odds, of_segments = RNG.standard_normal((3, 30)) - 1, np.array([0.7, 0.2, 0.4])
    batch = np.where(np.arange(len(LISTS)) % 2, OF_ALL_SIZES.weights, 0)

    def value(Z: Floats) -> float:
        C = np.eye(30) + Z @ omega @ Z.T
        log_dets = [np.linalg.slogdet(C[np.ix_(Y, Y)])[1] for Y in LISTS]
        minors = batch / batch.sum() @ log_dets
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
    baskets = dl.datasets.make_registries("safety", 300, rng=0)
    found = dl.fit(baskets, segments=2, attraction=3, rng=0)
    assert found.model.distribution.components.interaction.rank > 0
    assert np.isfinite(found.log_likelihood)


@pytest.mark.parametrize("nonempty", [False, True])
def test_one_segment_without_interaction_is_independent_items(nonempty: bool) -> None:
    problem = LowRankProblem(OF_ALL_SIZES.subset(OF_ALL_SIZES.sizes >= nonempty), None, nonempty, 1, 0, 0)
    *_, last = low_rank(problem.initial("random", RNG), problem)
    assert last.log_likelihood == pytest.approx(problem.log_likelihood(problem.baseline()), abs=1e-5)
