"""The synthetic registries: catalogue sizes, substitutes, complements and segments of shoppers."""

from __future__ import annotations

import numpy as np
import pytest

import dpplearn as dl
from dpplearn.datasets.orders import make_orders
from dpplearn.datasets.registries import CATEGORIES, items_by_kind, make_registries, matching_items
from dpplearn.distributions.independent import chances
from dpplearn.errors import InputError

LARGE = dict.fromkeys(["feeding", "gear", "diaper", "bedding", "apparel", "bath"], 100)
SMALL = {"toys": 62, "health": 62, "media": 58, "strollers": 40, "safety": 36, "carseats": 34, "furniture": 32}
PAPER = LARGE | SMALL


def test_every_catalogue_has_the_size_of_the_paper_and_consistent_kinds_and_matches() -> None:
    assert dict(CATEGORIES) == PAPER
    for category, n_items in PAPER.items():
        groups = items_by_kind(category)
        names = [name for group in groups for name in group]
        assert tuple(names) == make_registries(category, 0, rng=0).items
        assert len(set(names)) == len(names) == n_items
        assert all(len({name.split(",")[0].partition(" ")[2] for name in group}) == 1 for group in groups)
        assert len({group[0].partition(" ")[2] for group in groups}) == len(groups)
        kind_of = {item: number for number, group in enumerate(groups) for item in group}
        matches = matching_items(category)
        assert all(kind_of[first] != kind_of[second] for first, second in matches)
        assert len({item for match in matches for item in match}) == 2 * len(matches)


def test_the_seed_decides_the_registries() -> None:
    digests = [make_registries("safety", 500, rng=rng).digest() for rng in (1, np.random.default_rng(1), 2, None, None)]
    assert digests[0] == digests[1]
    assert len({*digests}) == 4


def test_substitutes_co_occur_far_less_often_than_expected_under_independence() -> None:
    for category in ("feeding", "toys", "safety"):  # a large, a medium and a small catalogue
        registries = make_registries(category, 20_000, rng=0)
        p = chances(registries.frequencies(), len(registries), nonempty=True)
        together = len(registries) * registries.pair_frequencies()
        expected = len(registries) * np.outer(p, p) / (1 - np.prod(1 - p))  # given that no registry is empty
        different = ~np.eye(len(p), dtype=bool)
        sizes = [len(group) for group in items_by_kind(category)]
        kind = np.repeat(np.arange(len(sizes)), sizes)
        inside = np.equal.outer(kind, kind) & different
        assert expected[inside].sum() > 3000
        assert together[inside].sum() < 0.25 * expected[inside].sum()
        excess = (together - expected)[different]
        assert excess[excess > 0].sum() > 0.9 * -excess[excess < 0].sum()  # attraction is as strong as repulsion


@pytest.mark.slow
def test_a_mixture_learns_more_from_them_than_a_symmetric_dpp() -> None:
    train, test = make_registries("safety", 4000, rng=0).split(0.7, rng=0)
    independent = dl.fit_dpp(train, shrinkage=1, nonempty=True).model.log_likelihood(test)
    symmetric = dl.fit_dpp(train, shrinkage=0, nonempty=True, rng=0).model.log_likelihood(test)
    mixture = dl.fit(train, rng=0).model
    assert symmetric > independent + 0.2
    assert mixture.log_likelihood(test) > symmetric + 0.1
    for first, second in matching_items("safety")[:3]:
        assert second in [each.item for each in mixture.complements(first, 3)]
    for item in items_by_kind("safety")[0][:3]:
        assert {each.item for each in mixture.substitutes(item, 3)} <= set(items_by_kind("safety")[0])


def test_unknown_categories_and_invalid_numbers_are_rejected() -> None:
    with pytest.raises(InputError, match=r"'carseat'.*'carseats'"):
        make_registries("carseat", 10)
    for function in (items_by_kind, matching_items):
        with pytest.raises(InputError, match="'xyz'"):
            function("xyz")
    for n in (-1, 2.5, "10", None, True):
        with pytest.raises(InputError):
            make_registries("safety", n)  # type: ignore[arg-type]


def test_orders_are_registries_of_all_categories_and_of_the_baskets_that_want_them() -> None:
    orders = make_orders(3000, rng=0)
    basket, item, category = (orders[name] for name in ("basket", "item", "category"))
    assert set(basket.tolist()) == set(range(1, 3001))
    assert set(category.tolist()) == set(CATEGORIES)
    assert len(set(zip(basket.tolist(), category.tolist(), item.tolist(), strict=True))) == len(basket)
    assert set(item[category == "toys"].tolist()) <= {each for group in items_by_kind("toys") for each in group}
    wanted = {(int(one), str(name)) for one, name in zip(basket, category, strict=True)}
    assert 3.5 < len(wanted) / 3000 < 4.5
    again, other = make_orders(3000, rng=0), make_orders(3000, rng=1)
    assert all((again[name] == orders[name]).all() for name in orders)
    assert not np.array_equal(other["item"], item)
