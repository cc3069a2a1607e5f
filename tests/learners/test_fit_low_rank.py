"""Low-rank fits: a known mixture is found from its samples, and the learner is chosen by the number of items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, Stop
from dpplearn.distributions.interaction import repelling_and_attracting
from dpplearn.learners.kernels import Segments, distribution_of
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


def test_a_start_with_other_items_is_taken_up() -> None:
    first = dl.fit(DATA, **ASKED, rng=0)
    longer = Baskets.from_lists([list(each) for each in DATA.subset(DATA.weights > 0)], n_items=N + 1)
    again = dl.fit(longer, start=first.model, rng=0, max_iter=0)
    assert again.model.n_segments == 2
    np.testing.assert_array_equal(components(again.model).interaction.Z[:N], components(first.model).interaction.Z)
    np.testing.assert_allclose(components(again.model).log_odds[:, :N], components(first.model).log_odds)
