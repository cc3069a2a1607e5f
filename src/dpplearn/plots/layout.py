"""Where things go in a picture: the order of a heat map, points on a map, labels that do not overlap, short names."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.catalogue import Catalogue, Label
from dpplearn.tools.words import shortened

CLOSEST = 0.1  # of the largest distance on a map: two items that never occur together do not hide each other
FAR = 0.95  # quantile of the distances beyond which all are equally far
ROUNDS = 2000
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


def placed(similarity: Floats) -> Floats:
    """Points in the square from −1 to 1, similar ones near each other: the least weighted stress from classical MDS.

    Σ (|x_i − x_j| − d_ij)²/d_ij², in which what is near counts most.
    """
    from scipy.optimize import minimize

    n = len(similarity)
    if n < 3:
        return np.column_stack([np.linspace(-1, 1, n) if n > 1 else np.zeros(n), np.zeros(n)])
    target = _distances(similarity)
    weight = np.divide(1, target**2, out=np.zeros_like(target), where=target > 0)

    def stress(flat: Floats) -> tuple[float, Floats]:
        apart = flat.reshape(n, 2)[:, None] - flat.reshape(n, 2)  # (n, n, 2)
        distance = np.sqrt((apart**2).sum(axis=2) + 1e-12)
        error = weight * (distance - target)
        slope: Floats = 2 * ((error / distance)[:, :, None] * apart).sum(axis=1)
        return float((error * (distance - target)).sum() / 2), slope.ravel()

    found = minimize(stress, _classical(target).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    points = found.x.reshape(n, 2) - found.x.reshape(n, 2).mean(axis=0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T  # the longer axis first
    return np.asarray(points / np.maximum(np.abs(points).max(axis=0), 1e-9))


def _distances(similarity: Floats) -> Floats:
    """From CLOSEST for the most similar two to 1 for those that are not, zero on the diagonal."""
    distance = 1 - similarity
    others = ~np.eye(len(similarity), dtype=bool)
    low, high = distance[others].min(), np.quantile(distance[others], FAR)
    distance = CLOSEST + (1 - CLOSEST) * np.clip((distance - low) / max(high - low, 1e-9), 0, 1)
    return np.where(others, distance, 0)


def _classical(distance: Floats) -> Floats:
    """The two main directions of a cloud of points with such distances; their signs set, to be the same everywhere."""
    centre = np.eye(len(distance)) - 1 / len(distance)
    values, vectors = np.linalg.eigh(-centre @ distance**2 @ centre / 2)
    main = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-6))
    return np.asarray(main * np.sign(main[np.abs(main).argmax(axis=0), [0, 1]]))


def pushed_apart(points: Floats, boxes: Floats) -> Floats:
    """The points moved so that boxes which begin at them, to the right and half above, do not overlap."""
    points, n = points.copy(), len(points)
    needed = (boxes[:, None] + boxes) / 2  # (n, n, 2)
    side = np.sign(np.arange(n)[:, None] - np.arange(n))[:, :, None]  # of two in the same place
    for _ in range(ROUNDS):
        centres = points + boxes * [0.5, 0]
        between = centres[:, None] - centres
        overlap = needed - np.abs(between)
        hit = (overlap > 0).all(axis=2) & (side[:, :, 0] != 0)
        if not hit.any():
            break
        shortest = (overlap / needed).argmin(axis=2)[:, :, None] == [0, 1]  # the way out
        direction = np.where(between == 0, side, np.sign(between))
        points += 0.25 * np.where(hit[:, :, None] & shortest, overlap * direction + np.sign(direction), 0).sum(axis=1)
    return points


def strongest_pairs(similarity: Floats, n: int, each: int = 2) -> list[tuple[int, int]]:
    """At most n pairs, strongest first, without those of two items that both have `each` stronger ones already.

    Otherwise the pairs of one large cluster would be all that is shown.
    """
    rows, columns = np.nonzero(np.triu(similarity, 1))
    order = np.argsort(-similarity[rows, columns], kind="stable")
    pairs: list[tuple[int, int]] = []
    count = np.zeros(len(similarity), dtype=int)
    for i, j in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if len(pairs) < n and min(count[i], count[j]) < each:
            pairs.append((i, j))
            count[[i, j]] += 1
    return pairs


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
