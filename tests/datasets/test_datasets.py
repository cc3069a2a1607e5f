"""The generated registries: the paper's catalogue sizes, and repulsion inside groups of substitutes alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpplearn import datasets
from dpplearn.arrays import Bools, Floats
from dpplearn.data.baskets import Baskets
from dpplearn.datasets.registries import CATEGORIES, items_by_kind, make_registries
from dpplearn.errors import InputError

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
    """How often each pair came together, and how often it would if items were independent."""
    frequencies = registries.frequencies()
    return len(registries) * registries.pair_frequencies(), len(registries) * np.outer(frequencies, frequencies)


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
def test_substitutes_alone_meet_far_less_often_than_independent_items(category: str) -> None:
    together, expected = pair_counts(make_registries(category, 20_000, rng=0))
    inside = same_group(category)
    across = ~inside & ~np.eye(PAPER[category], dtype=bool)
    assert expected[inside].sum() > 5000
    assert together[inside].sum() < 0.25 * expected[inside].sum()
    # Across groups the ratio is P(not empty): the empty registries, drawn again, would have made every item rarer.
    lowest = 0.98 if category in LARGE else 0.65
    assert lowest < together[across].sum() / expected[across].sum() < 1.01


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
    with pytest.raises(InputError, match=r"no category 'carseat'; did you mean 'carseats'\? choose one of feeding, .*"):
        make_registries("carseat", 10)
    with pytest.raises(InputError, match=r"no category 'xyz'; choose one of feeding, gear, .*, furniture"):
        items_by_kind("xyz")


@pytest.mark.parametrize("n", [-1, 2.5, "10", None, True])
def test_a_number_of_registries_that_is_none_is_refused(n: object) -> None:
    with pytest.raises(InputError, match=r"^n is .*; expected a whole number, 0 or more$"):
        make_registries("safety", n)  # type: ignore[arg-type]


def test_the_former_name_of_items_by_kind_still_works_and_says_what_to_write() -> None:
    with pytest.warns(DeprecationWarning, match="now called items_by_kind"):
        assert datasets.substitute_groups("safety") == items_by_kind("safety")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = datasets.nothing
