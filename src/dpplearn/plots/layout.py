"""Order and blocks of the rows of a heat map, and short names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.utils.text import shortened

ORDERED = 500  # items, beyond which the best of all orders that respect the clusters takes too long to find


def by_cluster(similarity: Floats) -> Ints:
    """An order in which items of a cluster are neighbours."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(similarity) < 3:
        return np.arange(len(similarity))
    distance = 1 - similarity
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=len(similarity) <= ORDERED)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def by_profile(relation: Floats) -> Ints:
    """An order in which items that have the same relations with the others are neighbours."""
    with np.errstate(invalid="ignore", divide="ignore"):  # of rows that are all the same
        return by_cluster(np.asarray(np.nan_to_num(np.corrcoef(relation))))


def blocks(relation: Floats, most: int) -> list[int]:
    """Where blocks of neighbours begin, and where the last ends: the largest is divided where two neighbours differ
    most, until there are so many; none has less than half of its share of the rows."""
    edges, least = [0, len(relation)], max(len(relation) // (2 * most), 1)
    gap = np.append(0, np.abs(np.diff(relation, axis=0)).sum(axis=1))  # between a row and the one before
    while len(edges) <= most:
        first = max(range(len(edges) - 1), key=lambda each: edges[each + 1] - edges[each])
        inside = range(edges[first] + least, edges[first + 1] - least + 1)
        if not inside:
            break
        edges.insert(first + 1, max(inside, key=gap.__getitem__))
    return edges


def names(catalogue: Catalogue, positions: Ints, width: int) -> list[str]:
    """Short names of items."""
    return short(catalogue.select(positions), width)


def short(labels: Iterable[Label], width: int) -> list[str]:
    """Short names of anything. Matplotlib would read what stands between two dollars as mathematics."""
    return [name.replace("$", r"\$") for name in shortened(list(map(_on_one_line, labels)), width)]


def _on_one_line(label: Label) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in str(label)).split())


def times(doublings: int) -> str:
    """How many times as often, on a scale in doublings."""
    return f"{2**doublings}" if doublings >= 0 else f"1/{2**-doublings}"
