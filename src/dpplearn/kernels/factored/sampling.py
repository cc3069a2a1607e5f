"""Exact draws from a factored kernel: a segment, then a set of it."""

from __future__ import annotations

from functools import partial

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.kernels.factored.drawing import Segment, blocks_for, segment
from dpplearn.kernels.factored.kernel import FactoredKernel
from dpplearn.kernels.factored.sizes import SMALL, rings_of_size
from dpplearn.kernels.interface import check_size
from dpplearn.kernels.nonsymmetric import sampling as dense
from dpplearn.tools.threads import one_blas_thread, pool, thread_count

Segments = dict[int, Segment]  # those made so far


def sample_sets(
    kernel: FactoredKernel,
    made: Segments,
    n: int,
    k: int | None = None,
    rng: Seed = None,
    threads: int | None = None,
    nonempty: bool = False,
) -> list[Ints]:
    """Draw n independent sets (positions, ascending): of k items if k is given, or given Y ≠ ∅ if `nonempty`.

    Given Y ≠ ∅, segment c has the weight π_c P_c(Y ≠ ∅).
    For k items, segment c has the weight π_c P_c(|Y| = k); draws are from t·L_c, with t such that a set has k items on
    average, until one has k: the law given the size does not depend on t. The same seed gives the same draws whatever
    the number of threads. What segments need is made when they are first drawn from, and added to `made` without k.
    """
    if kernel.n_items <= SMALL:
        return dense.sample_sets(kernel.dense(), n, k, rng, threads, nonempty)
    weights, tilts = kernel.weights, np.zeros(kernel.n_segments)
    if k is not None:
        check_size(range(kernel.n_items + 1), k)
        if k in (0, kernel.n_items):
            return [np.arange(k) for _ in range(n)]
        weights, rings = rings_of_size(kernel, k)
        tilts, made = np.array([ring.circle.shift + np.log(ring.t) for ring in rings]), {}
    elif nonempty:
        weights = dense.given_nonempty(weights, -np.expm1(-kernel.log_normalisers))
    stream = np.random.default_rng(rng)
    numbers = stream.choice(kernel.n_segments, n, p=weights)
    seeds = stream.integers(2**63, size=-(-n // dense.BLOCK))
    with one_blas_thread():
        for c in np.unique(numbers).tolist():
            if c not in made:
                made[c] = _segment(kernel, c, kernel.log_odds[c].astype(float) + tilts[c])
        draw = partial(_block, made, numbers, seeds, k, nonempty)
        blocks = pool(thread_count(threads)).map(draw, range(len(seeds)))
        return [drawn for part in blocks for drawn in part]


def _segment(kernel: FactoredKernel, c: int, log_odds: Floats) -> Segment:
    blocks = blocks_for(kernel.n_segments, kernel.n_columns)
    return segment(kernel.factors, kernel.active, log_odds, kernel.coupling_of(c), blocks)


def _block(segments: Segments, numbers: Ints, seeds: Ints, k: int | None, nonempty: bool, block: int) -> list[Ints]:
    stream = np.random.default_rng(int(seeds[block]))
    inside = numbers[block * dense.BLOCK : (block + 1) * dense.BLOCK].tolist()
    return [_draw(segments[c], k, nonempty, stream) for c in inside]


def _draw(of: Segment, k: int | None, nonempty: bool, stream: np.random.Generator) -> Ints:
    if k is None and nonempty:
        return of.draw_nonempty(stream)
    while True:
        drawn = of.draw(stream)
        if k is None or len(drawn) == k:
            return drawn
