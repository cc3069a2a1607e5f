"""Exact sampling of DPPs and k-DPPs from one eigendecomposition: choose eigenvectors, then a set from their span."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints, Seed
from dpplearn.kernels.compiling import loops
from dpplearn.kernels.interface import check_nonempty, check_size
from dpplearn.kernels.symmetric.kernel import Kernel
from dpplearn.kernels.symmetric.sizes import log_size_table
from dpplearn.tools.threads import pool, thread_count

BLOCK = 32  # draws with one random stream: fixed, so that the draws do not depend on the number of threads

Chooser = Callable[[int, np.random.Generator], tuple[Ints, Ints]]


def sample_sets(
    kernel: Kernel,
    n: int,
    k: int | None = None,
    rng: Seed = None,
    threads: int | None = None,
    nonempty: bool = False,
) -> list[Ints]:
    """Draw n independent sets (positions, ascending) from the DPP, from the DPP given Y ≠ ∅, or from the k-DPP.

    The same seed gives the same draws whatever the number of threads.
    """
    if k is not None:
        check_size(kernel.possible_sizes, k)
    name = "k-dpp" if k is not None else "nonempty" if nonempty else "dpp"
    drawing, choose = loops("symmetric", "sampling"), SAMPLERS[name](kernel, k)
    vectors = kernel.eigenvectors
    squares = kernel.squared_eigenvectors
    seeds = np.random.default_rng(rng).integers(2**63, size=-(-n // BLOCK))
    draws = [min(BLOCK, n - start) for start in range(0, n, BLOCK)]

    def block(number: int) -> list[Ints]:
        stream = np.random.default_rng(int(seeds[number]))
        chosen, offsets = choose(draws[number], stream)
        items = np.empty(len(chosen), dtype=np.int64)
        drawing.draw_items(vectors, squares, chosen, offsets, stream, items)
        return [np.sort(items[start:stop]) for start, stop in pairwise(offsets)]

    blocks = pool(thread_count(threads)).map(block, range(len(draws)))
    return [drawn for part in blocks for drawn in part]


def _independent_eigenvectors(kernel: Kernel, k: None) -> Chooser:
    """Each eigenvector with probability λ_j. [KT12, Algorithm 1]"""

    def choose(draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        return _listed(rng.random((draws, kernel.n_items)) < kernel.eigenvalues)

    return choose


def _at_least_one_eigenvector(kernel: Kernel, k: None) -> Chooser:
    """Each eigenvector with probability λ_j, given that at least one is chosen.

    The first one is j with probability ∝ λ_j Π_{i<j} (1 − λ_i). Those after it stay independent.
    """
    lam = kernel.eigenvalues
    with np.errstate(divide="ignore"):
        log_none_before = np.concatenate([[0.0], np.cumsum(np.log1p(-lam[:-1]))])
    cumulative = np.cumsum(lam * np.exp(log_none_before))
    check_nonempty(cumulative[-1])

    def choose(draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        first = np.searchsorted(cumulative, rng.random((draws, 1)) * cumulative[-1], side="right")
        # Rounding can put the product at the total itself, which is past the last eigenvector that can be chosen.
        first = np.minimum(first, np.flatnonzero(lam)[-1])
        place = np.arange(len(lam))
        return _listed((place == first) | ((place > first) & (rng.random((draws, len(lam))) < lam)))

    return choose


def _listed(chosen: Bools) -> tuple[Ints, Ints]:
    """Return the chosen columns of all rows as one list, and the offsets of the rows in it."""
    rows, columns = np.nonzero(chosen)
    counts = np.bincount(rows, minlength=len(chosen))
    return np.ascontiguousarray(columns), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _k_eigenvectors(kernel: Kernel, k: int) -> Chooser:
    """k eigenvectors with the probabilities of the flips given that k come up. [KT12, Algorithm 8]"""
    return partial(_choose_k, inclusion_table(kernel.eigenvalues, k))


def inclusion_table(lam: Floats, k: int) -> Floats:
    """P(flip n comes up given that l of the flips 0..n do): λ_n P_n(l − 1) / P_{n+1}(l)."""
    table = log_size_table(lam, k)
    inclusion = np.zeros((len(lam), k + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(lam)[:, None] + table[:-1, :-1] - table[1:, 1:]
    inclusion[:, 1:] = np.exp(np.where(np.isnan(logs), -np.inf, logs))
    # Of the flips 0..n that can come up, when all are needed, rounding must pass none by.
    possible = np.cumsum(lam > 0)[:, None]
    inclusion[(np.arange(k + 1) >= possible) & (lam > 0)[:, None]] = 1
    inclusion[:, 0] = 0
    return inclusion


def _choose_k(inclusion: Floats, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    n, k = inclusion.shape[0], inclusion.shape[1] - 1
    chosen = np.empty((draws, k), dtype=np.int64)
    loops("symmetric", "sampling").choose_k(inclusion, rng.random((draws, n)), chosen)
    return chosen.reshape(-1), np.arange(draws + 1, dtype=np.int64) * k


SAMPLERS: dict[str, Callable[..., Chooser]] = {
    "dpp": _independent_eigenvectors,
    "nonempty": _at_least_one_eigenvector,
    "k-dpp": _k_eigenvectors,
}
