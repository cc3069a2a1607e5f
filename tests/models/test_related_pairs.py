"""Substitutes: what the model keeps apart against enumeration, groups against the kinds they were generated from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import DPP, Baskets, InputError
from dpplearn.models.mixture import Mixture
from dpplearn.models.relations import related_pairs, substitute_groups
from helpers.problems import random_kernel
from helpers.registries import registry

KINDS = [{"a1", "a2", "a3"}, {"b1", "b2"}]


def shop(n: int, seed: int, *, nonempty: bool = False) -> Baskets:
    """Two kinds, of which one item is taken, and two items that have nothing to do with anything."""
    rng = np.random.default_rng(seed)
    names = ["a1", "a2", "a3", "b1", "b2", "c", "d"]
    X = np.zeros((n, 7), bool)
    for first, last, chance in ((0, 3, 0.6), (3, 5, 0.5)):
        wanted = np.flatnonzero(rng.random(n) < chance)
        X[wanted, rng.integers(first, last, len(wanted))] = True
    X[:, 5:] = rng.random((n, 2)) < 0.3
    return Baskets.from_matrix(X[X.any(axis=1)] if nonempty else X, names)


def learned(baskets: Baskets, **how: object) -> DPP:
    return dl.fit_dpp(baskets, **{"shrinkage": 0.0, **how}).model  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def dpp() -> DPP:
    return learned(shop(800, 0))


def test_independent_items_are_no_substitutes_even_if_no_set_is_empty() -> None:
    """A DPP must keep all items apart to say that no set is empty; that is not held against them."""
    rng = np.random.default_rng(0)
    X = rng.random((20000, 6)) < np.linspace(0.1, 0.3, 6)
    model = learned(Baskets.from_matrix(X[X.any(axis=1)]), nonempty=False)
    apart = np.triu_indices(6, 1)
    assert (model.K**2 / np.outer(model.K.diagonal(), model.K.diagonal()))[apart].min() > 0.15
    assert np.abs(1 - model.lift[apart]).max() < 0.12
    assert substitute_groups(model, 0.2) == ()


def test_groups_are_the_kinds_that_the_data_were_made_from(dpp: DPP) -> None:
    groups = substitute_groups(dpp)
    assert [set(group.items) for group in groups] == KINDS  # the one that misses more comes first
    position = {item: i for i, item in enumerate(dpp.items)}
    for group in groups:
        marginals = [dpp.marginals()[position[item]] for item in group.items]
        assert marginals == sorted(marginals, reverse=True)
        pairs = [(a, b) for a in group.items for b in group.items if a < b]
        observed = sum({a, b} <= set(basket) for basket in shop(800, 0) for a, b in pairs)
        assert group.observed == observed
        chance = sum(dpp.inclusion_prob([a]) * dpp.inclusion_prob([b]) for a, b in pairs)
        together_in = sum(dpp.inclusion_prob([a, b]) for a, b in pairs)
        assert group.expected == pytest.approx(800 * chance)
        assert group.missing == pytest.approx(chance - together_in)


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


@pytest.fixture(scope="module")
def mixture() -> Mixture:
    """Of the same shop, where who takes c takes d as well."""
    baskets = [[*basket, "d"] if "c" in basket and "d" not in basket else basket for basket in shop(800, 0)]
    return dl.fit([basket for basket in baskets if basket], segments=2, rng=0).model  # type: ignore[return-value]


def test_related_pairs_are_the_significant_ones_and_without_training_data_all(mixture: Mixture) -> None:
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
    bare = Mixture(mixture.distribution, mixture.items)
    found, lifts = related_pairs(bare, 1000), bare.lift[np.triu_indices(len(bare.items), 1)]
    assert (len(found.substitutes), len(found.complements)) == ((lifts < 1).sum(), (lifts > 1).sum())
    assert found.substitutes[0].lift == pytest.approx(lifts.min())
    assert found.complements[0].lift == pytest.approx(lifts.max())
    assert np.isnan(found.substitutes[0].low)


def test_groups_need_a_valid_threshold(dpp: DPP) -> None:
    with pytest.raises(InputError, match=r"at_least.*\b0\b"):
        substitute_groups(dpp, 0)


@pytest.mark.slow
def test_registries_fall_into_kinds_of_product(shared: Path) -> None:
    safety = substitute_groups(learned(registry(shared, "safety")))[0]
    assert len(safety.items) > 10
    assert all("Monitor" in str(item) for item in safety.items)
    racks = substitute_groups(learned(registry(shared, "feeding")))[0]
    assert len(racks.items) >= 4
    assert all("Drying Rack" in str(item) for item in racks.items)
