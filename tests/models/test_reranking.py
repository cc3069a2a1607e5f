"""Reranking the candidates of another recommender, against a plain greedy search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpplearn import DPP, InputError, Mixture
from dpplearn.arrays import Floats
from dpplearn.distributions.spectral import SpectralDPP
from helpers.catalogues import dense_form
from helpers.problems import as_mixture, random_kernel, random_low_rank, random_mixture

N = 9
NAMES = [f"item {i}" for i in range(N)]


def with_an_interaction_each() -> Mixture:
    """Return a mixture whose segments have different interactions."""
    parts = [random_mixture(1, N, seed) for seed in (1, 2, 3)]
    X = np.array([3 * part.components.interaction.X[0] + 2 * np.eye(N) for part in parts])
    return Mixture.from_arrays([0.5, 0.3, 0.2], np.zeros((3, N)), X, items=NAMES)


MODELS: dict[str, Callable[[], DPP | Mixture]] = {
    "dpp": lambda: DPP(random_kernel(np.random.default_rng(0), N), NAMES),
    "dpp, nonempty": lambda: DPP(random_kernel(np.random.default_rng(1), N), NAMES, nonempty=True),
    "mixture": lambda: as_mixture(random_mixture(2, N), NAMES),
    "mixture, an interaction each": with_an_interaction_each,
    "low-rank": lambda: as_mixture(random_low_rank(2, N), NAMES),
    "low-rank, an interaction each": lambda: as_mixture(random_low_rank(2, N + 1), [*NAMES, "x"]).restrict(NAMES),
}


def similarity(model: DPP | Mixture) -> tuple[Floats, Floats]:
    """Return the weights and the matrices S_c."""
    matrices = model.L[None] if isinstance(model, DPP) else dense_form(model.distribution.components).interaction.C
    weights = model.distribution.weights if len(matrices) > 1 else np.ones(1)
    d = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    return weights, matrices / d[:, :, None] / d[:, None, :]


def plain_greedy(model: DPP | Mixture, candidates: list[int], worth: Floats, k: int, strength: float) -> list[int]:
    weights, S = similarity(model)

    def value(Y: list[int]) -> float:
        minors = [np.linalg.det(each[np.ix_(Y, Y)]) for each in S]
        return float(worth[Y].sum() + strength * np.log(weights @ minors))

    chosen: list[int] = []
    while len(chosen) < min(k, len(candidates)):
        others = [i for i in candidates if i not in chosen]
        chosen.append(max(others, key=lambda i: value([*chosen, i])))
    return chosen


@pytest.mark.parametrize("name", MODELS)
def test_reranking_is_the_greedy_search_for_quality_and_interaction(name: str) -> None:
    """Several users with different numbers of candidates."""
    model, rng = MODELS[name](), np.random.default_rng(5)
    candidates = [rng.permutation(N)[:n].tolist() for n in (9, 1, 5, 8, 9, 9)]
    worth = rng.standard_normal((6, N)) / 2
    items = [[model.items[i] for i in each] for each in candidates]
    scores = [np.exp(row[each]) for row, each in zip(worth, candidates, strict=True)]
    for strength in (0.3, 4.0):
        found = model.rerank(items, scores, 4, strength)
        expected = [plain_greedy(model, each, row, 4, strength) for each, row in zip(candidates, worth, strict=True)]
        assert found == [[model.items[i] for i in each] for each in expected]
        assert found == [model.rerank(each, of_it, 4, strength) for each, of_it in zip(items, scores, strict=True)]


def test_without_strength_it_is_the_plain_order_of_the_scores() -> None:
    """Also where scores differ by less than their logarithms do, are equal, or 0."""
    scores = np.array([1e300, np.nextafter(1e300, np.inf), 0, 0.5, 0.5, 1e-300, 0, 7, 0.5])
    expected = [NAMES[i] for i in np.argsort(-scores, kind="stable")]
    assert MODELS["mixture, an interaction each"]().rerank(NAMES, scores, N, strength=0) == expected


def test_duplicates_come_last_and_are_not_lost() -> None:
    """A set with both duplicates has probability zero, as has a set larger than the rank."""
    L = np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
    model = DPP.from_L(L, ["crib", "same crib", "monitor"])
    assert model.rerank(["crib", "same crib", "monitor"], [1, 0.9, 1e-6]) == ["crib", "monitor", "same crib"]
    low_rank = DPP.from_factor(np.random.default_rng(0).standard_normal((8, 2)))
    found = low_rank.rerank(range(8), np.arange(8, 0, -1), 8)
    assert sorted(found) == list(range(8))
    assert found[2:] == sorted(found[2:])  # by score, once nothing else tells them apart


def test_an_item_of_probability_zero_is_taken_as_independent() -> None:
    """Whatever rounding has left of it in the eigenvectors."""
    V = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0.6e-17, -0.8e-17, 1]])
    model = DPP(SpectralDPP(np.array([0.5, 0.5, 0]), V))
    assert model.rerank([0, 1, 2], [1, 0.5, 0.85]) == [0, 2, 1]


def test_where_no_set_is_empty_by_the_kernel_itself_it_is_the_limit() -> None:
    """An eigenvalue of K at 1, for which there is no L."""
    V = np.linalg.qr(np.random.default_rng(3).standard_normal((6, 6)))[0]
    lam = np.array([1.0, 0.95, 0.5, 0.4, 0.3, 0.2])
    near = DPP(SpectralDPP(np.where(lam == 1, 1 - 1e-7, lam), V))
    scores = np.random.default_rng(4).random((20, 6))
    expected = [plain_greedy(near, list(range(6)), np.log(each), 4, 1.0) for each in scores]
    assert DPP(SpectralDPP(lam, V)).rerank([range(6)] * 20, scores, 4) == expected


def test_unknown_candidates_are_refused_or_left_out_with_their_scores() -> None:
    model = MODELS["dpp"]()
    items, scores = ["new", "item 1", "item 2"], [0.2, 0.5, 0.1]
    with pytest.raises(InputError, match="'new'"):
        model.rerank(items, scores)
    assert model.rerank(items, scores, unknown="drop") == ["item 1", "item 2"]


def test_what_cannot_be_reranked_is_refused() -> None:
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (["item 1", "item 1"], [1, 2], {}),
        (["item 1"], [1, 2], {}),
        ([["item 1"], ["item 2"]], [[1]], {}),
        ([["item 1"]], [[1], [2]], {}),
        *((["item 1"], [score], {}) for score in (-1, np.nan, "high")),
        (["item 1"], [np.inf], {"log": True}),
        *((["item 1"], [1], {"strength": strength}) for strength in (-1, None, [1])),
        (["item 1"], [1], {"k": -1}),
        (None, [1], {}),
        ({"item 1"}, [1], {}),
        ("item 1", [1] * 6, {}),
    ]
    for items, scores, more in cases:
        with pytest.raises(InputError):
            MODELS["dpp"]().rerank(items, scores, **more)
