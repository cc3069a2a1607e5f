"""The 13 categories of generated registries, with the numbers of items of the paper. All content is invented.

A category has kinds of product with their items, tastes of shoppers, and pairs of kinds whose items are complements.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dpplearn.errors import InputError

MAKERS = tuple(
    """Willow Hazel Rowan Linden Juniper Sorrel Bramble Alder Larkspur Fennel Tansy Thistle Marlow Yarrow Wren Teasel
    Plover Sedge Heron Bracken Lovage Curlew Medlar""".split()
)


@dataclass(frozen=True)
class Category:
    """A category of generated registries.

    A shopper wants the first kind with probability `staple` and the r-th after it with probability `others / r**fall`,
    before tastes are taken into account. Each of `kinds` has the form `size name, variant, variant`; the letter after
    the size is the initial of the taste that wants this kind most. For two kinds in `pairs`, items of the same rank
    are complements.
    """

    staple: float
    others: float
    fall: float
    tastes: str
    kinds: str
    pairs: str

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Item names by kind."""
        return tuple(_group(entry, ordinal) for ordinal, entry in enumerate(self.kinds.split(";")))

    @cached_property
    def wanted_by(self) -> tuple[str, ...]:
        """Initial of the taste that wants a kind most, by kind; empty if all want it equally."""
        return tuple(entry.split()[0].lstrip("0123456789") for entry in self.kinds.split(";"))

    @cached_property
    def paired_kinds(self) -> tuple[tuple[int, int], ...]:
        """Pairs of kinds that are complements, by number."""
        names = [_name_and_variants(entry)[0] for entry in self.kinds.split(";")]
        found = (pair.split("+") for pair in self.pairs.split(";"))
        return tuple((names.index(first.strip()), names.index(second.strip())) for first, second in found)


def find(category: str) -> Category:
    """Return the category of this name."""
    if isinstance(category, str) and category in CATEGORIES:
        return CATEGORIES[category]
    near = difflib.get_close_matches(str(category), CATEGORIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"there is no category {category!r}; {hint}choose one of {', '.join(CATEGORIES)}")


def _name_and_variants(entry: str) -> list[str]:
    _, _, rest = entry.strip().partition(" ")
    return [part.strip() for part in rest.split(",")]


