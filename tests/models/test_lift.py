"""Significance of substitutes and complements against the counts of the training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import dpplearn as dl
from dpplearn.distributions.independent import before_truncation
from dpplearn.models.relations import pair_table, related_pairs
from helpers.command import both
from helpers.problems import as_mixture, random_mixture

N_ITEMS = 14
LEARNED = {
    "mixture": partial(dl.fit, segments=2, rank=4, rng=0),
    "dpp": partial(dl.fit_dpp, shrinkage=0.0, rng=0),
}


def independent(n: int, p: Sequence[float], seed: int, *, nonempty: bool) -> dl.Baskets:
    held = np.random.default_rng(seed).random((n, len(p))) < p
    lists = [[f"item {i}" for i in np.flatnonzero(row)] for row in held if row.any() or not nonempty]
    return dl.Baskets.from_lists(lists, items=[f"item {i}" for i in range(len(p))])


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("nonempty", [False, True])
def test_independent_items_have_substitutes_at_the_error_rate_only(kind: str, nonempty: bool) -> None:
    """Conditioning on nonempty baskets makes items repel each other; that is not substitution."""
    p = np.random.default_rng(3).uniform(0.03, 0.2, N_ITEMS) * (0.35 if nonempty else 1)
    model = LEARNED[kind](independent(6000 if nonempty else 1500, p, 4, nonempty=nonempty)).model
    assert model.nonempty == nonempty
    every = sum(len(model.substitutes(item, 99, level=None)) for item in model.items)
    assert every > 20  # without the test there are many
    said = sum(bool(model.substitutes(item)) for item in model.items)
    assert binom.sf(said - 1, N_ITEMS, 0.05) > 1e-3
    assert related_pairs(model, 99) == ([], [])


MODELS = {
    "dpp": dl.DPP.from_K([[0.5, 0.3, 0.1], [0.3, 0.4, 0.0], [0.1, 0.0, 0.3]]),
    "dpp, nonempty": dl.DPP.from_K([[0.2, 0.1, 0.1], [0.1, 0.2, 0.0], [0.1, 0.0, 0.3]], nonempty=True),
    "mixture": as_mixture(random_mixture(2, 6)),
    "mixture, nonempty": as_mixture(random_mixture(2, 6), nonempty=True),
}


@pytest.mark.parametrize("kind", MODELS)
def test_relations_are_the_entries_of_the_pair_table(kind: str) -> None:
    """For nonempty models, against independent items with the same marginals given that the set is not empty."""
    model = MODELS[kind]
    n, m = len(model.items), model.marginals()
    pairs = [[model.inclusion_prob({i, j}) for j in range(n)] for i in range(n)]
    p = before_truncation(m) if model.nonempty else m
    expected = np.outer(m, p)
    table = pair_table(model.distribution)
    off = ~np.eye(n, dtype=bool)
    np.testing.assert_allclose(table.observed[off], np.array(pairs)[off], rtol=1e-9)
    np.testing.assert_allclose(table.lift.diagonal(), 1)
    np.testing.assert_allclose(table.expected[off], expected[off], rtol=1e-9)
    np.testing.assert_allclose(table.lift[off], (np.array(pairs) / expected)[off], rtol=1e-9)
    for i in range(n):
        below, above = model.substitutes(i), model.complements(i)
        assert all(isinstance(each, dl.Relation) for each in below + above)
        lifts = np.delete(table.lift[i], i)
        np.testing.assert_allclose([each.lift for each in below], np.sort(lifts[lifts < 1 - 1e-9]), rtol=1e-9)
        np.testing.assert_allclose([each.lift for each in above], -np.sort(-lifts[lifts > 1 + 1e-9]), rtol=1e-9)


def test_lifts_change_continuously_with_the_probability_of_the_empty_set() -> None:
    distribution = MODELS["dpp"].distribution
    independent = np.prod(1 - distribution.marginals())
    steps = np.linspace(0, independent, 4001)
    lifts = np.array([pair_table(distribution.with_p_empty(p)).lift for p in steps])
    assert np.abs(lifts[0] - lifts[-1]).max() > 0.1
    assert np.abs(np.diff(lifts, axis=0)).max() < 1e-3


def soda() -> dl.Baskets:
    """Return baskets where soda co-occurs with neither whisky (1 expected) nor water (69 expected)."""
    lists = [["soda"]] * 200 + [["water"]] * 200 + [["whisky"]] * 5 + [["bread"]] * 300 + [["soda", "bread"]] * 100
    return dl.Baskets.from_lists([*lists, *[["water", "bread"]] * 100, *[[]] * 400])


@pytest.mark.parametrize("kind", LEARNED)
def test_a_pair_that_never_met_where_one_meeting_was_expected_is_no_substitute(kind: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = LEARNED[kind](soda()).model
    assert {"whisky", "water"} <= {each.item for each in model.substitutes("soda", level=None)}
    assert [each.item for each in model.substitutes("soda")] == ["water"]
    model.save(tmp_path / "m.safetensors")
    report, _ = both("describe", tmp_path / "m.safetensors", "--item", "soda")
    assert [each["item"] for each in report["substitutes"]] == ["water"]
    assert report["not_significant"]["substitutes"] >= 1


def test_baskets_at_hand_judge_a_model_that_does_not_tell_what_it_was_learned_from() -> None:
    model = LEARNED["dpp"](soda()).model
    bare = dl.DPP(model.kernel, model.items)
    assert {each.item for each in bare.substitutes("soda")} == {
        each.item for each in model.substitutes("soda", level=None)
    }
    assert bare.substitutes("soda", baskets=soda()) == model.substitutes("soda")
    with pytest.raises(dl.InputError, match=r"level.*2"):
        model.substitutes("soda", level=2)


def test_pairs_too_rare_to_be_kept_may_have_met_as_often_as_those() -> None:
    """Of very many pairs the rarest are not kept, and are not taken for pairs that never met."""
    model = LEARNED["mixture"](soda()).model
    training = replace(model.training, least=65.0)
    assert training.pair_counts_among(model.catalogue.positions(["soda", "water"]))[0, 1] == 0
    assert model.substitutes("soda")[0].item == "water"
    unsure = dl.Mixture(model.distribution, model.items, training=training)
    assert unsure.substitutes("soda") == []
    assert related_pairs(unsure).substitutes == []
