"""Initial parameters of a mixture: random, from pair counts, or from another mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpplearn.arrays import Floats, Ints
from dpplearn.data.parts import AnyBaskets
from dpplearn.distributions.scaled import ScaledDPPs
from dpplearn.learners.kernels import Segments
from dpplearn.learners.mixture.parameters import Parameters, Shape

NOISE = 0.3  # standard deviation of random numbers
SPREAD = 0.7  # of log-odds over the segments, from small baskets to large ones

PAIR_SMOOTHING = 5.0  # baskets added to observed and expected pair counts, so that rare pairs count as independent
CONFIDENCE = 3.0  # standard deviations of a count
RANDOM_SHARE = 0.3  # of the random U that is kept next to the repulsion that pairs show
ATTRACTION_SHARE = 0.3  # of the attraction that pairs show; small, so that its signs can still change


def random_parameters(shape: Shape, log_odds: Floats, rng: np.random.Generator) -> Parameters:
    """Return independent items with small random deviations between segments and random interactions."""
    n, m, r = shape.n_items, shape.segments, shape.rank
    theta = NOISE * rng.standard_normal((m, n)) + np.linspace(-SPREAD, SPREAD, m)[:, None]
    U = NOISE * rng.standard_normal((n, r)) / np.sqrt(max(r, 1))
    A = NOISE * rng.standard_normal(n * (n - 1) // 2 if shape.attraction else 0) / np.sqrt(n)
    return Parameters(log_odds / 2, theta if m > 1 else np.zeros((1, n)), U, A, np.zeros(m))


def with_pairs(at: Parameters, baskets: AnyBaskets, expected: Floats) -> Parameters:
    """Return segments of independent items with the interactions that pair counts show.

    Attraction is what the segments do not explain; `expected` are the pair counts that they imply. Repulsion is
    compared with independence, because segments learned alone represent substitutes by differences in taste.

    A² maximises m log(1 + A²) − (e + 1) A² for a pair that occurs m times where e are expected. Its sign, which pair
    counts do not determine, is that of the random numbers.
    """
    frequencies = baskets.pair_frequencies()
    observed, independent = (
        baskets.total_weight * each for each in (frequencies, np.outer(frequencies.diagonal(), frequencies.diagonal()))
    )
    attraction = np.sqrt(np.maximum(observed / (expected + 1) - 1, 0))
    rows, columns = np.tril_indices(len(observed), -1)
    A = ATTRACTION_SHARE * np.copysign(attraction[rows, columns], at.A) if at.A.size else at.A
    U = RANDOM_SHARE * at.U + repelling_directions(observed, independent, at.U.shape[1])
    return replace(at, U=U, A=A)


def repelling_directions(observed: Floats, expected: Floats, rank: int) -> Floats:
    """Return U with U Uᵀ near √(1 − lift) of the pairs that clearly co-occur less often than expected.

    Where there are many substitutes, small random numbers would take long to find them, or never do.
    """
    lift = (observed + CONFIDENCE * np.sqrt(observed) + PAIR_SMOOTHING) / (expected + PAIR_SMOOTHING)
    apart = np.sqrt(np.maximum(1 - lift, 0))
    np.fill_diagonal(apart, 0)
    np.fill_diagonal(apart, apart.max(axis=1))
    values, vectors = np.linalg.eigh(apart)
    kept = slice(len(values) - rank, None)
    return np.asarray(vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0)))


def over_items(kernel: Segments, here: Ints, new_log_odds: Floats) -> Segments:
    """Return the kernel over other items; `here` is the position of each in the kernel, or −1 where it is new.

    New items start independent of all others, with the same probability in every segment.
    """
    known = here >= 0
    log_odds = np.tile(new_log_odds, (kernel.n_segments, 1))
    log_odds[:, known] = kernel.log_odds[:, here[known]]
    X = np.zeros((len(here), len(here)))
    X[np.ix_(known, known)] = kernel.X[np.ix_(here[known], here[known])]
    return Segments.dense(kernel.weights, log_odds, X)


def with_segments(kernel: Segments, segments: int, rng: np.random.Generator) -> Segments:
    """Return the kernel with the segments of largest weight, or with additional random variants of its segments."""
    if kernel.n_segments == segments:
        return kernel
    order = np.argsort(-kernel.weights, kind="stable")
    chosen = order[np.arange(segments) % len(order)]
    log_odds = kernel.log_odds[chosen]
    new = np.arange(segments) >= len(order)
    log_odds[new] += NOISE * rng.standard_normal((np.count_nonzero(new), kernel.n_items))
    share = kernel.weights[chosen] / np.bincount(chosen, minlength=len(order))[chosen]
    return Segments(share / share.sum(), ScaledDPPs(log_odds, kernel.components.interaction))
