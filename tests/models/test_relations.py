"""Lift, substitutes and complements: against enumeration, the counts of the training data, and large catalogues."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError
from dpplearn.data.pairs import significant
from dpplearn.distributions.independent import before_truncation
from dpplearn.distributions.interaction import LowRank
from dpplearn.models import relations
from dpplearn.models.record import Training
from dpplearn.models.relations import pair_table, related_pairs, substitute_groups, training_counts
from helpers.command import both
from helpers.problems import as_mixture, random_kernel, random_low_rank, random_mixture
from helpers.registries import registry

N_ITEMS = 14
LEARNED = {"mixture": partial(dl.fit, segments=2, rank=4, rng=0), "dpp": partial(dl.fit_dpp, shrinkage=0.0, rng=0)}


@pytest.mark.parametrize("kind", LEARNED)
@pytest.mark.parametrize("nonempty", [False, True])
def test_independent_items_have_substitutes_at_the_error_rate_only(kind: str, nonempty: bool) -> None:
    """Conditioning on nonempty baskets makes items repel each other; that is not substitution."""
    p = np.random.default_rng(3).uniform(0.03, 0.2, N_ITEMS) * (0.35 if nonempty else 1)
    X = np.random.default_rng(4).random((6000 if nonempty else 1500, N_ITEMS)) < p
    model = LEARNED[kind](Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X)).model
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


def test_a_model_without_training_counts_lists_all_related_items() -> None:
    model = LEARNED["dpp"](soda()).model
    every = {each.item for each in model.substitutes("soda", level=None)}
    assert {each.item for each in dl.DPP(model.kernel, model.items).substitutes("soda")} == every
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


@cache
def shop() -> Baskets:
    """Return 800 baskets with hardly ever two items of the same of two kinds, and two independent items."""
    rng = np.random.default_rng(0)
    X = np.zeros((800, 7), bool)
    for first, last, chance in ((0, 3, 0.6), (3, 5, 0.5)):
        wanted = np.flatnonzero(rng.random(800) < chance)
        X[wanted, rng.integers(first, last, len(wanted))] = True
    X[:3, :3], X[:, 5:] = True, rng.random((800, 2)) < 0.3
    return Baskets.from_matrix(X, ["a1", "a2", "a3", "b1", "b2", "c", "d"])


def test_independent_items_are_no_substitutes_even_if_no_set_is_empty() -> None:
    """A DPP that expresses P(∅) = 0 by its kernel makes all items repel each other; that is not substitution."""
    X = np.random.default_rng(0).random((20000, 6)) < np.linspace(0.1, 0.3, 6)
    model = LEARNED["dpp"](Baskets.from_matrix(X[X.any(axis=1)]), nonempty=False).model
    apart = np.triu_indices(6, 1)
    assert (model.K**2 / np.outer(model.K.diagonal(), model.K.diagonal()))[apart].min() > 0.15
    assert np.abs(1 - model.lift[apart]).max() < 0.12
    assert substitute_groups(model, 0.2) == ()


def test_groups_are_the_kinds_that_the_data_were_made_from() -> None:
    dpp = LEARNED["dpp"](shop()).model
    groups = substitute_groups(dpp)
    assert [set(group.items) for group in groups] == [{"a1", "a2", "a3"}, {"b1", "b2"}]  # most missing first
    for group in groups:
        marginals = [dpp.inclusion_prob([item]) for item in group.items]
        assert marginals == sorted(marginals, reverse=True)
        pairs = list(combinations(group.items, 2))
        assert group.observed == sum({*pair} <= {*basket} for basket in shop() for pair in pairs)
        expected = sum(dpp.inclusion_prob([a]) * dpp.inclusion_prob([b]) for a, b in pairs)
        assert group.expected == pytest.approx(800 * expected)
        assert group.missing == pytest.approx(expected - sum(dpp.inclusion_prob(pair) for pair in pairs))


def test_the_mean_substitution_within_a_group_is_at_least_the_threshold() -> None:
    model = DPP(random_kernel(np.random.default_rng(5), 30))
    found = 1 - model.lift
    for at_least in (0.05, 0.4, 0.8):
        groups = substitute_groups(model, at_least)
        for group in groups:
            members = model.catalogue.positions(group.items)
            inside = found[np.ix_(members, members)][np.triu_indices(len(members), 1)].mean()
            assert inside == pytest.approx(group.substitution)
            assert inside >= at_least - 1e-12
        assert len({item for group in groups for item in group.items}) == sum(len(group.items) for group in groups)
        assert (len(groups) > 0) == (found.max() >= at_least)
    with pytest.raises(InputError, match=r"at_least.*\b0\b"):
        substitute_groups(model, 0)


def test_related_pairs_are_the_significant_ones_and_without_training_data_all() -> None:
    with_c_and_d = [{*basket, "d"} if "c" in basket else basket for basket in shop() if basket]
    mixture = dl.fit(with_c_and_d, segments=2, rng=0).model
    found = related_pairs(mixture, 100)
    assert all(max(pair.lift, pair.high) < 1 for pair in found.substitutes)
    assert all(min(pair.lift, pair.low) > 1 for pair in found.complements)
    ends = [max(pair.lift, pair.high) for pair in found.substitutes]
    assert ends == sorted(ends)
    assert {found.complements[0].first, found.complements[0].second} == {"c", "d"}
    named = {frozenset((pair.first, pair.second)) for pair in (*found.substitutes, *found.complements)}
    unsure = {
        frozenset((item, each.item))
        for item in mixture.items
        for each in (*mixture.substitutes(item, level=None), *mixture.complements(item, level=None))
        if each.low <= 1 <= each.high
    }
    assert unsure
    assert not unsure & named
    bare = dl.Mixture(mixture.distribution, mixture.items)
    found, lifts = related_pairs(bare, 1000), bare.lift[np.triu_indices(len(bare.items), 1)]
    assert (len(found.substitutes), len(found.complements)) == ((lifts < 1).sum(), (lifts > 1).sum())
    assert found.substitutes[0].lift == pytest.approx(lifts.min())
    assert found.complements[0].lift == pytest.approx(lifts.max())
    assert np.isnan(found.substitutes[0].low)


@pytest.mark.slow
def test_registries_fall_into_kinds_of_product(shared: Path) -> None:
    safety = substitute_groups(LEARNED["dpp"](registry(shared, "safety")).model)[0]
    assert len(safety.items) > 10
    assert all("Monitor" in str(item) for item in safety.items)
    racks = substitute_groups(LEARNED["dpp"](registry(shared, "feeding")).model)[0]
    assert len(racks.items) >= 4
    assert all("Drying Rack" in str(item) for item in racks.items)


@cache
def large() -> dl.Mixture:
    """Return 20 items with interactions and 2,000 rare ones, with the counts of sets drawn from the model."""
    frequent = random_low_rank(2, 20, rare=2.5)
    low_rank = frequent.components.interaction
    assert isinstance(low_rank, LowRank)
    Z = np.pad(low_rank.Z, ((0, relations.MANY_ITEMS), (0, 0)))
    log_odds = np.pad(frequent.components.log_odds, ((0, 0), (0, relations.MANY_ITEMS)), constant_values=-8)
    log_odds[0, 20:] += 1.5  # so that rare items are related to the items of this segment
    model = dl.Mixture.from_arrays(frequent.weights, log_odds, (Z, low_rank.core))
    drawn = dl.Baskets.from_lists(model.sample(6000, rng=0), n_items=len(model.items))
    return dl.Mixture(model.distribution, training=Training.of(drawn))


@pytest.mark.parametrize("above", [False, True])
def test_large_catalogues_keep_only_relations_whose_interval_excludes_one(above: bool) -> None:
    model = large()
    item = 4
    row, every = np.array([item]), np.arange(len(model.items))
    lift = pair_table(model.distribution, row, every).lift[0]
    seen = training_counts(model.distribution, model.training, row, every)
    (low,), (high,) = seen.interval()
    if above:
        found, by = model.complements(item, 9999, level=None), -np.minimum(lift, low)
        kept = (by < -1) & (seen.observed[0] >= 3)
    else:
        found, by = model.substitutes(item, 9999, level=None), np.maximum(lift, high)
        kept = by < 1
    expected = np.flatnonzero(kept & (every != item))
    assert len(expected) >= 2
    assert [each.item for each in found] == expected[np.argsort(by[expected], kind="stable")].tolist()


def test_the_top_pairs_of_a_large_catalogue_are_those_of_all_pairs() -> None:
    model, n = large(), relations.MANY_ITEMS + 20
    every = np.arange(n)
    seen = training_counts(model.distribution, model.training, every, every)
    upper = np.triu(np.ones((n, n), bool), 1)
    lift, (low, high) = pair_table(model.distribution).lift, seen.interval()
    rejected = np.zeros((n, n), bool)
    rejected[upper] = significant(seen.p()[upper])
    frequent = np.zeros(n, bool)
    frequent[np.argsort(-model.training.item_weights, kind="stable")[: relations.MANY_ITEMS]] = True
    found = related_pairs(model, 20)
    for pairs, by, allowed in (
        (found.complements, np.minimum(lift, low), seen.observed >= 3),
        (found.substitutes, -np.maximum(lift, high), np.outer(frequent, frequent)),
    ):
        allowed &= upper & (by > (1 if pairs is found.complements else -1))
        first, second = np.nonzero(allowed & rejected)
        order = np.lexsort((second, first, -by[first, second]))[:20]
        assert len(order) > 1
        assert [each[:2] for each in pairs] == list(zip(first[order].tolist(), second[order].tolist(), strict=True))
        np.testing.assert_allclose([each.lift for each in pairs], lift[first[order], second[order]], rtol=1e-9)


def test_the_lift_matrix_of_a_very_large_catalogue_is_refused() -> None:
    model = as_mixture(random_low_rank(1, relations.MAX_PAIRED_ITEMS + 1, rare=8))
    with pytest.raises(dl.InputError, match="5,001"):
        _ = model.lift
    assert len(model.complements(0, 3)) == 3
