"""Exact draws from a mixture by weights: a law, then a set from it."""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Ints, Seed
from dpplearn.kernels.nonsymmetric.sampling import given_nonempty
from dpplearn.kernels.weighted.kernel import WeightedKernel
from dpplearn.kernels.weighted.sizes import shares_given_size


def sample_sets(
    kernel: WeightedKernel, n: int, k: int | None, rng: Seed, threads: int | None = None, nonempty: bool = False
) -> list[Ints]:
    """Draw n independent sets (positions, ascending): of k items if k is given, or given Y ≠ ∅ if `nonempty`.

    The same seed gives the same draws whatever the number of threads.
    """
    shares = kernel.weights if k is None else shares_given_size(kernel, k)
    if k is None and nonempty:
        shares = given_nonempty(shares, -np.expm1(-kernel.log_normalisers))
    stream = np.random.default_rng(rng)
    chosen = stream.choice(kernel.n_segments, n, p=shares)
    seeds = stream.integers(2**63, size=kernel.n_segments)
    drawn = {
        c: iter(kernel.laws[c].sample(times, k, int(seeds[c]), threads, nonempty))
        for c, times in enumerate(np.bincount(chosen, minlength=kernel.n_segments).tolist())
        if times
    }
    return [next(drawn[c]) for c in chosen.tolist()]
