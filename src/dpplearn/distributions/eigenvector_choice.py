"""The number of eigenvectors that a symmetric DPP chooses, and random choices of them.

A set of a DPP with eigenvalues λ_j is drawn by choosing eigenvector j with probability λ_j, independently, and then as
many items from the span of those chosen. So |Y| is distributed as a sum of independent Bernoulli variables. Everything
here works with logarithms and with λ_j = 1, for which elementary symmetric polynomials do not exist.
"""

from __future__ import annotations

import numpy as np

from dpplearn.arrays import Bools, Floats, Ints
from dpplearn.distributions.compiled import loops


def log_size_table(lam: Floats, largest: int) -> Floats:
    """Return log P(k of the first n eigenvectors are chosen), for n = 0..N and k = 0..largest."""
    table = np.full((len(lam) + 1, largest + 1), -np.inf)
    table[0, 0] = 0
    with np.errstate(divide="ignore"):
        log_in, log_out = np.log(lam), np.log1p(-lam)
    for n in range(len(lam)):
        table[n + 1] = table[n] + log_out[n]
        table[n + 1, 1:] = np.logaddexp(table[n + 1, 1:], table[n, :-1] + log_in[n])
    return table


def choice_given_size(lam: Floats, k: int) -> tuple[float, Floats]:
    """Return log P(k are chosen), and for each eigenvector P(it is chosen | k are): λ_j P(k − 1 of the others) / P(k).

    The second is 0 where k cannot be chosen.
    """
    log_k = float(log_size_table(lam, k)[-1, k])
    if k == 0 or log_k == -np.inf:
        return log_k, np.zeros(len(lam))
    before = log_size_table(lam, k - 1)
    after = log_size_table(lam[::-1], k - 1)[::-1]
    others = np.logaddexp.reduce(before[:-1] + after[1:, ::-1], axis=1)
    with np.errstate(divide="ignore"):
        return log_k, np.exp(np.log(lam) + others - log_k)


def choose(lam: Floats, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Choose each eigenvector with probability λ_j. [KT12, Algorithm 1]

    Like the functions below, return the choices of all draws as one list, and the offsets of the draws in it.
    """
    return _listed(rng.random((draws, len(lam))) < lam)


def choose_at_least_one(lam: Floats, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Choose each eigenvector with probability λ_j, given that at least one is chosen.

    The first one is j with probability ∝ λ_j Π_{i<j} (1 − λ_i). Those after it stay independent.
    """
    with np.errstate(divide="ignore"):
        log_none_before = np.concatenate([[0.0], np.cumsum(np.log1p(-lam[:-1]))])
    cumulative = np.cumsum(lam * np.exp(log_none_before))
    first = np.searchsorted(cumulative, rng.random((draws, 1)) * cumulative[-1], side="right")
    # Rounding can put the product at the total itself, which is past the last eigenvector that can be chosen.
    first = np.minimum(first, np.flatnonzero(lam)[-1])
    place = np.arange(len(lam))
    return _listed((place == first) | ((place > first) & (rng.random((draws, len(lam))) < lam)))


def choose_k(inclusion: Floats, draws: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Choose k eigenvectors by the probabilities of `inclusion_table`. [KT12, Algorithm 8]"""
    n, k = inclusion.shape[0], inclusion.shape[1] - 1
    chosen = np.empty((draws, k), dtype=np.int64)
    loops("eigenvector_sampling").choose_k(inclusion, rng.random((draws, n)), chosen)
    return chosen.reshape(-1), np.arange(draws + 1, dtype=np.int64) * k


def inclusion_table(lam: Floats, k: int) -> Floats:
    """Return P(eigenvector n is chosen | l of the eigenvectors 0..n are): λ_n P_n(l − 1) / P_{n+1}(l), l = 0..k."""
    table = log_size_table(lam, k)
    inclusion = np.zeros((len(lam), k + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(lam)[:, None] + table[:-1, :-1] - table[1:, 1:]
    inclusion[:, 1:] = np.exp(np.where(np.isnan(logs), -np.inf, logs))
    # Where all that can still be chosen are needed, rounding must not skip one.
    possible = np.cumsum(lam > 0)[:, None]
    inclusion[(np.arange(k + 1) >= possible) & (lam > 0)[:, None]] = 1
    inclusion[:, 0] = 0
    return inclusion


def _listed(chosen: Bools) -> tuple[Ints, Ints]:
    rows, columns = np.nonzero(chosen)
    counts = np.bincount(rows, minlength=len(chosen))
    return np.ascontiguousarray(columns), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
