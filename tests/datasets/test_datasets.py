"""The generated registries: the paper's catalogue sizes, near-duplicates that repel, matches that go together, and
kinds of shoppers."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from dpplearn import datasets
from dpplearn.arrays import Bools, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.datasets import categories
from dpplearn.datasets.orders import make_orders
from dpplearn.datasets.registries import CATEGORIES, items_by_kind, make_registries, matching_items
from dpplearn.errors import InputError
from dpplearn.kernels.independent import chances

LARGE = dict.fromkeys(["feeding", "gear", "diaper", "bedding", "apparel", "bath"], 100)
SMALL = {"toys": 62, "health": 62, "media": 58, "strollers": 40, "safety": 36, "carseats": 34, "furniture": 32}
PAPER = LARGE | SMALL

every_category = pytest.mark.parametrize("category", PAPER)


def equal(left: Baskets, right: Baskets) -> bool:
    return np.array_equal(left.indices, right.indices) and np.array_equal(left.offsets, right.offsets)


def same_group(category: str) -> Bools:
    """(n_items, n_items), true for two different items of one group."""
    groups = items_by_kind(category)
    number = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return np.equal.outer(number, number) & ~np.eye(len(number), dtype=bool)


def pair_counts(registries: Baskets) -> tuple[Floats, Floats]:
    """How often each pair came together, and how often it would if items were independent, given not empty."""
    p = chances(registries.frequencies(), len(registries), nonempty=True)
    expected = np.outer(p, p) / (1 - np.prod(1 - p))
    return len(registries) * registries.pair_frequencies(), len(registries) * expected


def test_categories_have_the_sizes_of_the_paper() -> None:
    assert dict(CATEGORIES) == PAPER


@every_category
def test_groups_partition_a_catalogue_of_different_names(category: str) -> None:
    names = [name for group in items_by_kind(category) for name in group]
    assert tuple(names) == make_registries(category, 1, rng=0).items
    assert len(set(names)) == len(names) == PAPER[category]


@every_category
def test_no_registry_is_empty_and_every_item_is_taken(category: str) -> None:
    registries = make_registries(category, 5000, rng=0)
    assert len(registries) == 5000
    assert registries.sizes.min() >= 1
    assert registries.frequencies().min() > 0


def test_the_seed_decides_the_registries() -> None:
    registries = make_registries("safety", 500, rng=1)
    assert equal(registries, make_registries("safety", 500, rng=1))
    assert equal(registries, make_registries("safety", 500, rng=np.random.default_rng(1)))
    assert not equal(registries, make_registries("safety", 500, rng=2))
    assert not equal(make_registries("safety", 500), make_registries("safety", 500))


@every_category
def test_near_duplicates_meet_far_less_often_than_independent_items(category: str) -> None:
    together, expected = pair_counts(make_registries(category, 20_000, rng=0))
    inside = same_group(category)
    assert expected[inside].sum() > 3000
    assert together[inside].sum() < 0.25 * expected[inside].sum()


@every_category
def test_attraction_is_as_strong_as_repulsion_and_stronger_where_items_are_many(category: str) -> None:
    together, expected = pair_counts(make_registries(category, 20_000, rng=0))
    excess = (together - expected)[~np.eye(PAPER[category], dtype=bool)]
    ratio = excess[excess > 0].sum() / -excess[excess < 0].sum()
    assert ratio > (2 if category in LARGE else 1.5 if category in ("toys", "health", "media") else 0.9)


@every_category
def test_matching_items_meet_more_often_than_others_of_their_kinds(category: str) -> None:
    registries = make_registries(category, 20_000, rng=0)
    together, expected = pair_counts(registries)
    kinds = items_by_kind(category)
    kind_of = {item: number for number, kind in enumerate(kinds) for item in kind}
    for first, second in {(kind_of[first], kind_of[second]) for first, second in matching_items(category)}:
        rows, columns = (np.array([registries.items.index(item) for item in kinds[kind]]) for kind in (first, second))
        met, chance = together[np.ix_(rows, columns)], expected[np.ix_(rows, columns)]
        match = np.eye(*met.shape, dtype=bool)
        others = met[~match].sum() / chance[~match].sum() if met.size > match.sum() else 1.0
        assert met[match].sum() / chance[match].sum() > 1.5 * others


@every_category
def test_a_match_is_of_another_kind_and_every_item_has_one_at_most(category: str) -> None:
    kind_of = {item: number for number, kind in enumerate(items_by_kind(category)) for item in kind}
    matches = matching_items(category)
    assert all(kind_of[first] != kind_of[second] for first, second in matches)
    assert len({item for match in matches for item in match}) == 2 * len(matches)


@every_category
def test_every_kind_is_wanted_by_a_taste_that_exists_or_by_all(category: str) -> None:
    found = categories.find(category)
    tastes = [taste[0] for taste in found.tastes.split()]
    assert len(set(tastes)) == len(tastes) >= 2
    assert set(found.wanted_by) == {"", *tastes}
    assert found.wanted_by[0] == ""  # what most come for


def test_shoppers_of_one_taste_take_its_kinds_together() -> None:
    """Kinds that go together less through matches than through who wants them."""
    found = categories.find("feeding")
    kind = np.repeat(np.arange(len(found.groups)), [len(group) for group in found.groups])
    registries = make_registries("feeding", 20_000, rng=0)
    wants = np.zeros((len(registries), len(found.groups)), dtype=bool)
    wants[np.repeat(np.arange(len(registries)), registries.sizes), kind[registries.indices]] = True
    correlation = np.corrcoef(wants.T)
    pairs = [(i, j) for i in range(1, 23) for j in range(1, i) if found.wanted_by[i] and found.wanted_by[j]]
    pairs = [pair for pair in pairs if pair[::-1] not in found.paired_kinds]
    same = [correlation[i, j] for i, j in pairs if found.wanted_by[i] == found.wanted_by[j]]
    other = [correlation[i, j] for i, j in pairs if found.wanted_by[i] != found.wanted_by[j]]
    assert min(same) > np.mean(other) + 0.05
    assert np.mean(same) > np.mean(other) + 0.2


@pytest.mark.parametrize("category", LARGE)
def test_sizes_differ_more_than_a_symmetric_dpp_can_say(category: str) -> None:
    """Its variance is at most the mean; some shoppers want nearly everything, and some one thing."""
    sizes = make_registries(category, 20_000, rng=0).sizes
    assert sizes.var() > 1.5 * sizes.mean()


def test_a_mixture_learns_more_from_them_than_a_symmetric_dpp() -> None:
    train, test = make_registries("safety", 4000, rng=0).split(0.7, rng=0)
    independent = dl.fit(train, shrinkage=1, nonempty=True).model.log_likelihood(test)
    symmetric = dl.fit(train, model="dpp", shrinkage=0, nonempty=True, rng=0).model.log_likelihood(test)
    mixture = dl.fit(train, rng=0).model
    assert symmetric > independent + 0.2
    assert mixture.log_likelihood(test) > symmetric + 0.1
    for first, second in matching_items("safety")[:3]:
        assert second in [each.item for each in mixture.complements(first, 3)]
    for item in items_by_kind("safety")[0][:3]:
        assert {each.item for each in mixture.substitutes(item, 3)} <= set(items_by_kind("safety")[0])


@every_category
def test_a_second_item_of_a_kind_is_rare_and_a_third_never_comes(category: str) -> None:
    registries = make_registries(category, 5000, rng=0)
    sizes = [len(group) for group in items_by_kind(category)]
    group_of = np.repeat(np.arange(len(sizes)), sizes)
    held = np.zeros((len(registries), len(sizes)), dtype=int)
    np.add.at(held, (np.repeat(np.arange(len(registries)), registries.sizes), group_of[registries.indices]), 1)
    assert held.max() == 2
    with_choice = held[:, np.array(sizes) > 1]
    assert 0.02 < np.mean(with_choice[with_choice > 0] == 2) < 0.04


def test_items_of_a_group_are_listed_from_the_most_popular_on() -> None:
    frequencies = make_registries("safety", 20_000, rng=0).frequencies()
    monitors = frequencies[: len(items_by_kind("safety")[0])]
    assert all(np.diff(monitors) < 0)
    share = 1 / np.sqrt(np.arange(1, len(monitors) + 1))
    np.testing.assert_allclose(monitors / monitors.sum(), share / share.sum(), rtol=0.06)


def test_so_are_those_that_match_others() -> None:
    registries = make_registries("carseats", 50_000, rng=0)
    bases = [registries.items.index(name) for name in items_by_kind("carseats")[3]]
    assert all(np.diff(registries.frequencies()[bases]) < 0)


def test_safety_has_its_largest_and_most_wanted_group_in_video_monitors() -> None:
    first, *others = items_by_kind("safety")
    assert all("video monitor" in name for name in first)
    assert len(first) > max(len(group) for group in others)
    frequencies = make_registries("safety", 5000, rng=0).frequencies()
    most_wanted = np.argsort(-frequencies)[:6]
    assert np.count_nonzero(most_wanted < len(first)) >= 3  # so popularity alone suggests at least two more


@every_category
def test_names_of_a_group_share_their_kind(category: str) -> None:
    for group in items_by_kind(category):
        assert len({name.split(",")[0].partition(" ")[2] for name in group}) == 1


@every_category
def test_no_two_groups_are_of_the_same_kind(category: str) -> None:
    kinds = [group[0].partition(" ")[2] for group in items_by_kind(category)]
    assert len(set(kinds)) == len(kinds)


def test_no_registries_keep_the_catalogue() -> None:
    registries = make_registries("toys", 0, rng=0)
    assert len(registries) == 0
    assert registries.n_items == 62


def test_an_unknown_category_is_named_with_the_closest_and_all_there_are() -> None:
    with pytest.raises(InputError, match=r"'carseat'.*'carseats'"):
        make_registries("carseat", 10)
    with pytest.raises(InputError, match="'xyz'"):
        items_by_kind("xyz")
    with pytest.raises(InputError, match="'xyz'"):
        matching_items("xyz")


@pytest.mark.parametrize("n", [-1, 2.5, "10", None, True])
def test_a_number_of_registries_that_is_none_is_refused(n: object) -> None:
    with pytest.raises(InputError, match="n"):
        make_registries("safety", n)  # type: ignore[arg-type]


def test_the_former_name_of_items_by_kind_still_works_and_says_what_to_write() -> None:
    with pytest.warns(DeprecationWarning, match="now called items_by_kind"):
        assert datasets.substitute_groups("safety") == items_by_kind("safety")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = datasets.nothing


def test_orders_are_registries_of_all_categories_and_of_the_baskets_that_want_them() -> None:
    orders = make_orders(3000, rng=0)
    basket, item, category = (orders[name] for name in ("basket", "item", "category"))
    assert set(basket.tolist()) == set(range(1, 3001))
    assert set(category.tolist()) == set(CATEGORIES)
    assert len(set(zip(basket.tolist(), category.tolist(), item.tolist(), strict=True))) == len(basket)
    for name in ("safety", "toys"):
        known = {each for group in items_by_kind(name) for each in group}
        assert set(item[category == name].tolist()) <= known
    wanted = {(int(one), str(name)) for one, name in zip(basket, category, strict=True)}
    assert 3.5 < len(wanted) / 3000 < 4.5
    again, other = make_orders(3000, rng=0), make_orders(3000, rng=1)
    assert all((again[name] == orders[name]).all() for name in orders)
    assert len(other["basket"]) != len(basket) or (other["basket"] != basket).any()