def _group(entry: str, ordinal: int) -> tuple[str, ...]:
    """Return the item names of one kind: the plain one of every brand first, then the variants."""
    size = int(entry.split()[0].rstrip("abcdefghijklmnopqrstuvwxyz"))
    kind, *variants = _name_and_variants(entry)
    endings = ["", *(f", {variant}" for variant in variants)]
    n_makers = -(-size // len(endings))
    # A stride prime to the number of makers, so that the kinds do not all come from the same few.
    makers = [MAKERS[(5 * ordinal + i) % len(MAKERS)] for i in range(n_makers)]
    return tuple(f"{maker} {kind}{ending}" for ending in endings for maker in makers)[:size]


CATEGORIES: Mapping[str, Category] = {
    "feeding": Category(0.90, 0.75, 0.4, "bottles nursing meals", """
        8 baby bottle, set of three, wide neck; 7b bottle drying rack; 6m high chair, folding;
        8 pacifier, glow in the dark; 5n breast pump, double; 6n nursing pillow; 5b bottle brush;
        4b bottle warmer, portable; 7m bib, with sleeves, set of four; 4b steam sterilizer; 6m sippy cup, with straw;
        5n milk storage bags, pack of 50; 3n nursing cover; 5 burp cloth set; 4m feeding spoon set;
        3m baby food maker; 4m suction bowl; 3b formula dispenser; 2m freezer tray; 2b bottle tote; 1n nursing stool;
        1m splat mat; 1b dishwasher basket""", """
        bottle drying rack + bottle brush; high chair + bib; breast pump + milk storage bags;
        bottle warmer + steam sterilizer; feeding spoon set + suction bowl"""),
    "gear": Category(0.80, 0.50, 0.6, "indoors carrying outings", """
        8 bouncer, with music; 8i play yard, with bassinet; 7c baby carrier, organic cotton; 8i baby swing, compact;
        6i activity center; 7i activity mat, with arch; 6i floor seat, with tray; 5i door jumper; 5c wrap sling;
        5i baby rocker; 6o diaper backpack; 4 sound machine; 4c ring sling; 3o travel crib; 4o shopping cart cover;
        3i walker; 2c hiking carrier; 3o portable high chair; 2o beach tent; 1o bicycle trailer;
        1c carrier rain cover; 1i toy bar; 1o luggage strap""", """
        baby swing + sound machine; activity center + activity mat; travel crib + diaper backpack;
        portable high chair + shopping cart cover"""),
    "diaper": Category(0.85, 0.60, 0.6, "disposables cloth travel", """
        6 diaper pail, steel; 8d disposable diapers, size 1, size 2; 7d baby wipes, unscented;
        8t diaper bag, messenger style; 6 changing pad, contoured; 8 changing pad cover, organic cotton;
        7 diaper cream; 5d pail refill bags; 4d wipe warmer; 5d diaper caddy; 6c cloth diaper, set of six; 4c wet bag;
        5t travel changing kit; 4d diaper stacker; 3c changing pad liners; 3t wipe dispenser; 3c swim diaper;
        2c cloth diaper inserts; 2c training pants; 1c diaper sprayer; 1d pail deodorizer; 1t diaper balm stick;
        1t diaper sack dispenser""", """
        diaper pail + pail refill bags; changing pad + changing pad cover; disposable diapers + baby wipes;
        cloth diaper + wet bag; diaper bag + travel changing kit"""),
    "bedding": Category(0.80, 0.45, 0.6, "crib swaddling nursery", """
        7 crib mattress, organic; 8c fitted crib sheet, striped, dotted; 8s sleep sack, fleece;
        8s swaddle blanket, set of four; 6c crib bedding set, woodland; 6c mattress protector;
        7s receiving blanket, flannel; 6n crib mobile; 5n play yard sheet; 5s plush blanket; 4c quilt;
        4n bassinet sheet; 5n changing table sheet; 4c crib skirt; 3s knit blanket; 3s security blanket;
        3n moses basket; 2n cradle mattress; 2c toddler pillow; 1n bassinet pad; 1n blackout curtain; 1c crib canopy;
        1c sheet saver""", """
        crib mattress + mattress protector; sleep sack + swaddle blanket; crib bedding set + crib skirt;
        moses basket + bassinet sheet"""),
    "apparel": Category(0.85, 0.50, 0.6, "newborn outfits weather", """
        8 bodysuit, pack of five, long sleeved; 7n footed sleeper, with zipper; 8 sock set, with grips; 6n mitten set;
        7n sleep gown; 6w knit cap; 7n layette set; 5n bootie pair; 6o cotton trousers, pack of two; 5o romper;
        4o cardigan; 5w sun hat; 4w hooded jacket; 4o T-shirt, pack of three; 4o baby hangers; 3w snowsuit;
        2w swimsuit; 3o leggings; 2n bathrobe; 1o christening gown; 1w rain jacket; 1o headband;
        1o closet dividers""", """
        mitten set + knit cap; cotton trousers + T-shirt; footed sleeper + sleep gown; sun hat + swimsuit"""),
    "bath": Category(0.80, 0.40, 0.6, "washing play comfort", """
        8 infant bathtub, folding; 8 hooded towel, set of two; 7w washcloth set; 6p bath toy set, squirting;
        7w baby wash; 5c bath kneeler; 6w baby lotion; 5c rinse cup; 5p spout cover; 6w baby shampoo; 4p bath seat;
        5c bath mat; 4w brush and comb set; 4p toy organizer; 4w bath sponge; 3c bath support cushion; 3p bubble bath;
        2c elbow rest; 2p bath crayons; 2p bath book; 1c floating thermometer; 1c shampoo visor; 1w massage oil;
        1p toy boat""", """
        hooded towel + washcloth set; baby wash + baby lotion; bath kneeler + elbow rest;
        bath toy set + toy organizer"""),
    "toys": Category(0.80, 0.35, 0.7, "soft building active", """
        7 activity gym, with piano; 8s teether, water filled; 7s plush rabbit, with rattle; 6b stacking rings;
        6s musical mobile; 5b wooden blocks; 4a push walker; 5s soft book; 4b shape sorter; 3a activity cube;
        2s tummy time mirror; 2b floor puzzle; 1a toy telephone; 1a rocking horse; 1a xylophone""", """
        teether + plush rabbit; stacking rings + shape sorter; push walker + activity cube"""),
    "health": Category(0.75, 0.35, 0.7, "colds grooming outdoors", """
        8 ear thermometer, with case; 7c cool mist humidifier, quiet; 6c nasal aspirator; 7g grooming kit;
        6g nail clipper; 5g infant toothbrush; 5o baby sunscreen; 4c saline drops; 3c medicine dispenser;
        3o first aid kit; 2c vapor bath; 2o hand sanitizer; 2g baby scale; 1c gripe water; 1c air purifier""", """
        nasal aspirator + saline drops; grooming kit + infant toothbrush; baby sunscreen + hand sanitizer"""),
    "media": Category(0.80, 0.40, 0.7, "reading parents music", """
        8 bedtime board book, with sounds; 7p baby memory book, illustrated; 6m lullaby album; 6p pregnancy guide;
        5r alphabet book; 6r touch and feel book; 4p sleep training guide; 4m nursery rhyme book;
        3p first foods cookbook; 3p baby name book; 2r counting book; 2r sign language cards; 1m sing-along film;
        1p growth chart poster""", """
        alphabet book + counting book; pregnancy guide + baby name book; lullaby album + nursery rhyme book"""),
    "strollers": Category(0.70, 0.10, 0.3, "city sport", """
        8 lightweight stroller, reclining; 8c travel system, three wheels; 6s jogging stroller; 5c stroller organizer;
        4s rain cover; 3s footmuff; 2c stroller travel bag; 2c bag hooks; 1s mosquito net; 1c snack tray""", """
        travel system + stroller organizer; jogging stroller + rain cover"""),
    "safety": Category(0.75, 0.25, 0.8, "listening proofing care", """
        8 video monitor, pan and tilt; 5l audio monitor, two receivers; 5c car sun shade; 4l movement monitor;
        4p safety gate; 3c ear thermometer; 3l night light; 2c bath thermometer; 2p cabinet locks""", """
        movement monitor + night light; safety gate + cabinet locks; ear thermometer + bath thermometer"""),
    "carseats": Category(0.50, 0.10, 0.3, "newborns toddlers", """
        8 infant car seat, with base; 8t convertible car seat, slim; 5t booster seat; 4n extra base;
        3n back seat mirror; 3t seat protector; 2n head support; 1n car seat cover""", """
        infant car seat + extra base; convertible car seat + seat protector"""),
    "furniture": Category(0.60, 0.20, 1.0, "resting storing", """
        8 convertible crib, with drawer; 6r glider, with ottoman; 4s changing table; 4r bassinet; 4s dresser;
        2r rocking chair; 2s bookcase; 1s toy chest; 1s hamper""", """
        convertible crib + dresser; bookcase + toy chest"""),
}  # fmt: skip
