"""The prior: sets of the model of independent items, merged into the data as ordinary weighted baskets.

Learners know nothing of it. How many sets there are matters: too few, and the model fits the draw. Small sets are all
there, each with its probability; of larger ones there are as many, drawn at random, as their size deserves, and their
weights are such that items and pairs have the frequencies of independent items, but for what no weights can mend.
"""

from __future__ import annotations

from itertools import chain, combinations
from math import comb
from numbers import Real
from typing import Any

import numpy as np

from dpplearn.arrays import EPSILON, Floats, Items
from dpplearn.data.baskets import Baskets
from dpplearn.data.catalogue import Catalogue
from dpplearn.data.parts import AnyBaskets, Parts
from dpplearn.errors import InputError
from dpplearn.fitting.balancing import balanced, enough_for_pairs
from dpplearn.kernels.independent import independent
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.sampling import SAMPLERS
from dpplearn.kernels.symmetric.sizes import log_size_distribution

SMOOTHING = 0.5  # baskets with and baskets without each item, counted beside the data
TIMES_A_PAIR = 60  # how often a pair of items should occur in the sets, on average
FEWEST_PER_ITEM, MOST_PER_ITEM, MOST_SETS = 40, 1000, 100_000  # sets, whatever that comes to
PLENTY, WORK = 30_000, 2_000_000  # sets that are taken anyhow, if they are so many nanoseconds of work
FEWEST = 500  # sets; otherwise they are no more than ten times that work
AT_A_TIME = 10_000  # draws, each of which takes a random number per item
ENDS = 1e-6  # weight of the full catalogue and of the empty set, as a share of the data's
STRONGEST = 1e9  # times the data's weight; what is stronger cannot be told from independent items, and may be no number


def as_strength(prior: Any) -> float:
    """A strength that a prior may have."""
    known = isinstance(prior, Real) and not isinstance(prior, bool)
    if not known or not (0 <= prior <= STRONGEST or prior == np.inf):
        raise InputError(f"prior is {prior!r}; expected 'auto', a number from 0 (no prior) to {STRONGEST:g}, or inf")
    return float(prior)


def centre(baskets: AnyBaskets, *, nonempty: bool = False) -> Kernel:
    """What an infinitely strong prior gives: independent items with frequencies (count + ½)/(n + 1)."""
    return independent(baskets, smoothing=SMOOTHING, nonempty=nonempty)


def pseudo_baskets(baskets: AnyBaskets, *, nonempty: bool = False) -> Baskets:
    """Sets of the prior's centre with weights that add up to 1. The same for the same baskets."""
    kernel = centre(baskets, nonempty=nonempty)
    n_sets, rng = how_many(kernel.eigenvalues), np.random.default_rng(0)
    whole, drawn = [], []
    few = 2**kernel.n_items <= n_sets
    law = np.exp(log_size_distribution(kernel))
    deserved = law * [max(comb(size, 2), 1) for size in range(len(law))]  # it is the pairs that must not be random
    if nonempty:
        deserved[0] = 0
    for size, (share, part) in enumerate(zip(law, deserved / deserved.sum(), strict=True)):
        if nonempty and not size:
            continue
        wanted = int(np.ceil(part * n_sets))
        if few or comb(kernel.n_items, size) <= 2 * wanted:
            whole.append(_all_sets(kernel, size, baskets.catalogue))
        elif part * n_sets >= 0.5:
            drawn.append(_drawn_sets(kernel, size, wanted, rng, baskets.catalogue).reweighted(share / wanted))
    if drawn:
        nothing = _as_baskets([np.zeros((0, 0), np.int32)], baskets.catalogue)
        drawn = [_balanced(Baskets.together(drawn), Baskets.together([nothing, *whole]), kernel.eigenvalues)]
    everything = Baskets.together([*whole, *drawn])
    return everything.reweighted(1 / everything.total_weight)


def how_many(p: Floats) -> int:
    """Enough sets for every pair of items to occur often. Large sets have many pairs, so that fewer of them do, and are
    much work, so that more than enough of them are taken only if they are small."""
    n, size = len(p), p.sum()
    pairs_a_set = (size**2 - (p**2).sum()) / 2
    enough = TIMES_A_PAIR * n * (n + 1) / 2 / max(pairs_a_set, EPSILON)
    affordable = WORK / max(size**2 * (10 + size) / 20, 1)  # as in `Blocks.work`
    plenty = max(enough, FEWEST_PER_ITEM * n, min(PLENTY, affordable))
    return int(min(plenty, MOST_PER_ITEM * n, MOST_SETS, max(10 * affordable, FEWEST)))


def with_prior(baskets: AnyBaskets, pseudo: Baskets, strength: float, *, nonempty: bool = False) -> AnyBaskets:
    """The baskets, deduplicated, and pseudo-baskets of `strength` times their weight; for 0, the baskets alone. Of
    parts, the pseudo-baskets are one more.

    The full catalogue and the empty set, at a weight of nearly nothing, keep the eigenvalues of the best kernel away
    from 0 and 1, so that no set has probability zero.
    """
    if not strength:
        return baskets.deduplicated()
    total = baskets.total_weight
    ends = [range(baskets.n_items)] if nonempty else [range(0), range(baskets.n_items)]
    of_ends = _as_baskets([np.array([end], np.int32) for end in ends], baskets.catalogue)
    beside = [pseudo.reweighted(strength * total), of_ends.reweighted(ENDS * total)]
    if isinstance(baskets, Parts):
        return baskets.deduplicated().joined_by(Baskets.together(beside).deduplicated())
    return Baskets.together([baskets, *beside]).deduplicated()


def _all_sets(kernel: Kernel, size: int, catalogue: Catalogue) -> Baskets:
    """Every set of a size, weighted by its probability Π p_i Π (1 − p_i)."""
    flat = np.fromiter(chain.from_iterable(combinations(range(kernel.n_items), size)), np.int32)
    sets = flat.reshape(comb(kernel.n_items, size), size)
    log_odds = np.log(kernel.odds)
    weights = np.exp(np.log1p(-kernel.eigenvalues).sum() + log_odds[sets].sum(axis=1))
    return _as_baskets([sets], catalogue, weights)


def _drawn_sets(kernel: Kernel, size: int, n: int, rng: np.random.Generator, catalogue: Catalogue) -> Baskets:
    """Sets of a size with the probabilities they have among those of that size. In a diagonal kernel an eigenvector
    is an item, so that choosing eigenvectors is all there is to a draw."""
    choose = SAMPLERS["k-dpp"](kernel, size)
    counts = [min(AT_A_TIME, n - start) for start in range(0, n, AT_A_TIME)]
    return _as_baskets([np.sort(choose(count, rng)[0].reshape(count, size)) for count in counts], catalogue)


def _balanced(drawn: Baskets, whole: Baskets, p: Floats) -> Baskets:
    """The drawn sets with weights for all sets together to have items with the frequencies p_i and pairs with p_i p_j,
    or items alone where pairs are too many for that: what a model learns of independent items is mostly that pairs meet
    as often as by chance."""
    pairs = enough_for_pairs(len(drawn), len(p))
    return balanced(drawn, p, np.outer(p, p) if pairs else None, whole)


def _as_baskets(matrices: list[Items], catalogue: Catalogue, weights: Floats | None = None) -> Baskets:
    """One basket a row of each matrix."""
    sizes = np.repeat([matrix.shape[1] for matrix in matrices], [len(matrix) for matrix in matrices])
    indices = np.concatenate([matrix.reshape(-1) for matrix in matrices]).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Baskets(indices, offsets, np.ones(len(sizes)) if weights is None else weights, catalogue)
