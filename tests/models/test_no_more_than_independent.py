"""Models that are not better than independent items have a caution."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.models.record import Provenance, Training
from helpers.command import both

P = np.linspace(0.3, 0.1, 12)


def drawn(n: int, seed: int, p: Any = P, *, apart: bool = False) -> dl.Baskets:
    """Return baskets of independent items, or with `apart` the first two never together."""
    X = np.random.default_rng(seed).random((n, len(p))) < p
    X[:, 1] &= ~(X[:, 0] & apart)
    return dl.Baskets.from_matrix(X, [f"item {i}" for i in range(len(p))])


@pytest.fixture(scope="module")
def mixture() -> dl.Mixture:
    """Of independent items, from which it learned what is not there."""
    return dl.fit(drawn(600, 0), segments=3, rng=0).model  # type: ignore[return-value]


def test_what_was_learned_from_independent_items_is_no_more_than_those(mixture: dl.Mixture, tmp_path: Path) -> None:
    assert mixture.learned.log_likelihood - mixture.learned.independent_log_likelihood > 0.02  # type: ignore[operator]
    assert np.abs(mixture.lift - 1).max() > 0.1
    assert mixture.caution
    mixture.save(tmp_path / "m.safetensors")
    assert dl.load(tmp_path / "m.safetensors").caution == mixture.caution
    assert not dl.Mixture(mixture.distribution, mixture.items).caution  # without training data there is no test


def test_independent_items_by_their_law_are_so_whatever_made_them() -> None:
    assert dl.fit_dpp(drawn(200, 0), shrinkage=1).model.caution
    same = np.tile([[0.3, -0.5, 0.1]], (2, 1))
    kinds = np.array([[2.0, -2.0, 0.1], [-2.0, 2.0, 0.1]])
    for likes, expected in ((same, True), (kinds, False)):
        model = dl.Mixture.from_arrays([0.5, 0.5], likes, np.zeros((3, 3)), nonempty=True)
        assert bool(model.caution) == expected


def test_one_pair_that_is_kept_apart_is_more() -> None:
    baskets = drawn(600, 0, apart=True)
    for result in (dl.fit(baskets, segments=1, rng=0), dl.fit_dpp(baskets, shrinkage=0.3, rng=0)):
        assert not result.model.caution


@pytest.mark.parametrize("apart", [False, True])
def test_one_pair_of_very_many_is_enough(apart: bool) -> None:
    """The sum over all pairs would not show it."""
    X = np.zeros((40, 40))
    X[:2, :2] = 1
    model = dl.Mixture.from_arrays([1.0], np.full((1, 40), -1.5), X)
    training = Training.of(drawn(700, 0, np.full(40, 0.18), apart=apart))
    assert bool(model.with_record(model.learned, training).caution) != apart


def test_baskets_that_it_was_not_learned_from_decide(mixture: dl.Mixture) -> None:
    for gain, error, expected in ((0.2, 0.01, False), (0.015, 0.01, True), (-0.1, 0.01, True)):
        learned = replace(mixture.learned, unseen_gain=gain, unseen_error=error)
        model = mixture.with_record(learned, mixture.training)
        assert bool(model.caution) == expected
    assert "-0.100 ± 0.020" in model.caution


def test_less_than_a_hundredth_of_a_nat_on_what_it_was_learned_from_is_nothing() -> None:
    K = np.diag([0.5, 0.5])
    K[0, 1] = K[1, 0] = 0.1
    for gain, expected in ((0.0099, True), (0.0101, False)):
        learned = Provenance(log_likelihood=-2.0 + gain, independent_log_likelihood=-2.0)
        assert bool(dl.DPP.from_K(K).with_record(learned, None).caution) == expected


@pytest.mark.slow
def test_every_command_that_answers_says_so_and_fit_keeps_what_it_measured(tmp_path: Path) -> None:
    file, model = tmp_path / "orders.txt", tmp_path / "m.safetensors"
    file.write_text("\n".join(",".join(basket) for basket in drawn(900, 2) if len(basket)))
    report, _ = both("fit", file, "--format", "lines", "--segments", 2, "--seed", 0, "--holdout", 0.4, "-o", model)
    assert report["independent"] is True
    assert dl.load(model).learned.unseen_gain == pytest.approx(report["test"]["gain"])
    for call in (("recommend", model, "item 0"), ("describe", model)):
        answer, text = both(*call)
        assert answer["caution"]
        assert " ".join(answer["caution"].split()) in " ".join(text.split())
