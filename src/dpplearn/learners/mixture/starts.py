"""Where a mixture starts: beside independent items, or from another mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.parts import AnyBaskets
from dpplearn.kernels.nonsymmetric.kernel import MixtureKernel
from dpplearn.learners.mixture.parameters import Parameters, Shape

NOISE = 0.3  # standard deviation
SPREAD = 0.7  # of the segments' likings: from those who take little to those who take much

SMOOTHING = 5.0  # baskets, counted with a pair and by chance, so that rare pairs are taken for independent ones
SURELY = 3.0  # standard deviations of a count
LITTLE = 0.3  # of the random numbers, beside what the pairs say
A_PART = 0.3  # of the attraction that they show, so that its signs can still change


def random_numbers(shape: Shape, independent: MixtureKernel, rng: np.random.Generator) -> Parameters:
    """Independent items, and beside them small random numbers for what segments and pairs may come to be."""
    n, m, r = shape.n_items, shape.segments, shape.rank
    theta = NOISE * rng.standard_normal((m, n)) + np.linspace(-SPREAD, SPREAD, m)[:, None]
    U = NOISE * rng.standard_normal((n, r)) / np.sqrt(max(r, 1))
    A = NOISE * rng.standard_normal(n * (n - 1) // 2 if shape.attraction else 0) / np.sqrt(n)
    return Parameters(independent.log_odds[0] / 2, theta if m > 1 else np.zeros((1, n)), U, A, np.zeros(m))


def with_pairs(at: Parameters, baskets: AnyBaskets, expected: Floats) -> Parameters:
    """Segments of independent items, and beside them what the pairs say: of attraction what segments do not, `expected`
    being how many of each they explain; of repulsion all, as segments learned alone make do with differing in taste
    where items stand in for each other.

    A² of two items alone is what maximises m log(1 + A²) − (e + 1) A² for a pair met m times where e are expected. Its
    sign, on which a pair says nothing, is that of the random numbers, and a part of it is where learning starts.
    """
    frequencies = baskets.pair_frequencies()
    met, by_chance = (
        baskets.total_weight * each for each in (frequencies, np.outer(frequencies.diagonal(), frequencies.diagonal()))
    )
    together = np.sqrt(np.maximum(met / (expected + 1) - 1, 0))
    rows, columns = np.tril_indices(len(met), -1)
    A = A_PART * np.copysign(together[rows, columns], at.A) if at.A.size else at.A
    U = LITTLE * at.U + repelling_directions(met, by_chance, at.U.shape[1])
    return replace(at, U=U, A=A)


def repelling_directions(met: Floats, expected: Floats, rank: int) -> Floats:
    """U with U Uᵀ near √(1 − lift) of the pairs that surely meet less often than expected: where items that stand in
    for each other are many, small random numbers would take long to find them, or never do."""
    lift = (met + SURELY * np.sqrt(met) + SMOOTHING) / (expected + SMOOTHING)
    apart = np.sqrt(np.maximum(1 - lift, 0))
    np.fill_diagonal(apart, 0)
    np.fill_diagonal(apart, apart.max(axis=1))
    values, vectors = np.linalg.eigh(apart)
    kept = slice(len(values) - rank, None)
    return np.asarray(vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0)))


def over_items(kernel: MixtureKernel, here: Ints, independent: MixtureKernel) -> MixtureKernel:
    """A kernel over other items: `here` says where each of the new ones stands in it, or −1 for those that it lacks.
    These start independent of all others, as likely in every segment as they are."""
    known = here >= 0
    log_odds = np.tile(independent.log_odds, (kernel.n_segments, 1))
    log_odds[:, known] = kernel.log_odds[:, here[known]]
    of_all = (
        np.einsum("c,cij->ij", kernel.weights, kernel.interaction)
        if len(kernel.interaction) > 1
        else kernel.interaction[0]
    )
    C = np.eye(len(here))
    C[np.ix_(known, known)] = of_all[np.ix_(here[known], here[known])]
    return MixtureKernel(kernel.weights, log_odds, C[None])


def with_segments(kernel: MixtureKernel, segments: int, rng: np.random.Generator) -> MixtureKernel:
    """The segments of largest weight; or beside those that there are, some like them that differ at random."""
    if kernel.n_segments == segments:
        return kernel
    order = np.argsort(-kernel.weights, kind="stable")
    chosen = order[np.arange(segments) % len(order)]
    log_odds = kernel.log_odds[chosen]
    new = np.arange(segments) >= len(order)
    log_odds[new] += NOISE * rng.standard_normal((np.count_nonzero(new), kernel.n_items))
    share = kernel.weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
    return MixtureKernel(share / share.sum(), log_odds, kernel.interaction)
