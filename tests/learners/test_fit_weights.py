"""Mixing weights of given models: the optimum against enumeration, for any, nonempty and fixed-size sets."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from helpers import oracle
from helpers.problems import random_kernel

N = 5
ITEMS = ["bib", "cot", "crib", "monitor", "pram"]
MODELS = [dl.DPP(random_kernel(np.random.default_rng(seed), N), ITEMS) for seed in range(3)]
SIZES = np.array([len(Y) for Y in oracle.subsets(N)])


@pytest.mark.parametrize("given", ["any", "nonempty", "k"])
def test_the_weights_are_the_optimum_and_the_model_is_their_mixture(given: str) -> None:
    k = 2 if given == "k" else None
    allowed = {"any": SIZES >= 0, "nonempty": SIZES > 0, "k": SIZES == 2}[given]
    P = np.column_stack([oracle.probabilities_from_L(each.kernel.L) * allowed for each in MODELS])  # (2^N, 3)
    P /= P.sum(axis=0)
    rows = np.repeat(np.arange(2**N), np.random.default_rng(0).multinomial(400, P @ [0.5, 0.2, 0.3]))
    fit = dl.fit_weights([[ITEMS[i] for i in oracle.subsets(N)[row]] for row in rows], MODELS, k=k)
    model = fit.model
    assert isinstance(model, dl.Mixture)
    assert model.nonempty == (given == "nonempty")
    found = np.exp([model.log_prob([ITEMS[i] for i in Y], k=k) for Y in oracle.subsets(N)])
    w = np.linalg.lstsq(P, found, rcond=None)[0]
    np.testing.assert_allclose(P @ w, found, atol=1e-12)  # it is a mixture of these laws
    assert w.sum() == pytest.approx(1, abs=1e-9)
    assert w.min() > 0
    gradient = (P[rows] / (P[rows] @ w)[:, None]).mean(axis=0)
    np.testing.assert_allclose(gradient, 1, atol=1e-7)
    assert fit.log_likelihood == pytest.approx(float(np.log(P[rows] @ w).mean()), abs=1e-12)
    assert model.learned.to_gain is not None
    assert model.learned.to_gain <= 1e-8
    assert fit.converged


def test_models_are_matched_by_label_and_their_empty_sets_counted_once() -> None:
    one, other, _ = MODELS
    turned = one.restrict(ITEMS[::-1])
    model = dl.Mixture.of([one, dl.DPP(other.kernel, ITEMS, nonempty=True)], [1, 3])
    P = [oracle.probabilities_from_L(np.asarray(dpp.kernel.L)) for dpp in (one, other)]
    P[1] = np.where(np.arange(2**N) > 0, P[1], 0) / (1 - P[1][0])
    found = np.exp([model.log_prob([ITEMS[i] for i in Y]) for Y in oracle.subsets(N)])
    np.testing.assert_allclose(found, 0.25 * P[0] + 0.75 * P[1], rtol=1e-10)
    again = dl.Mixture.of([one, turned])
    assert again.log_prob(["bib", "pram"]) == pytest.approx(one.log_prob(["bib", "pram"]), rel=1e-10)
    nested = dl.Mixture.of([model, one], [0.5, 0.5])
    assert nested.n_segments == 3
    assert nested.log_prob(["cot"]) == pytest.approx(float(np.log(0.625 * P[0][2] + 0.375 * P[1][2])), rel=1e-10)


def test_invalid_options_are_refused() -> None:
    wrong = [("k", 3), ("k", 0), ("nonempty", True), ("tol", -1)]
    for name, value in (*wrong, *(("models", value) for value in ([], ["em"], 3, {"one": 1}))):
        with pytest.raises(dl.InputError):
            dl.fit_weights([["bib"], ["cot", "crib"], []], **{"models": MODELS, name: value})  # type: ignore[arg-type]


def test_an_impossible_basket_and_a_missing_item_are_named() -> None:
    never = dl.DPP.from_K([[0.5, 0.5], [0.5, 0.5]], ["cot", "crib"])
    with pytest.raises(dl.InputError, match=r"1.*'cot'.*'crib'"):
        dl.fit_weights([["cot"], ["cot", "crib"]], [never])
    with pytest.raises(dl.InputError, match="'pram'"):
        dl.Mixture.of([MODELS[0], MODELS[0].restrict(ITEMS[:4])])


def test_a_basket_whose_probability_is_too_small_for_a_number_is_not_impossible() -> None:
    n, basket = 200, list(range(120))
    rare, rarer = (dl.DPP.from_K(np.eye(n) * p, range(n)) for p in (1e-4, 0.99e-4))
    both = dl.Mixture.of([rare, rarer], [0.5, 0.5])
    of_rarer = 0.99**120 / (1 + 0.99**120)
    expected = 1e-4 * (1 - of_rarer) + 0.99e-4 * of_rarer
    assert both.recommend(basket, k=1)[0].probability == pytest.approx(expected, rel=1e-9)
    given = both.given(include=basket, exclude=[150])
    assert given.marginals()[0] == pytest.approx(expected, rel=1e-6)


def test_a_size_whose_probability_is_too_small_for_a_number_gives_weights() -> None:
    n = 200
    rare = [dl.Mixture.of([dl.DPP.from_K(np.eye(n) * p, range(n))]) for p in (1e-8, 1e-7)]
    fit = dl.fit_weights([list(range(100)), list(range(100, 200))], rare, k=100)
    assert fit.log_likelihood == pytest.approx(fit.independent_log_likelihood, rel=1e-6)
    assert np.isfinite(fit.model.marginals()).all()
