"""Fits to slates: recovery of known parameters, reranking, refused slates."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import dpplearn as dl
from dpplearn.arrays import Floats
from dpplearn.learners.kernels import distribution_of
from dpplearn.learners.slates import fit_slates
from helpers.problems import random_low_rank, random_mixture

N = 12
ITEMS = [f"item {i}" for i in range(N)]


class Choice(NamedTuple):
    intercept: float
    slope: float
    strength: float
    reach: float


TRUTH = Choice(-1.0, 1.5, 0.8, 0.6)


X = np.random.default_rng(0).standard_normal((N, 2))
X /= np.linalg.norm(X, axis=1, keepdims=True)
SIMILARITY = X @ X.T
TABLE = pd.DataFrame({"item": ITEMS, **dict(zip(ITEMS, SIMILARITY, strict=True))}).sample(frac=1, random_state=0)


def kernel(choice: Choice, alike: Floats, scores: Floats) -> Floats:
    S = choice.strength * np.exp((alike - 1) / choice.reach**2)
    np.fill_diagonal(S, 1)
    d = np.exp((choice.intercept + choice.slope * scores) / 2)
    return np.asarray(np.outer(d, d) * S)


def made(n_slates: int, choice: Choice = TRUTH, seed: int = 0) -> list[tuple[list[str], Floats, list[str]]]:
    rng, found = np.random.default_rng(seed), []
    for _ in range(n_slates):
        places, scores = rng.choice(N, 8, replace=False), rng.standard_normal(8)
        L = kernel(choice, SIMILARITY[np.ix_(places, places)], scores)
        labels = [ITEMS[i] for i in places]
        found.append((labels, scores, dl.DPP.from_L(L, labels).sample(rng=rng, threads=1)))
    return found


@pytest.mark.slow
def test_parameters_of_synthetic_slates_are_recovered_with_calibrated_standard_errors() -> None:
    z = []
    for seed in range(12):
        fit = fit_slates(made(120, seed=seed), TABLE)
        assert fit.converged
        numbers = (fit.intercept, fit.slope, fit.strength, fit.reach)
        z.append([(each.value - true) / each.standard_error for each, true in zip(numbers, TRUTH, strict=True)])
    assert np.all(np.abs(np.array(z).mean(axis=0)) < 0.8)
    spread = np.array(z).std(axis=0)
    assert np.all((spread > 0.5) & (spread < 1.6))
    assert fit.shown


@pytest.mark.slow
def test_without_repulsion_none_is_found_and_scores_alone_rank() -> None:
    shown = []
    for seed in range(10):
        fit = fit_slates(made(100, TRUTH._replace(strength=0.0), seed), TABLE)
        shown.append(fit.shown)
        assert fit.log_likelihood >= fit.independent_log_likelihood
        if not fit.shown:
            assert fit.rerank(ITEMS, np.arange(N, dtype=float).tolist(), k=N) == ITEMS[::-1]
    assert sum(shown) <= 2


@pytest.mark.parametrize("kind", ["dpp", "mixture", "low-rank"])
def test_a_model_reranks_by_the_kernel_that_the_slates_say(kind: str) -> None:
    S = 0.9 * SIMILARITY + 0.1 * np.eye(N)
    model: dl.DPP | dl.Mixture = dl.DPP.from_L(S, ITEMS)
    if kind != "dpp":
        kernel_of = random_mixture if kind == "mixture" else random_low_rank
        given = kernel_of(2, N)
        model, X = dl.Mixture(distribution_of(given), ITEMS), given.components.interaction.X[0]
        S = np.eye(N) + (X + X.T) / 2
    d = np.sqrt(S.diagonal())
    fit, scores = fit_slates(made(150), model), np.random.default_rng(0).standard_normal(N)
    choice = Choice(0.0, fit.slope.value, fit.strength.value if fit.shown else 0.0, fit.reach.value)
    L, taken = kernel(choice, np.minimum(S / np.outer(d, d), 1), scores), []
    for _ in range(5):  # the greedy choice by determinants
        free = [i for i in range(N) if i not in taken]
        taken.append(max(free, key=lambda i: np.linalg.det(L[np.ix_([*taken, i], [*taken, i])])))
    assert model.rerank(ITEMS, scores.tolist(), k=5, strength=fit) == [ITEMS[i] for i in taken]


def test_a_table_of_slates_says_the_same_as_lists(tmp_path: Path) -> None:
    slates = made(60)
    rows = [
        (f"s{number}", item, score, int(item in chosen))
        for number, (items, scores, chosen) in enumerate(slates)
        for item, score in zip(items, scores, strict=True)
    ]
    table = pd.DataFrame(rows, columns=["slate", "item", "score", "chosen"])
    table.to_csv(tmp_path / "slates.csv", index=False)
    expected = fit_slates(slates, TABLE)
    for source in (table, tmp_path / "slates.csv"):
        assert repr(fit_slates(source, TABLE)) == repr(expected)


def test_invalid_slates_are_refused() -> None:
    for slates in (
        [],
        [(["item 0"], [1.0, 2.0], [])],
        [(["item 0"], [1.0], ["item 1"])],
        [(["item 0", "item 0"], [1.0, 2.0], [])],
        [(["item 0"], [np.nan], [])],
        [(["item 0"], [1.0], [])],
        iter([(["item 0"], [1], [])]),
        {"slate": [1], "item": ["item 0"], "score": [1]},
        {"slate": [1], "item": ["item 0"], "score": [1], "chosen": ["maybe"]},
        {"slate": [1, 1], "item": [None, "item 1"], "score": [1, 2], "chosen": [1, 0]},
    ):
        with pytest.raises(dl.InputError):
            fit_slates(slates, TABLE)


def test_a_fit_is_used_with_the_similarity_that_it_was_made_with() -> None:
    model = dl.DPP.from_L(0.9 * SIMILARITY + 0.1 * np.eye(N), ITEMS)
    own, of_model = fit_slates(made(40), TABLE), fit_slates(made(40), model)
    with pytest.raises(dl.InputError):
        model.rerank(ITEMS, np.ones(N), strength=own)
    with pytest.raises(dl.InputError):
        of_model.rerank(ITEMS, np.ones(N).tolist())
    with pytest.raises(dl.InputError):
        model.rerank(ITEMS, np.ones(N), strength=of_model, log=True)
    unknown = [(["elsewhere"], [1.0], ["elsewhere"])]
    with pytest.raises(dl.InputError, match="'elsewhere'"):
        fit_slates(unknown, model)


def test_scores_that_determine_the_choice_show_no_repulsion() -> None:
    """The likelihood then has no maximum in the slope."""
    rng, slates = np.random.default_rng(0), []
    for _ in range(200):
        scores = rng.standard_normal(6)
        slates.append((ITEMS[:6], scores, [item for item, score in zip(ITEMS, scores, strict=False) if score > 0]))
    kinds = dict(zip(ITEMS, "aabbcc", strict=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.InputWarning)
        warnings.simplefilter("error", RuntimeWarning)
        fit = fit_slates(slates, kinds)
    assert np.isfinite([fit.log_likelihood, fit.independent_log_likelihood]).all()
    assert not fit.shown


def test_the_unit_of_the_scores_does_not_matter_and_equal_scores_have_no_slope() -> None:
    one, *others = (
        fit_slates([(items, scores * unit, chosen) for items, scores, chosen in made(60)], TABLE)
        for unit in (1, 1e200, 0)
    )
    assert others[0].slope.value * 1e200 == pytest.approx(one.slope.value, rel=1e-6)
    assert others[0].log_likelihood == pytest.approx(one.log_likelihood, abs=1e-9)
    assert others[1].slope.value == pytest.approx(0, abs=1e-9)
    assert np.isnan(others[1].slope.standard_error)
    assert np.isfinite(others[1].intercept.value)
