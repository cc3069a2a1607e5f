"""Baskets in parts come to the same as all of them together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import Baskets, InputError, Parts, read_parts
from dpplearn.data.pairs import pair_counts
from dpplearn.data.weights import effective_number
from helpers.parts import divided, in_parts
from helpers.problems import PROBLEMS

WHOLE = PROBLEMS["sampled from a DPP"]
WEIGHTED = PROBLEMS["weighted"]


def test_the_totals_of_parts_are_those_of_the_whole() -> None:
    for baskets in PROBLEMS.values():
        parts, whole = in_parts(baskets).totals, baskets.totals
        for name in ("n_baskets", "n_empty", "largest", "whole", "are_counts"):
            assert getattr(parts, name) == getattr(whole, name), name
        for name in ("weight", "empty_weight", "effective_number"):
            assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12), name
        assert whole.effective_number == pytest.approx(effective_number(baskets.weights), rel=1e-12)
    baskets = Baskets.from_lists([[], [0, 1, 2], [], [1]], n_items=4, weights=[2.0, 0.5, 0.0, 1.0])
    totals = baskets.totals
    assert (totals.n_baskets, totals.n_empty, totals.largest) == (4, 1, 3)
    assert (totals.weight, totals.empty_weight, totals.whole) == (3.5, 2.0, False)


def test_frequencies_of_parts_are_those_of_the_whole_in_the_order_of_its_items() -> None:
    parts = in_parts(WHOLE)
    np.testing.assert_array_equal(parts.frequencies(), WHOLE.frequencies())
    np.testing.assert_array_equal(parts.pair_frequencies(), WHOLE.pair_frequencies())
    np.testing.assert_allclose(in_parts(WEIGHTED).pair_frequencies(), WEIGHTED.pair_frequencies(), rtol=1e-12)
    for found, expected in zip(pair_counts(in_parts(WHOLE), 100), pair_counts(WHOLE, 100), strict=True):
        np.testing.assert_array_equal(found, expected)
    lists = [["cot", "bib"], ["crib"], ["bib"], ["arch", "crib"]]  # items that only some parts have
    parts, whole = Parts.of([Baskets.from_lists([each]) for each in lists]), Baskets.from_lists(lists)
    assert parts.items == whole.items == ("arch", "bib", "cot", "crib")
    np.testing.assert_array_equal(parts.pair_frequencies(), whole.pair_frequencies())


def test_each_part_is_split_by_a_seed_of_its_own_and_merged_by_itself() -> None:
    part = divided(WHOLE)[0]
    train, test = Parts.of([part, part]).split(0.7, rng=3)
    sides = [[each.sizes.tolist() for each in side.parts] for side in (train, test)]
    assert sides[0][0] != sides[0][1]
    assert sorted(sides[0][0] + sides[1][0]) == sorted(part.sizes.tolist())
    assert len(train) == 2 * int(0.7 * len(part))
    merged = Parts.of([Baskets.from_lists([["bib"]] * 3), Baskets.from_lists([["bib"]] * 2)]).deduplicated()
    assert (len(merged), merged.total_weight) == (2, 5.0)  # within a part, and not between parts


def test_every_file_is_a_part_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, lines in (("b", "1,crib,2\n1,bib,2\n"), ("a", "1,cot,1\n2,crib,1\n")):
        (tmp_path / f"{name}.csv").write_text(f"order,product,times\n{lines}")
    columns = {"basket": "order", "item": "product", "weight": "times"}
    with read_parts(f"{tmp_path}/*.csv", **columns) as parts:
        assert list(map(len, parts.parts)) == [2, 1]  # order 1 of one file is not that of the other
        assert parts.item_weights.tolist() == [2.0, 1.0, 3.0]
    assert parts.items == ("bib", "cot", "crib")
    two = read_parts([tmp_path / "b.csv", tmp_path / "a.csv"], **columns)
    assert list(map(len, two.parts)) == [1, 2]


def test_parts_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        Parts.of([])
    with pytest.raises(InputError):
        Parts.of([Baskets.from_lists([["bib"]]), Baskets.from_lists([[0]])])
    with pytest.raises(InputError, match=r"0.*0"):
        Parts.of([Baskets.from_lists([], n_items=2)]).frequencies()
    with pytest.raises(InputError):
        read_parts(f"{tmp_path}/*.parquet")
    parts = in_parts(Baskets.from_lists([["cot"], ["bib"], ["bib", "cot"]]))
    with pytest.raises(InputError):  # needs all baskets in one place
        dl.diagnose(parts)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        dl.posterior(parts, features={"item": ["bib", "cot"], "price": [1, 2]})  # type: ignore[arg-type]
