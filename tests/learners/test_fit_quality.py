"""fit_quality: marginals, weights, standard errors and refused options."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError, Stop
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
