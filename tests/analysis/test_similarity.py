"""Lift by similarity: counts, expected counts, and verdicts on data of known interactions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

import dpplearn as dl
from dpplearn.analysis.similarity import lift_by_similarity
from helpers.command import answer

KINDS = {f"item {i}": f"kind {i // 3}" for i in range(12)}
SAME = np.array([[float(i // 3 == j // 3) for j in range(12)] for i in range(12)])


REPELLING = dl.DPP.from_L(0.4 * (0.2 * np.eye(12) + 0.8 * SAME), list(KINDS))
INDEPENDENT = dl.DPP.from_K(0.15 * np.eye(12), list(KINDS), nonempty=True)


def drawn(dpp: dl.DPP, n: int, seed: int = 0) -> dl.Baskets:
    return dl.Baskets.from_lists(dpp.sample(n, rng=seed), items=list(KINDS))


def test_pairs_are_counted_as_they_stand_in_the_baskets() -> None:
    baskets = dl.Baskets.from_lists([["a", "b", "c"], ["a", "b"], ["c"], []], weights=[1, 2, 3, 4])
    S = np.array([[1, 0.2, 0.6], [0.2, 1, 0.0], [0.6, 0, 1]])
    found = lift_by_similarity(baskets, S)
    assert [(each.low, each.high, each.n_pairs, each.observed) for each in found.bins] == [
        (-1, 0, 1, 1),
        (0.1, 0.3, 1, 3),
        (0.5, 0.7, 1, 1),
    ]
    m = {"a": 0.3, "b": 0.3, "c": 0.4}
    for each, (i, j) in zip(found.bins, [("b", "c"), ("a", "b"), ("a", "c")], strict=True):
        assert each.expected == pytest.approx(10 * m[i] * m[j])


def test_items_of_a_kind_that_avoid_each_other_repel_and_shuffled_kinds_say_nothing() -> None:
    found = lift_by_similarity(drawn(REPELLING, 800), KINDS)
    assert found.verdict == "repel"
    assert found.bins[-1].ratio < 0.65  # the lift of two items of a kind is 0.56
    # kinds of which no two items were of one kind before: a control
    other = lift_by_similarity(drawn(REPELLING, 800), {item: f"kind {i % 3}" for i, item in enumerate(KINDS)})
    assert other.bins[-1].ratio > 0.9


def test_items_that_people_of_one_kind_buy_attract() -> None:
    rng = np.random.default_rng(0)
    lists = [[f"item {3 * kind + i}" for i in range(3) if rng.random() < 0.6] for kind in rng.integers(4, size=500)]
    found = lift_by_similarity(dl.Baskets.from_lists(lists, items=list(KINDS)), KINDS)
    assert found.verdict == "attract"


@pytest.mark.slow
def test_of_independent_items_intervals_contain_a_lift_of_1() -> None:
    """Each of 30 does with probability 0.95; fewer than 25 do with probability below 0.004."""
    inside = []
    for seed in range(30):
        alike = lift_by_similarity(drawn(INDEPENDENT, 400, seed), KINDS).bins[-1]
        inside.append(alike.ratio_low <= 1 <= alike.ratio_high)
    assert np.sum(inside) >= 25


def test_too_few_expected_pairs_are_too_little_data() -> None:
    assert lift_by_similarity(drawn(INDEPENDENT, 8), KINDS).verdict == "too little data"


def test_the_program_says_it_from_kinds_and_from_a_square_table(tmp_path: Path) -> None:
    baskets = drawn(REPELLING, 300)
    pandas.DataFrame(baskets.to_table()).to_csv(tmp_path / "b.csv", index=False)
    pandas.Series(KINDS, name="type").to_csv(tmp_path / "kinds.csv", index_label="item")
    pandas.DataFrame(SAME, [*KINDS], [*KINDS]).to_csv(tmp_path / "square.csv", index_label="item")
    report = answer("diagnose", tmp_path / "b.csv", "--quiet", "--similarity", tmp_path / "kinds.csv")
    assert report["similarity"]["verdict"] == "repel"
    assert lift_by_similarity(baskets, str(tmp_path / "square.csv")) == lift_by_similarity(baskets, KINDS)


def test_weights_that_are_not_counts_stand_for_their_effective_number_of_baskets() -> None:
    lists = [["cot", "bib"], ["crib", "bib"], ["cot"], ["crib"]] * 50
    kinds = {"cot": "bed", "crib": "bed", "bib": "meal"}
    unweighted = lift_by_similarity(dl.Baskets.from_lists(lists), kinds)
    for unit in (1e-4, 1.0, 1e6):
        weights = unit * np.random.default_rng(0).uniform(0.9, 1.1, len(lists))
        found = lift_by_similarity(dl.Baskets.from_lists(lists, weights=weights), kinds)
        assert found.verdict == "repel"
        assert sum(each.observed for each in found.bins) == pytest.approx(100, rel=0.05)
        assert found.bins[-1].ratio_high == pytest.approx(unweighted.bins[-1].ratio_high, rel=0.05)
