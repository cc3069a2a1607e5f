"""Exact draws from a mixture: a segment, then items one after another, in or out."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.interface import check_nonempty, check_size
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.sizes import log_sizes_of_segments, tilt
from dpplearn.tools.threads import pool, thread_count

BLOCK = 32  # draws with one random stream: fixed, so that the draws do not depend on the number of threads


def sample_sets(
    kernel: MixtureKernel,
    n: int,
    k: int | None = None,
    rng: Seed = None,
    threads: int | None = None,
    nonempty: bool = False,
) -> list[Ints]:
    """Draw n independent sets (positions, ascending): of k items if k is given, or given Y ≠ ∅ if `nonempty`.

    Given Y ≠ ∅, segment c has the weight π_c P_c(Y ≠ ∅), and the first item of the set is drawn before the others.
    For k items, segment c has the weight π_c P_c(|Y| = k); draws are from t·L_c, with t such that a set has k items on
    average, until one has k: the law given the size does not depend on t. The same seed gives the same draws whatever
    the number of threads.
    """
    if k is not None:
        check_size(range(kernel.n_items + 1), k)
    weights, K = (kernel.weights, kernel.K) if k is None else _tilted(kernel, k)
    first_items: Floats | None = None
    if k is None and nonempty:
        first_items = np.cumsum(_first_item_probabilities(K), axis=1)
        weights = given_nonempty(weights, first_items[:, -1])
    seeds = np.random.default_rng(rng).integers(2**63, size=-(-n // BLOCK))
    draw = loops("nonsymmetric", "sampling").draw

    def block(number: int) -> list[Ints]:
        stream = np.random.default_rng(int(seeds[number]))
        count = min(BLOCK, n - number * BLOCK)
        work, taken = np.empty(K.shape[1:]), np.empty(kernel.n_items, np.int64)
        sets = []
        for c in stream.choice(len(weights), count, p=weights):
            first = -1 if first_items is None else draw_place(first_items[c], stream)
            size = draw(K[c], -1 if k is None else k, first, stream, work, taken)
            sets.append(taken[:size].copy())
        return sets

    blocks = pool(thread_count(threads)).map(block, range(len(seeds)))
    return [drawn for part in blocks for drawn in part]


def given_nonempty(weights: Floats, nonempty: Floats) -> Floats:
    """Return P(c | Y ≠ ∅) ∝ π_c P_c(Y ≠ ∅)."""
    joint = weights * nonempty
    check_nonempty(joint.sum())
    return np.asarray(joint / joint.sum())


def _first_item_probabilities(K: Floats) -> Floats:
    """Return P_c(the first item of Y is j), (n_segments, n_items). A row sums to P_c(Y ≠ ∅)."""
    chances, work = np.empty(K.shape[:2]), np.empty(K.shape[1:])
    for c, each in enumerate(K):
        loops("nonsymmetric", "sampling").first_item_probabilities(each, work, chances[c])
    return chances


def draw_place(cumulative: Floats, rng: np.random.Generator) -> int:
    """Draw a place with probability proportional to its increment of the cumulative sum."""
    place = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    # Rounding can put the product at the total itself: then take the place at which the total is reached.
    return int(min(place, np.searchsorted(cumulative, cumulative[-1])))


def _tilted(kernel: MixtureKernel, k: int) -> tuple[Floats, Floats]:
    log_share = kernel.log_weights + log_sizes_of_segments(kernel)[:, k]
    share = np.exp(log_share - log_share.max())
    n, one = kernel.n_items, np.eye(kernel.n_items)
    K = np.zeros((kernel.n_segments, n, n))
    for c in np.flatnonzero(share > 0):
        L = kernel.L(int(c)) * (tilt(kernel.eigenvalues[c], min(max(k, 1e-9), n - 1e-9)))
        K[c] = one - np.linalg.inv(one + L)
    return share / share.sum(), K
