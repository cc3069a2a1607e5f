"""Exact draws from a mixture: a segment, then items one after another, in or out."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Floats, Ints, Seed
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.interface import check_size
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.kernels.nonsymmetric.sizes import log_sizes_of_segments, tilt
from dpplearn.tools.threads import pool, thread_count

BLOCK = 32  # draws with one random stream: fixed, so that the draws do not depend on the number of threads


def sample_sets(
    kernel: MixtureKernel, n: int, k: int | None = None, rng: Seed = None, threads: int | None = None
) -> list[Ints]:
    """n independent sets (positions, ascending), with k of k items.

    For k items, segment c has the weight π_c P_c(|Y| = k); draws are from t·L_c, with t such that a set has k items on
    average, until one has k: the law given the size does not depend on t. The same seed gives the same draws whatever
    the number of threads.
    """
    if k is not None:
        check_size(range(kernel.n_items + 1), k)
    weights, K = (kernel.weights, kernel.K) if k is None else _tilted(kernel, k)
    seeds = np.random.default_rng(rng).integers(2**63, size=-(-n // BLOCK))
    draw = loops("nonsymmetric", "sampling").draw

    def block(number: int) -> list[Ints]:
        stream = np.random.default_rng(int(seeds[number]))
        count = min(BLOCK, n - number * BLOCK)
        work, taken = np.empty(K.shape[1:]), np.empty(kernel.n_items, np.int64)
        sets = []
        for c in stream.choice(len(weights), count, p=weights):
            size = draw(K[c], -1 if k is None else k, stream, work, taken)
            sets.append(taken[:size].copy())
        return sets

    blocks = pool(thread_count(threads)).map(block, range(len(seeds)))
    return [drawn for part in blocks for drawn in part]


def _tilted(kernel: MixtureKernel, k: int) -> tuple[Floats, Floats]:
    log_share = kernel.log_weights + log_sizes_of_segments(kernel)[:, k]
    share = np.exp(log_share - log_share.max())
    n, one = kernel.n_items, np.eye(kernel.n_items)
    K = np.zeros((kernel.n_segments, n, n))
    for c in np.flatnonzero(share > 0):
        L = kernel.L(int(c)) * (tilt(kernel.eigenvalues[c], min(max(k, 1e-9), n - 1e-9)))
        K[c] = one - np.linalg.inv(one + L)
    return share / share.sum(), K
