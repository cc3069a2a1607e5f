"""Quality: one optimum, which has the frequencies; monotone steps; standard errors; ridge by evidence."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets
from dpplearn.data.features import read_features
from dpplearn.learners.loop import Step
from dpplearn.learners.quality.distribution import best_weights
from dpplearn.learners.quality.fit_quality import Blend, Profile, QualityProblem, errors_of, quality

N = 6


def drawn(n: int, seed: int, n_items: int = 12, *, nonempty: bool = False) -> QualityProblem:
    """Return the problem of baskets of items that repel each other within kinds, with strengths 0.1 and 0.6."""
    rng = np.random.default_rng(seed)
    kinds = np.arange(n_items) // 3
    d, blend = np.exp(rng.normal(-1, 0.5, n_items) / 2), by_kind(kinds)
    dpp = dl.DPP.from_L(d[:, None] * blend.matrix(np.array([0.1, 0.6])) * d, nonempty=nonempty)
    baskets = Baskets.from_lists(dpp.sample(n, rng=rng), n_items=n_items).deduplicated()
    return QualityProblem(baskets, 1, nonempty, blend=blend)


def by_kind(kinds: np.ndarray) -> Blend:
    alike = (kinds[:, None] == kinds).astype(float)
    return Blend(np.eye(len(kinds)), (np.ones_like(alike), alike), ("uniform", "kind"))


def steps_of(problem: QualityProblem) -> list[Step]:
    return list(quality(problem.initial("", np.random.default_rng(0)), problem))


def learned(problem: QualityProblem) -> Profile:
    return problem.profile(steps_of(problem)[-1].parameters["phi"])


@pytest.mark.parametrize("nonempty", [False, True])
def test_every_step_ascends_and_its_likelihood_is_that_of_its_kernel(nonempty: bool) -> None:
    problem = drawn(500, 1, nonempty=nonempty)
    steps = steps_of(problem)
    values = np.array([step.log_likelihood for step in steps])
    assert np.all(np.diff(values) >= 0)
    last = problem.profile(steps[-1].parameters["phi"])
    assert np.abs(last.gradient).max() < 1e-6  # the KKT conditions: inside, no slope is left
    penalty = last.phi[1] / problem.baskets.total_weight
    assert values[-1] + penalty == pytest.approx(problem.log_likelihood(steps[-1].kernel), abs=1e-10)


def test_a_strength_that_the_data_speak_against_is_exactly_zero_and_wants_to_be_less() -> None:
    together = Baskets.from_lists([[0, 1], [2, 3], [4, 5], [0], [3], [0, 1], []] * 20, n_items=N)
    last = learned(QualityProblem(together, 1, False, blend=by_kind(np.arange(N) // 2)))
    assert last.phi[1] == 0
    assert last.gradient[1] < 0


def test_repulsion_is_found_although_nothing_leads_away_from_where_no_items_are_alike() -> None:
    problem = drawn(1000, 3)
    slopes = problem.profile(np.zeros(2)).gradient
    np.testing.assert_allclose(slopes, [0, -1 / problem.baskets.total_weight], atol=1e-9)  # but for the penalty
    assert learned(problem).phi[1] == pytest.approx(0.6, abs=0.15)


def test_errors_are_the_curvature_of_weights_and_strengths_together() -> None:
    """Against the inverse of the whole information, found by differences of the likelihood itself."""
    problem = drawn(2000, 2, N)
    end = learned(problem)
    assert (end.phi > 0).all()
    of_weights, of_strengths = errors_of(problem, end.phi, end.theta)
    at, n = np.concatenate([end.theta, end.phi]), problem.baskets.total_weight

    def likelihood(x: np.ndarray) -> float:
        return problem.log_likelihood(problem.kernel(x[N:], x[:N])) - x[N + 1] / n

    h, p = 1e-3, len(at)
    H = np.zeros((p, p))
    for i, j in itertools.combinations_with_replacement(range(p), 2):
        a, b = h * np.eye(p)[i], h * np.eye(p)[j]
        corners = [likelihood(at + s * a + t * b) * s * t for s in (1, -1) for t in (1, -1)]
        H[i, j] = H[j, i] = sum(corners) / (4 * h * h)
    expected = np.sqrt(np.linalg.inv(-H * n).diagonal())
    np.testing.assert_allclose(of_weights, expected[:N], rtol=0.01)
    np.testing.assert_allclose(of_strengths, expected[N:], rtol=0.01)


def with_features() -> QualityProblem:
    """Return the problem of forty items whose quality is of one feature, and eight others that say nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9))
    p = 1 / (1 + np.exp(2.5 - 0.8 * X[:, 0]))
    baskets = Baskets.from_matrix((rng.random((60, 40)) < p).astype(int))
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    features = read_features({"item": range(40), **columns}, list(range(40)))
    return QualityProblem(baskets, 1, False, blend=Blend(np.eye(40)), features=features)


def log_evidence(problem: QualityProblem, ridge: float) -> float:
    """Laplace's: the likelihood and the normal law of the weights at the optimum, and the volume there."""
    target = replace(problem, ridge=ridge).target(np.zeros(0))
    _, distribution, value = best_weights(target)
    n = problem.baskets.total_weight
    _, volume = np.linalg.slogdet(n * target.information(distribution))
    return n * value + (target.F.shape[1] - 1) * np.log(ridge) / 2 - volume / 2


def test_the_ridge_by_evidence_is_the_one_under_which_the_data_are_likeliest() -> None:
    problem = with_features()
    ridge = replace(problem, ridge=None).with_ridge(np.zeros(0)).ridge
    best = log_evidence(problem, ridge)
    assert all(best > log_evidence(problem, ridge * factor) for factor in (0.5, 0.9, 1.1, 2))
