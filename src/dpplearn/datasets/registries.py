"""Generated baby registries in 13 categories with the numbers of items of the paper.

They have the structure that a model should find in real baskets:

- Near-duplicates repel each other: a shopper takes one item of each kind of product wanted, and rarely a second.
- Complements: who takes one item often takes the matching item of another kind.
- Segments: some shoppers want nearly everything, some one thing, and the others have a taste for certain kinds of
  product.

Names and probabilities are invented. They are chosen so that two effects are visible at the paper's tolerance of 1e-4:
EM is better than K-Ascent, most in small categories, and EM does not suggest a second video monitor. For this,
registries are larger than the originals: 1.9 to 8.2 items on average instead of 1.2 to 2.8.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import numpy as np

from dpplearn.arrays import Bools, Floats, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError, whole_number

MAKERS = (
    "Willow Hazel Rowan Linden Juniper Sorrel Bramble Alder Larkspur Fennel Tansy Thistle Marlow Yarrow Wren Teasel "
    "Plover Sedge Heron Bracken Lovage Curlew Medlar"
).split()

SECOND_CHANCE = 0.03  # a shopper who took one item of a kind takes another of it
MATCH_CHANCE = 0.35  # a shopper who took an item that has a match takes that as well
POPULARITY_FALL = 0.5  # within a kind, the r-th most popular item is taken in proportion to r**-0.5

# What shoppers multiply the odds of wanting a kind with. The others have one of the category's tastes, all as often.
EVERYTHING_SHARE, EVERYTHING_ODDS = 0.15, 4.0
ONE_THING_SHARE, ONE_THING_ODDS = 0.25, 0.2
LIKED_ODDS, OTHER_ODDS = 4.0, 0.25

_CATEGORIES: Mapping[str, Any] = tomllib.loads(
    files("dpplearn.datasets").joinpath("categories.toml").read_text("utf-8")
)
CATEGORIES = {name: sum(kind[0] for kind in category["kinds"]) for name, category in _CATEGORIES.items()}
"""The categories and how many items each has."""


def items_by_kind(category: str) -> tuple[tuple[str, ...], ...]:
    """Return the item names of a category by kind of product. Shoppers rarely take two items of one kind.

    Joined, the kinds are the catalogue of `make_registries(category, ...)`, in its order.

    Parameters
    ----------
    category
        One of `CATEGORIES`.

    Returns
    -------
    tuple of tuple of str
        One group per kind, the one that most come for first; in each, the most popular item comes first.

    Examples
    --------
    >>> items_by_kind("safety")[1][:2]
    ('Sorrel audio monitor', 'Bramble audio monitor')
    """
    return tuple(_group(number, *kind) for number, kind in enumerate(_find(category)["kinds"]))


def matching_items(category: str) -> tuple[tuple[str, str], ...]:
    """Return the complements of a category: pairs of items that are often taken together.

    Parameters
    ----------
    category
        One of `CATEGORIES`.

    Returns
    -------
    tuple of pair of str
        An item and its match, which is of another kind.

    Examples
    --------
    >>> matching_items("carseats")[0]
    ('Willow infant car seat', 'Teasel extra base')
    """
    groups = items_by_kind(category)
    pairs = ((groups[first], groups[second]) for first, second in _paired_kinds(category))
    return tuple(match for pair in pairs for match in zip(*pair, strict=False))


def make_registries(category: str, n: int, rng: Seed = None) -> Baskets:
    """Generate nonempty registries of a category.

    Parameters
    ----------
    category : str
        One of `CATEGORIES`.
    n : int
        Number of registries.
    rng : int or numpy.random.Generator, optional
        Seed or generator.

    Returns
    -------
    Baskets
        Over all items of the category, including those that no registry contains.

    Examples
    --------
    >>> registries = make_registries("safety", 1000, rng=0)
    >>> len(registries), registries.n_items
    (1000, 36)
    """
    groups = items_by_kind(category)
    registries, positions = np.nonzero(_draw(category, whole_number("n", n, 0), np.random.default_rng(rng)))
    catalogue = Catalogue.of(name for group in groups for name in group)
    return Baskets.from_pairs(registries, positions, n, catalogue)


def _find(category: str) -> Any:
    """Return the description of a category."""
    if isinstance(category, str) and category in _CATEGORIES:
        return _CATEGORIES[category]
    near = difflib.get_close_matches(str(category), CATEGORIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"there is no category {category!r}; {hint}choose one of {', '.join(CATEGORIES)}")


def _group(number: int, size: int, taste: str, kind: str, *variants: str) -> tuple[str, ...]:
    """Return the item names of one kind: the plain one of every maker first, then the variants."""
    endings = ["", *(f", {variant}" for variant in variants)]
    n_makers = -(-size // len(endings))
    # A stride prime to the number of makers, so that the kinds do not all come from the same few.
    makers = [MAKERS[(5 * number + i) % len(MAKERS)] for i in range(n_makers)]
    return tuple(f"{maker} {kind}{ending}" for ending in endings for maker in makers)[:size]


def _paired_kinds(category: str) -> list[list[int]]:
    """Return the pairs of kinds that are complements, by number."""
    names = [kind[2] for kind in _find(category)["kinds"]]
    return [[names.index(name) for name in pair] for pair in _find(category)["pairs"]]


def _shoppers(category: Any) -> tuple[Floats, Floats]:
    """Return the share of each segment, and its factors of the odds of wanting each group."""
    tastes = category["tastes"]
    each = (1 - EVERYTHING_SHARE - ONE_THING_SHARE) / len(tastes)
    odds = np.ones((2 + len(tastes), len(category["kinds"])))
    for group, (_, wanted_by, *_) in enumerate(category["kinds"]):
        if group:  # what most come for
            odds[:2, group] = EVERYTHING_ODDS, ONE_THING_ODDS
        if wanted_by:
            odds[2:, group] = [LIKED_ODDS if taste == wanted_by else OTHER_ODDS for taste in tastes]
    return np.array([EVERYTHING_SHARE, ONE_THING_SHARE, *[each] * len(tastes)]), odds


def _draw(category: str, n: int, rng: np.random.Generator) -> Bools:
    """Draw the items of each of `n` shoppers, (n, n_items)."""
    found = _find(category)
    sizes = np.array([kind[0] for kind in found["kinds"]])
    first_item = np.cumsum(sizes) - sizes
    ranks = np.arange(1, sizes.max() + 1)
    registry, group = np.nonzero(_wanted(found, n, rng))
    log_popularity = np.where(ranks <= sizes[:, None], -POPULARITY_FALL * np.log(ranks), -np.inf)[group]
    # Sorting log-popularity plus Gumbel noise is drawing by popularity without replacement: the two largest are the
    # item taken and the one a second would be.
    scores = log_popularity + rng.gumbel(size=log_popularity.shape)  # (picks, largest)
    best_two = np.argsort(-scores, axis=1)[:, :2]
    picked = np.isfinite(log_popularity[:, :2])  # a group of one has no second
    picked[:, 1] &= rng.random(len(group)) < SECOND_CHANCE
    pick, _ = np.nonzero(picked)
    taken = np.zeros((n, sizes.sum()), dtype=bool)
    taken[registry[pick], first_item[group[pick]] + best_two[picked]] = True
    for kind, other in _paired_kinds(category):
        n_matches, start = min(sizes[kind], sizes[other]), first_item[other]
        items = taken[:, first_item[kind] : first_item[kind] + n_matches]
        matched = items & (rng.random((n, n_matches)) < MATCH_CHANCE)
        taken[matched.any(axis=1), start : start + sizes[other]] = False  # instead of another of its kind
        taken[:, start : start + n_matches] |= matched
    return taken


def _wanted(category: Any, n: int, rng: np.random.Generator) -> Bools:
    """Draw the groups that each of `n` shoppers wants, (n, groups). A shopper who wants nothing is drawn again."""
    shares, odds = _shoppers(category)
    n_groups = odds.shape[1]
    chance = np.append(category["staple"], category["others"] / np.arange(1, n_groups) ** category["fall"])
    chance = odds * chance / (1 - chance + odds * chance)  # (shoppers, groups)
    wanted = np.zeros((n, n_groups), dtype=bool)
    while (empty := np.flatnonzero(~wanted.any(axis=1))).size:
        shoppers = rng.choice(len(shares), size=len(empty), p=shares)
        wanted[empty] = rng.random((len(empty), n_groups)) < chance[shoppers]
    return wanted
