"""fit_quality: marginals, weights, standard errors and refused options; its optimum, and ridge by evidence."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError, Stop
from dpplearn.data.features import read_features
from dpplearn.learners.loop import Step
from dpplearn.learners.quality.distribution import best_weights
from dpplearn.learners.quality.fit_quality import Blend, Profile, QualityProblem, errors_of, quality
from helpers.parts import in_parts

ITEMS = ["bib", "cot", "crib", "mug", "sled", "toy"]
KINDS = {"cot": "bed", "crib": "bed", "mug": "meal", "bib": "meal", "sled": None, "toy": None}
TABLE = {"item": ITEMS, "price": [3, 90, 150, 7, 40, 12], "soft": [1, 0, 0, 0, 0, 1]}


def baskets(empty: bool = True, n: int = 400) -> Baskets:
    rng = np.random.default_rng(0)
    lists = []
    for _ in range(n):
        held = set(np.flatnonzero(rng.random(6) < [0.4, 0.5, 0.4, 0.3, 0.2, 0.1]).tolist())
        held -= {2} if {1, 2} <= held and rng.random() < 0.9 else set()
        lists.append([ITEMS[i] for i in held])
    return Baskets.from_lists([each for each in lists if each or empty], items=ITEMS)


BASKETS = baskets()


def fit(data: Any = BASKETS, **options: Any) -> dl.FitResult:
    return dl.fit_quality(data, **{"similarity": {"kind": KINDS}, **options})


def test_the_model_has_the_frequencies_of_the_items_and_repels_those_that_are_alike() -> None:
    result = fit(smooth=False)
    np.testing.assert_allclose(result.model.marginals(), BASKETS.frequencies(), atol=1e-7)
    assert (result.stop, result.converged) == (Stop.TOLERANCE, True)
    assert result.log_likelihood == pytest.approx(result.model.log_likelihood(BASKETS), abs=1e-10)
    assert result.log_likelihood > result.independent_log_likelihood
    strength = {row.name: row.weight for row in result.quality.strength_rows}
    assert strength["kind"] > 0.2
    assert result.model.substitutes("cot")[0].item == "crib"
    filled = baskets(empty=False)
    np.testing.assert_allclose(fit(filled, smooth=False).model.marginals(), filled.frequencies(), atol=1e-7)


def test_half_a_basket_more_with_and_without_each_item_leaves_none_impossible() -> None:
    data = Baskets.from_lists(list(BASKETS), items=[*ITEMS, "swing"])
    result = fit(data, similarity="uniform")
    expected = (data.frequencies() * 400 + 0.5) / 401
    np.testing.assert_allclose(result.model.marginals(), expected, atol=1e-7)
    without = fit(data, similarity="uniform", smooth=False)
    assert without.model.marginals()[-1] == 0
    assert without.quality.names == tuple(ITEMS)
    of_nothing = fit(Baskets.from_lists([[], []], items=ITEMS), similarity="uniform")
    np.testing.assert_allclose(of_nothing.model.marginals(), 0.5 / 3, atol=1e-7)


def test_one_similarity_is_taken_as_it_is() -> None:
    S = np.eye(6)
    S[1, 2] = S[2, 1] = 0.7
    result = fit(similarity=S, smooth=False)
    L = result.model.kernel.L
    np.testing.assert_allclose(L / np.sqrt(np.outer(L.diagonal(), L.diagonal())), S, atol=1e-9)
    assert result.quality.strength_names == ()


def test_weights_of_features_are_few_and_have_errors() -> None:
    result = fit(features=TABLE, ridge=0)
    assert result.quality.names == ("(all items)", "price", "soft")
    assert (result.quality.standard_errors > 0).all()
    L, price = result.model.kernel.L, np.array(TABLE["price"], dtype=float)
    u = np.log(L.diagonal())
    F = np.column_stack([np.ones(6), price, TABLE["soft"]])
    np.testing.assert_allclose(F @ np.linalg.lstsq(F, u, rcond=None)[0], u, atol=1e-8)
    shrunk = fit(features=TABLE, ridge=1e7)
    assert np.abs(shrunk.quality.weights[1:]).max() < 1e-3


def test_parts_weights_and_the_order_of_items_change_nothing() -> None:
    whole = fit()
    reordered = fit(Baskets.from_lists(list(BASKETS), items=ITEMS[::-1]), features=TABLE)
    np.testing.assert_allclose(reordered.quality.weights, fit(features=TABLE).quality.weights, atol=1e-8)
    for other in (in_parts(BASKETS), BASKETS.deduplicated()):
        np.testing.assert_allclose(fit(other).quality.weights, whole.quality.weights, atol=1e-7)
        np.testing.assert_allclose(fit(other).quality.standard_errors, whole.quality.standard_errors, rtol=1e-4)


def test_invalid_options_are_refused() -> None:
    for options in (
        {"ridge": "lasso"},
        {"ridge": -1.0},
        {"similarity": {"uniform": KINDS}},
        {"similarity": list(KINDS.values())},
        {"similarity": np.ones((6, 6))},
        {"nonempty": True},
    ):
        with pytest.raises(InputError):
            fit(**options)


def test_standard_errors_of_collinear_features_are_unknown() -> None:
    table = {**TABLE, "price in cents": [100 * price for price in TABLE["price"]]}
    quality = fit(features=table, ridge=0, similarity=np.eye(6)).quality
    known = dict(zip(quality.names, np.isfinite(quality.standard_errors).tolist(), strict=True))
    assert known == {"(all items)": True, "price": False, "soft": True, "price in cents": False}


def test_standard_errors_are_unknown_if_all_baskets_have_one_item() -> None:
    """Given nonempty sets, the weights may fall together without limit."""
    for n, smooth in itertools.product((1, 2, 3), (True, False)):
        result = fit([[item] for item in range(n)] * 10, similarity="uniform", smooth=smooth)
        np.testing.assert_allclose(result.model.marginals(), 1 / n, atol=0.01)
        assert np.isnan(result.quality.standard_errors).all()


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
    together = Baskets.from_lists([[0, 1], [2, 3], [4, 5], [0], [3], [0, 1], []] * 20, n_items=6)
    last = learned(QualityProblem(together, 1, False, blend=by_kind(np.arange(6) // 2)))
    assert last.phi[1] == 0
    assert last.gradient[1] < 0


def test_repulsion_is_found_although_nothing_leads_away_from_where_no_items_are_alike() -> None:
    problem = drawn(1000, 3)
    slopes = problem.profile(np.zeros(2)).gradient
    np.testing.assert_allclose(slopes, [0, -1 / problem.baskets.total_weight], atol=1e-9)  # but for the penalty
    assert learned(problem).phi[1] == pytest.approx(0.6, abs=0.15)


def test_errors_are_the_curvature_of_weights_and_strengths_together() -> None:
    """Against the inverse of the whole information, found by differences of the likelihood itself."""
    problem = drawn(2000, 2, 6)
    end = learned(problem)
    assert (end.phi > 0).all()
    of_weights, of_strengths = errors_of(problem, end.phi, end.theta)
    at, n = np.concatenate([end.theta, end.phi]), problem.baskets.total_weight

    def likelihood(x: np.ndarray) -> float:
        return problem.log_likelihood(problem.kernel(x[6:], x[:6])) - x[7] / n

    h, p = 1e-3, len(at)
    H = np.zeros((p, p))
    for i, j in itertools.combinations_with_replacement(range(p), 2):
        a, b = h * np.eye(p)[i], h * np.eye(p)[j]
        corners = [likelihood(at + s * a + t * b) * s * t for s in (1, -1) for t in (1, -1)]
        H[i, j] = H[j, i] = sum(corners) / (4 * h * h)
    expected = np.sqrt(np.linalg.inv(-H * n).diagonal())
    np.testing.assert_allclose(of_weights, expected[:6], rtol=0.01)
    np.testing.assert_allclose(of_strengths, expected[6:], rtol=0.01)


def test_the_ridge_by_evidence_is_the_one_under_which_the_data_are_likeliest() -> None:
    """For forty items whose quality is of one feature, and eight others that say nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 9))
    p = 1 / (1 + np.exp(2.5 - 0.8 * X[:, 0]))
    baskets = Baskets.from_matrix((rng.random((60, 40)) < p).astype(int))
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    features = read_features({"item": range(40), **columns}, list(range(40)))
    problem = QualityProblem(baskets, 1, False, blend=Blend(np.eye(40)), features=features, ridge=None)

    def log_evidence(ridge: float) -> float:
        """Laplace's: the likelihood and the normal law of the weights at the optimum, and the volume there."""
        target = replace(problem, ridge=ridge).target(np.zeros(0))
        _, distribution, value = best_weights(target)
        _, volume = np.linalg.slogdet(60 * target.information(distribution))
        return float(60 * value + 9 * np.log(ridge) / 2 - volume / 2)

    ridge = problem.with_ridge(np.zeros(0)).ridge
    assert all(log_evidence(ridge) > log_evidence(ridge * factor) for factor in (0.5, 0.9, 1.1, 2))
