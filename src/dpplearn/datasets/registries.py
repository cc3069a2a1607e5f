"""Generated baby registries: thirteen categories of the paper's sizes, that ship as code.

A shopper wants some kinds of product, takes one item of each kind wanted, and rarely a second: items of a kind are
substitutes and repel each other, as in the registries of [GKFT14]. Names, chances and popularities are invented.
The chances are set so that two things show at the paper's tolerance of 1e-4: EM ahead of K-Ascent, most where items
are few, and EM suggesting no second video monitor. Registries are larger than the originals for it: 1.5 to 8 items
on average, against 1.2 to 2.8.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, Seed
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.errors import InputError, whole_number

SECOND_CHANCE = 0.03  # a shopper who took one item of a kind takes another of it
POPULARITY_FALL = 0.5  # within a kind, the r-th most popular item is taken in proportion to r**-0.5

MAKERS = tuple(
    """Willow Hazel Rowan Linden Juniper Sorrel Bramble Alder Larkspur Fennel Tansy Thistle Marlow Yarrow Wren Teasel
    Plover Sedge Heron Bracken Lovage Curlew Medlar""".split()
)


@dataclass(frozen=True)
class _Category:
    """A shopper wants the first kind, what most come for, with chance `staple`, and the r-th after it with chance
    `others / r**fall`. Each of `kinds` reads `size name, variant, variant`."""

    staple: float
    others: float
    fall: float
    kinds: str


_CATEGORIES = {
    "feeding": _Category(0.90, 0.75, 0.4, """
        8 baby bottle, set of three, wide neck; 7 bottle drying rack; 6 high chair, folding;
        8 pacifier, glow in the dark; 5 breast pump, double; 6 nursing pillow; 5 bottle brush;
        4 bottle warmer, portable; 7 bib, with sleeves, set of four; 4 steam sterilizer; 6 sippy cup, with straw;
        5 milk storage bags, pack of 50; 3 nursing cover; 5 burp cloth set; 4 feeding spoon set; 3 baby food maker;
        4 suction bowl; 3 formula dispenser; 2 freezer tray; 2 bottle tote; 1 nursing stool; 1 splat mat;
        1 dishwasher basket"""),
    "gear": _Category(0.80, 0.50, 0.6, """
        8 bouncer, with music; 8 play yard, with bassinet; 7 baby carrier, organic cotton; 8 baby swing, compact;
        6 activity center; 7 activity mat, with arch; 6 floor seat, with tray; 5 door jumper; 5 wrap sling;
        5 baby rocker; 6 diaper backpack; 4 sound machine; 4 ring sling; 3 travel crib; 4 shopping cart cover;
        3 walker; 2 hiking carrier; 3 portable high chair; 2 beach tent; 1 bicycle trailer; 1 carrier rain cover;
        1 toy bar; 1 luggage strap"""),
    "diaper": _Category(0.85, 0.60, 0.6, """
        6 diaper pail, steel; 8 disposable diapers, size 1, size 2; 7 baby wipes, unscented;
        8 diaper bag, messenger style; 6 changing pad, contoured; 8 changing pad cover, organic cotton; 7 diaper cream;
        5 pail refill bags; 4 wipe warmer; 5 diaper caddy; 6 cloth diaper, set of six; 4 wet bag;
        5 travel changing kit; 4 diaper stacker; 3 changing pad liners; 3 wipe dispenser; 3 swim diaper;
        2 cloth diaper inserts; 2 training pants; 1 diaper sprayer; 1 pail deodorizer; 1 diaper balm stick;
        1 diaper sack dispenser"""),
    "bedding": _Category(0.80, 0.45, 0.6, """
        7 crib mattress, organic; 8 fitted crib sheet, striped, dotted; 8 sleep sack, fleece;
        8 swaddle blanket, set of four; 6 crib bedding set, woodland; 6 mattress protector;
        7 receiving blanket, flannel; 6 crib mobile; 5 play yard sheet; 5 plush blanket; 4 quilt; 4 bassinet sheet;
        5 changing table sheet; 4 crib skirt; 3 knit blanket; 3 security blanket; 3 moses basket; 2 cradle mattress;
        2 toddler pillow; 1 bassinet pad; 1 blackout curtain; 1 crib canopy; 1 sheet saver"""),
    "apparel": _Category(0.85, 0.50, 0.6, """
        8 bodysuit, pack of five, long sleeved; 7 footed sleeper, with zipper; 8 sock set, with grips; 6 mitten set;
        7 sleep gown; 6 knit cap; 7 layette set; 5 bootie pair; 6 cotton trousers, pack of two; 5 romper; 4 cardigan;
        5 sun hat; 4 hooded jacket; 4 T-shirt, pack of three; 4 baby hangers; 3 snowsuit; 2 swimsuit; 3 leggings;
        2 bathrobe; 1 christening gown; 1 rain jacket; 1 headband; 1 closet dividers"""),
    "bath": _Category(0.80, 0.40, 0.6, """
        8 infant bathtub, folding; 8 hooded towel, set of two; 7 washcloth set; 6 bath toy set, squirting; 7 baby wash;
        5 bath kneeler; 6 baby lotion; 5 rinse cup; 5 spout cover; 6 baby shampoo; 4 bath seat; 5 bath mat;
        4 brush and comb set; 4 toy organizer; 4 bath sponge; 3 bath support cushion; 3 bubble bath; 2 elbow rest;
        2 bath crayons; 2 bath book; 1 floating thermometer; 1 shampoo visor; 1 massage oil; 1 toy boat"""),
    "toys": _Category(0.80, 0.35, 0.7, """
        7 activity gym, with piano; 8 teether, water filled; 7 plush rabbit, with rattle; 6 stacking rings;
        6 musical mobile; 5 wooden blocks; 4 push walker; 5 soft book; 4 shape sorter; 3 activity cube;
        2 tummy time mirror; 2 floor puzzle; 1 toy telephone; 1 rocking horse; 1 xylophone"""),
    "health": _Category(0.75, 0.35, 0.7, """
        8 ear thermometer, with case; 7 cool mist humidifier, quiet; 6 nasal aspirator; 7 grooming kit; 6 nail clipper;
        5 infant toothbrush; 5 baby sunscreen; 4 saline drops; 3 medicine dispenser; 3 first aid kit; 2 vapor bath;
        2 hand sanitizer; 2 baby scale; 1 gripe water; 1 air purifier"""),
    "media": _Category(0.80, 0.40, 0.7, """
        8 bedtime board book, with sounds; 7 baby memory book, illustrated; 6 lullaby album; 6 pregnancy guide;
        5 alphabet book; 6 touch and feel book; 4 sleep training guide; 4 nursery rhyme book; 3 first foods cookbook;
        3 baby name book; 2 counting book; 2 sign language cards; 1 sing-along film; 1 growth chart poster"""),
    "strollers": _Category(0.70, 0.10, 0.3, """
        8 lightweight stroller, reclining; 8 travel system, three wheels; 6 jogging stroller; 5 stroller organizer;
        4 rain cover; 3 footmuff; 2 stroller travel bag; 2 bag hooks; 1 mosquito net; 1 snack tray"""),
    "safety": _Category(0.75, 0.25, 0.8, """
        8 video monitor, pan and tilt; 5 audio monitor, two receivers; 5 car sun shade; 4 movement monitor;
        4 safety gate; 3 ear thermometer; 3 night light; 2 bath thermometer; 2 cabinet locks"""),
    "carseats": _Category(0.50, 0.10, 0.3, """
        8 infant car seat, with base; 8 convertible car seat, slim; 5 booster seat; 4 extra base; 3 back seat mirror;
        3 seat protector; 2 head support; 1 car seat cover"""),
    "furniture": _Category(0.60, 0.20, 1.0, """
        8 convertible crib, with drawer; 6 glider, with ottoman; 4 changing table; 4 bassinet; 4 dresser;
        2 rocking chair; 2 bookcase; 1 toy chest; 1 hamper"""),
}  # fmt: skip


@dataclass(frozen=True)
class _Shop:
    """A category as arrays over its groups, padded to the largest group."""

    chance: Floats  # (groups,) that a shopper wants the group
    first_item: Ints  # (groups,) position of its first item in the catalogue
    log_popularity: Floats  # (groups, largest) of its items, -inf beyond its last


def _group(entry: str, ordinal: int) -> tuple[str, ...]:
    """The names of one kind: every maker's plain one first, then their variants."""
    size, _, rest = entry.strip().partition(" ")
    kind, *variants = (part.strip() for part in rest.split(","))
    endings = ["", *(f", {variant}" for variant in variants)]
    n_makers = -(-int(size) // len(endings))
    # A stride prime to the number of makers, so that the kinds do not all come from the same few.
    makers = [MAKERS[(5 * ordinal + i) % len(MAKERS)] for i in range(n_makers)]
    return tuple(f"{maker} {kind}{ending}" for ending in endings for maker in makers)[: int(size)]


def _groups(category: _Category) -> tuple[tuple[str, ...], ...]:
    return tuple(_group(entry, ordinal) for ordinal, entry in enumerate(category.kinds.split(";")))


CATEGORIES: Mapping[str, int] = {
    name: sum(len(group) for group in _groups(category)) for name, category in _CATEGORIES.items()
}
"""The categories and how many items each has."""


def items_by_kind(category: str) -> tuple[tuple[str, ...], ...]:
    """The item names of a category by kind of product: shoppers rarely take two items of one kind.

    Joined, the kinds are the catalogue of `make_registries(category, ...)`, in its order.

    Parameters
    ----------
    category
        One of `CATEGORIES`.

    Returns
    -------
    tuple of tuple of str
        One group per kind, from the most wanted to the least; in each, the most popular item comes first.

    Examples
    --------
    >>> items_by_kind("safety")[1][:2]
    ('Sorrel audio monitor', 'Bramble audio monitor')
    """
    return _groups(_find(category))


def make_registries(category: str, n: int, rng: Seed = None) -> Baskets:
    """`n` generated registries of a category, none of them empty.

    Parameters
    ----------
    category
        One of `CATEGORIES`.
    n
        How many registries.
    rng
        A seed or a generator; the same seed gives the same registries.

    Returns
    -------
    Baskets
        Over all items of the category, taken or not.

    Examples
    --------
    >>> registries = make_registries("safety", 1000, rng=0)
    >>> len(registries), registries.n_items
    (1000, 36)
    """
    groups = items_by_kind(category)
    registries, positions = _draw(_shop(category), whole_number("n", n, 0), np.random.default_rng(rng))
    catalogue = Catalogue.of(name for group in groups for name in group)
    return Baskets.from_pairs(registries, positions, n, catalogue)


def _find(category: str) -> _Category:
    if isinstance(category, str) and category in _CATEGORIES:
        return _CATEGORIES[category]
    near = difflib.get_close_matches(str(category), _CATEGORIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"there is no category {category!r}; {hint}choose one of {', '.join(_CATEGORIES)}")


@cache
def _shop(category: str) -> _Shop:
    sizes = np.array([len(group) for group in items_by_kind(category)])
    ranks = np.arange(1, sizes.max() + 1)
    table = _find(category)
    return _Shop(
        chance=np.append(table.staple, table.others / np.arange(1, len(sizes)) ** table.fall),
        first_item=np.cumsum(sizes) - sizes,
        log_popularity=np.where(ranks <= sizes[:, None], -POPULARITY_FALL * np.log(ranks), -np.inf),
    )


def _draw(shop: _Shop, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Registry number and item position of everything taken, ordered by registry."""
    registry, group = np.nonzero(_wanted(shop.chance, n, rng))
    # Sorting log-popularity plus Gumbel noise is drawing by popularity without replacement: the two largest are the
    # item taken and the one a second would be.
    log_popularity = shop.log_popularity[group]  # (picks, largest)
    scores = log_popularity + rng.gumbel(size=log_popularity.shape)
    best_two = np.argsort(-scores, axis=1)[:, :2]
    taken = np.isfinite(log_popularity[:, :2])  # a group of one has no second
    taken[:, 1] &= rng.random(len(group)) < SECOND_CHANCE
    pick, _ = np.nonzero(taken)
    return registry[pick], shop.first_item[group[pick]] + best_two[taken]


def _wanted(chance: Floats, n: int, rng: np.random.Generator) -> Bools:
    """Which groups each of `n` shoppers wants, (n, groups); who wants nothing is drawn again."""
    wanted = np.zeros((n, len(chance)), dtype=bool)
    while (empty := np.flatnonzero(~wanted.any(axis=1))).size:
        wanted[empty] = rng.random((len(empty), len(chance))) < chance
    return wanted
