"""Unknown items are rejected, or dropped and counted, by every function and command."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.data.baskets import known_baskets
from dpplearn.data.catalogue import Catalogue
from helpers.command import answer, run
from helpers.problems import random_kernel

ITEMS = ["bib", "cot", "crib", "cup"]
MODEL = dl.DPP(random_kernel(np.random.default_rng(0), 4), ITEMS)
LISTS = [["crib", "new"], ["bib"], ["new"], [], ["cup", "other", "new"]]
KNOWN = [["crib"], ["bib"], [], [], ["cup"]]
COUNTS = "4 items.*3 baskets.*new.*other"
BASKETS = dl.Baskets.from_lists(LISTS, weights=[1, 2, 3, 4, 5])


def test_baskets_keep_their_number_and_weights_and_lose_what_is_unknown() -> None:
    with pytest.warns(dl.InputWarning, match=COUNTS):
        known = BASKETS.over(MODEL.catalogue, unknown="drop")
    assert list(map(list, known)) == KNOWN
    assert known.items == MODEL.items
    assert known.weights.tolist() == [1, 2, 3, 4, 5]


def test_to_be_judged_baskets_of_nothing_else_go_and_empty_ones_stay() -> None:
    for baskets in (LISTS, BASKETS):
        known, left_out = known_baskets(baskets, MODEL.catalogue, "drop")
        assert list(map(list, known)) == [["crib"], ["bib"], [], ["cup"]]
        assert left_out.to_dict() == {"n_items": 4, "n_baskets": 3, "n_emptied": 1, "examples": ["new", "other"]}
    known, left_out = known_baskets([[7, -(10**12)], [10**30]], Catalogue.of([3, 7]), "drop")
    assert (list(known), left_out.n_items) == ([(7,)], 2)


def test_evaluate_counts_them_and_judges_the_rest() -> None:
    found = dl.evaluate(MODEL, LISTS, unknown="drop")
    expected = [MODEL.log_prob(basket) for basket in (["crib"], ["bib"], [], ["cup"])]
    np.testing.assert_allclose(found.outcomes["model"]["log_likelihood"], expected)
    assert re.search(COUNTS, " ".join(found.notes))
    never_empty = dl.DPP(MODEL.kernel, ITEMS, nonempty=True)  # a basket of unknown items alone is not impossible
    found = dl.evaluate(never_empty, [["crib"], ["new"]], unknown="drop")
    assert np.isfinite(found.estimate("model").value)


def test_recommend_leaves_them_out_of_one_basket_and_of_many() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MODEL.recommend(["crib", "new"], unknown="drop") == MODEL.recommend(["crib"])
    with pytest.warns(dl.InputWarning, match=COUNTS):
        assert MODEL.recommend(BASKETS, 2, unknown="drop") == [MODEL.recommend(each, 2) for each in KNOWN]


def test_commands_take_the_same_word(tmp_path: Path) -> None:
    model, data = tmp_path / "model.safetensors", tmp_path / "new.csv"
    MODEL.save(model)
    data.write_text("basket,item\n" + "".join(f"{n},{i}\n" for n, each in enumerate(LISTS) for i in each))
    for call in (("score", model, data), ("recommend", model, "new")):
        refused = run(*call)
        assert refused.returncode == 1
        assert "'new'" in refused.stderr
    scored = answer("score", model, data, "--unknown", "drop")
    assert scored["n_baskets"] == 3
    assert any(re.search(COUNTS, note) for note in scored["notes"])
    assert answer("recommend", model, "crib", "new", "--unknown", "drop")["unknown"] == ["new"]
