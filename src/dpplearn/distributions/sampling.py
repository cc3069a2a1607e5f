"""Exact draws from dense components: item after item, in or out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.distributions.compiled import loops
from dpplearn.utils.threads import map_over_threads

STREAM_LENGTH = 32  # draws from one random stream; fixed, so that draws do not depend on the number of threads

Draw = Callable[[int, np.random.Generator], Ints]  # a set of one component


def in_streams(which: Ints, rng: np.random.Generator, draw: Draw, threads: int | None) -> list[Ints]:
    """Draw one set from each of the components `which`, over threads."""
    seeds = rng.integers(2**63, size=-(-len(which) // STREAM_LENGTH)).tolist()

    def stream(number: int) -> list[Ints]:
        own = np.random.default_rng(seeds[number])
        chosen = which[number * STREAM_LENGTH : (number + 1) * STREAM_LENGTH].tolist()
        return [draw(component, own) for component in chosen]

    return [drawn for part in map_over_threads(stream, range(len(seeds)), threads) for drawn in part]


def sample(
    K: Mapping[int, Floats],
    which: Ints,
    rng: np.random.Generator,
    k: int | None = None,
    nonempty: bool = False,
    threads: int | None = None,
) -> list[Ints]:
    """Draw one set from the DPP with marginal kernel K[c] for each c in `which`.

    Item j is in with probability K_jj given the decisions on earlier items; then K becomes its Schur complement
    [Poulson 2020; Launay et al. 2020]. For nonempty sets the first item is drawn from p_j Π_{i<j} (1 − p_i). For k
    items, draw until a set has k; choose K with E|Y| = k.
    """
    compiled = loops("dense_sampling")
    first_items: dict[int, Floats] = {}
    if nonempty and k is None:
        for c, each in K.items():
            chances = np.empty(len(each))
            compiled.first_item_probabilities(each, np.empty(each.shape), chances)
            first_items[c] = np.cumsum(chances)

    def draw(c: int, stream: np.random.Generator) -> Ints:
        n = len(K[c])
        first = draw_place(first_items[c], stream) if first_items else -1
        taken = np.empty(n, np.int64)
        size = compiled.draw(K[c], -1 if k is None else k, first, stream, np.empty((n, n)), taken)
        return taken[:size]

    return in_streams(which, rng, draw, threads)


def marginal_kernel(L: Floats, t: float) -> Floats:
    """Return K of t L."""
    return np.asarray(np.eye(len(L)) - np.linalg.inv(np.eye(len(L)) + t * L))


def draw_place(cumulative: Floats, rng: np.random.Generator) -> int:
    """Draw an index with probability proportional to its increment of the cumulative sum."""
    place = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    # Rounding can put the product at the total itself: then take the place at which the total is reached.
    return int(min(place, np.searchsorted(cumulative, cumulative[-1])))
